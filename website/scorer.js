// The order of the search's results: Sphinx's own weights, and the failures of the catalogue first, since most of those
// who search here have pasted an error text. Their index and their chapters, which only list them, stay where they are.
var Scorer = {
  score: ([docname, , , , score]) => score + (/^failures\/(?!index$|chapter-)/.test(docname) ? 20 : 0),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
