// The order of the search's results: Sphinx's own weights, and above them lessons and guides for a subject such as
// "tensor parallel", failures of the catalogue for anything longer, since that mostly is an error text. The pages that
// only list the failures stay where they are.
var Scorer = {
  score: ([docname, , , , score]) => {
    const typed = (new URLSearchParams(location.search).get("q") ?? "").trim().split(/\s+/);
    const isSubject = typed.length <= 3 && !/error|fail|hang|nan|stuck|wrong|[_:]/i.test(typed.join(" "));
    const first = isSubject ? /^(notebooks|packages|docs)\// : /^failures\/(?!index$|chapter-)/;
    return score + (first.test(docname) ? 20 : 0);
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
