// Which failures of the catalogue speak of a text: `python -m multigpu explain` in the browser. It is the module
// multigpu/failures (match, reading, ranking) function by function, with the same names, and a test compares their answers.

window.explain = (() => {
  const known = window.catalogueOfFailures;
  const { CANDIDATES, REPORTED, ENOUGH, NEARLY_ALL, FEW_WORDS, SATURATION, LENGTH, PLURAL } = known;
  const { TRACEBACK, TYPESET, LONG, REPEATED, AROUND, AT_MOST, NEAR } = known;
  const regex = Object.fromEntries(Object.entries(known.expressions).map(([name, form]) => [name, new RegExp(...form)]));
  const [COLOURS, ENDLESS, REPETITIONS, PIECE] = ["COLOURS", "ENDLESS", "REPETITIONS", "PIECE"].map(
    (name) => new RegExp(regex[name], "g"),
  );
  const NOT_LETTERS = new RegExp(regex.NOT_LETTERS, "g");
  const LINE_ENDS = /\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]/;

  const kept = (make) => {
    const made = new Map();
    return (key) => {
      if (!made.has(key)) made.set(key, make(key));
      return made.get(key);
    };
  };
  const BOUNDS = { "*": `{0,${AT_MOST}}`, "+": `{1,${AT_MOST}}`, ",}": `,${AT_MOST}}` };
  const bounded = (pattern) =>
    pattern.startsWith("^") ? pattern : pattern.replace(REPETITIONS, (found) => BOUNDS[found] ?? found);
  const compiled = kept((pattern) => new RegExp(bounded(pattern), "i"));
  const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);

  /** The entries for a text, the likeliest first, whether it holds a message of the first or is a guess, and the cause. */
  function answer(given) {
    const typed = given.replace(COLOURS, "").replace(/[^\x00-\x7f]/g, (letter) => TYPESET[letter] ?? letter);
    const text = unrepeated(typed.replace(ENDLESS, "$1$2"));
    if (regex.FOREIGN.test(text) && !regex.PYTORCH.test(text)) return answered([], false);
    const lines = linesOf(text);
    const others = regex.OTHERS.test(text) && !regex.TORCH.test(text);
    const fits = fitsOf(lines, regex.SEVERAL.test(text), others).sort(byPrecedence);
    const raised = lines.some((line) => line.raised && !line.warned) || text.includes(TRACEBACK);
    const sure = fits.filter((fit) => fit.told && !fit.doubtful && !(fit.warned && raised));
    if (sure.length && !lastIsUnknown(lines, sure)) return answered(sure, true);
    const guessed = () => guesses(lines, enough(text, raised)).map((entry) => ({ entry, lines: [] }));
    return answered(fits.length ? fits : guessed(), false);
  }

  function answered(fits, sure) {
    const cause = fits.length ? quoting(fits[0].entry, fits[0].lines) || fits[0].entry.cause : "";
    return { entries: fits.map((fit) => fit.entry), sure, cause };
  }

  /** The sentences of a cause that quote these lines. An ellipsis in a quote is for anything. */
  function quoting(entry, lines) {
    const text = even(lines.join(" "));
    const isIn = (words) => {
      let end = 0;
      return words.split("...").every((part) => {
        const begin = text.indexOf(part, end);
        end = begin + part.length;
        return begin >= 0;
      });
    };
    return entry.cases.filter(([, quotes]) => quotes.some(isIn)).map(([sentence]) => sentence).join(" ");
  }
  const even = (text) => text.toLowerCase().trim().split(/\s+/).join(" ");

  function enough(text, raised) {
    const few = text.trim().split(/\s+/).length <= FEW_WORDS;
    if (regex.PYTORCH.test(text) || regex.KINDRED.test(text) || (few && !raised)) return ENOUGH;
    return few ? NEARLY_ALL : Infinity;
  }

  function byPrecedence(one, other) {
    const order = (fit) => [fit.doubtful, fit.entry.after, fit.warned, !fit.last, -fit.letters].map(Number);
    const [a, b] = [order(one), order(other)];
    const k = a.findIndex((value, k) => value !== b[k]);
    return k < 0 ? 0 : a[k] - b[k];
  }

  function unrepeated(text) {
    if (text.length < LONG) return text;
    const seen = new Map();
    const last = (line) => {
      const form = line.replace(NOT_LETTERS, "");
      seen.set(form, (seen.get(form) ?? 0) + 1);
      return seen.get(form) <= REPEATED;
    };
    const pieces = text.split(LINE_ENDS).flatMap((line) => line.match(PIECE) ?? []);
    return mostTelling(pieces.reverse().filter(last).reverse()).join("\n");
  }

  function mostTelling(lines) {
    const near = new Set();
    for (const [number, line] of lines.entries())
      if (regex.TELLING.test(line)) for (let step = -AROUND; step <= AROUND; step++) near.add(number + step);
    const order = [...lines.keys()].sort((one, other) => near.has(other) - near.has(one) || other - one);
    let letters = 0;
    const beyond = order.findIndex((number) => (letters += lines[number].length + 1) > LONG);
    const chosen = beyond < 0 ? order : order.slice(0, beyond);
    return chosen.sort((one, other) => one - other).map((number) => lines[number]);
  }

  function linesOf(text) {
    const lines = [];
    let [code, usage] = [false, false]; // the line under a frame shows the code there; a usage goes on, set in
    for (const line of text.split(LINE_ENDS)) {
      usage = regex.USAGE.test(line) || (usage && /^\s/.test(line));
      const where = usage || regex.FRAME.test(line) || regex.CARETS.test(line);
      const raised = regex.RAISED.test(line) && !where && !line.includes(TRACEBACK);
      const warned = regex.WARNED.test(line) && !regex.NOT_WARNED.test(line);
      lines.push({ text: line.trim().split(/\s+/).join(" "), told: raised || !(where || code), raised, warned });
      code = where && !usage && !regex.CARETS.test(line) && !line.includes("frame #");
      if (raised && regex.BARE.test(line)) tellWhatWasAsserted(lines);
    }
    return lines;
  }

  function tellWhatWasAsserted(lines) {
    for (let number = lines.length - 2; number >= 0 && number > lines.length - 2 - NEAR; number--) {
      if (regex.ASSERTED.test(lines[number].text)) {
        lines[number].told = true;
        return;
      }
    }
  }

  function fitsOf(lines, several, others) {
    const [whole, ends] = joined(lines);
    const last = lines.findLastIndex((line) => line.raised);
    const told = lines.filter((line) => line.told).map((line) => line.text).join(" ");
    const fit = (entry, pattern, doubtful) => {
      const found = compiled(pattern).exec(whole);
      if (!found) return [];
      const number = ends.findIndex((end) => found.index + found[0].length <= end);
      const first = ends.findIndex((end) => found.index + 1 <= end);
      const decided = lines.slice(first, number + 1).map((line) => line.text).filter(Boolean);
      const letters = pattern.replace(/\\.|\W/g, "").length;
      const said = lines[number].told || compiled(pattern).test(told);
      const { warned } = lines[number];
      return [{ entry, lines: decided, letters, told: said, last: number >= last && last >= 0, warned, doubtful }];
    };
    return known.entries.flatMap((entry) => {
      const against = others || entry.unless.some((pattern) => compiled(pattern).test(whole));
      const fits = [
        ...entry.patterns.flatMap((pattern) => fit(entry, pattern, against)),
        ...entry.generic.flatMap((pattern) => fit(entry, pattern, against || !several)),
      ];
      return fits.sort(byPrecedence).slice(0, 1);
    });
  }

  function joined(lines) {
    const [texts, ends] = [[], []];
    let end = 0;
    for (const { text } of lines) {
      if (text) {
        end += text.length + (texts.length ? 1 : 0); // the blank between two
        texts.push(text);
      }
      ends.push(end);
    }
    return [texts.join(" "), ends];
  }

  function lastIsUnknown(lines, fits) {
    const number = lines.findLastIndex((line) => line.raised && !regex.REPORT.test(line.text));
    const own = fits.filter((fit) => fit.entry.after < REPORTED);
    if (number < 0 || own.some((fit) => fit.last)) return false;
    const end = lines.slice(number).map((line) => line.text).join(" ");
    const patterns = own.flatMap(({ entry }) => [...entry.patterns, ...entry.generic]);
    return !patterns.some((pattern) => compiled(pattern).test(end));
  }

  function guesses(lines, enough) {
    const said = lines.filter((line) => line.told).map((line) => line.text).join(" ");
    const likely = ranked(said).slice(0, CANDIDATES);
    return likely.length && share(likely[0], said) > enough ? likely : [];
  }

  function ranked(text) {
    const words = [...new Set(wordsOf(text))];
    const [inWhole, bySymptom] = [scores(whole(), words), scores(symptoms(), words)];
    const same = ([, counts]) => counts.size === words.length && words.every((word) => counts.has(word));
    const exact = new Set(symptoms().documents.filter(same).map(([entry]) => entry));
    const score = (entry) => inWhole.get(entry) + (bySymptom.get(entry) ?? 0);
    const order = (one, other) => exact.has(other) - exact.has(one) || score(other) - score(one);
    return known.entries.filter((entry) => inWhole.has(entry)).sort(order);
  }

  function share(entry, text) {
    const { documents, weights, unknown } = whole();
    const counts = documents.find(([other]) => other === entry)[1];
    const words = [...new Set(wordsOf(text))];
    const weight = (word) => weights.get(word) ?? unknown;
    return sum(words.filter((word) => counts.has(word)).map(weight)) / (sum(words.map(weight)) || 1);
  }

  function wordsOf(text) {
    const words = (text.toLowerCase().match(/[a-z0-9]+(?:_[a-z0-9]+)*/g) ?? []).flatMap((word) => {
      const parts = word.includes("_") ? word.split("_") : [];
      const numbered = (parts.length ? parts : [word]).flatMap((part) => /^([a-z]+)(\d+)$/.exec(part)?.slice(1) ?? []);
      return [word, ...parts, ...numbered];
    });
    return words.map((word) => (word.length > PLURAL && word.endsWith("s") ? word.slice(0, -1) : word));
  }

  /** BM25: the score of each entry that shares a word; of several documents of an entry the best one counts. */
  function scores({ documents, weights, length }, words) {
    const best = new Map();
    for (const [entry, counts, total] of documents) {
      const long = SATURATION * (1 - LENGTH + (LENGTH * total) / length);
      const held = words.filter((word) => counts.has(word)).map((word) => [weights.get(word), counts.get(word)]);
      const score = sum(held.map(([weight, count]) => (weight * count * (SATURATION + 1)) / (count + long)));
      if (score > (best.get(entry) ?? 0)) best.set(entry, score);
    }
    return best;
  }

  function index(texts) {
    const documents = known.entries.flatMap((entry) =>
      texts(entry).map((text) => {
        const [words, counts] = [wordsOf(text), new Map()];
        for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
        return [entry, counts, words.length];
      }),
    );
    const frequency = new Map();
    for (const [, counts] of documents)
      for (const word of counts.keys()) frequency.set(word, (frequency.get(word) ?? 0) + 1);
    const rarity = (count) => Math.log(1 + (documents.length - count + 0.5) / (count + 0.5));
    const weights = new Map([...frequency].map(([word, count]) => [word, rarity(count)]));
    const length = sum(documents.map(([, , total]) => total)) / documents.length;
    return { documents, weights, unknown: rarity(0), length };
  }

  const once = (make) => {
    let made;
    return () => (made ??= make());
  };
  const whole = once(() => index((entry) => [entry.text]));
  const symptoms = once(() => index((entry) => entry.symptoms));

  return answer;
})();
