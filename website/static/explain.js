// Which failures of the catalogue speak of a text: `python -m multigpu explain` in the browser. It is the module
// multigpu/failures (match, reading, question) function by function, with the same names, and a test compares their answers.

window.explain = (() => {
  const known = window.catalogueOfFailures;
  const { ENOUGH, CANDIDATES, REPORTED, LAST, FEW, MISSPELT, ALIKE, MANY, OTHER_COMPLAINT, FEW_WORDS } = known;
  const { TRACEBACK, TYPESET, LONG, REPEATED, AROUND, AT_MOST, NEAR } = known;
  const { OF_ANY, OF_OURS, LOOSE, ONE_WORD, IMPLIED, SUBJECTS } = known;
  const [EMPTY, DOMAIN, COMPLAINTS] = [known.EMPTY, known.DOMAIN, known.COMPLAINTS].map((words) => new Set(words));
  const regex = Object.fromEntries(Object.entries(known.expressions).map(([name, form]) => [name, new RegExp(...form)]));
  const [COLOURS, ENDLESS, REPETITIONS, PIECE] = ["COLOURS", "ENDLESS", "REPETITIONS", "PIECE"].map(
    (name) => new RegExp(regex[name], "g"),
  );
  const PLACES = known.PLACES.map(([pattern, names]) => [new RegExp(pattern, "i"), names]);
  const NOT_LETTERS = new RegExp(regex.NOT_LETTERS, "g");
  const LINE_ENDS = /\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]/;
  const PHRASES = known.PHRASES.map(([pattern, meaning]) => [new RegExp(pattern, "g"), meaning]);

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
  const plain = (text) => text.trim().split(/\s+/).join(" ");
  const meaning = (word) => (Object.hasOwn(ONE_WORD, word) ? ONE_WORD[word] : word);

  /** The entries for a text, the likeliest first, and whether it holds a message of the first or is a guess. */
  function answer(given) {
    const typed = given.replace(COLOURS, "").replace(/[^\x00-\x7f]/g, (letter) => TYPESET[letter] ?? letter);
    const text = unrepeated(typed.replace(ENDLESS, "$1$2"));
    if (regex.FOREIGN.test(text) && !regex.PYTORCH.test(text)) return { entries: [], sure: false };
    const lines = linesOf(text);
    const others = regex.OTHERS.test(text) && !regex.TORCH.test(text);
    const fits = fitsOf(lines, regex.SEVERAL.test(text), others).sort(byPrecedence);
    const raised = lines.some((line) => line.raised && !line.warned) || text.includes(TRACEBACK);
    const sure = fits.filter((fit) => fit.told && !fit.doubtful && !(fit.warned && raised));
    if (sure.length && !lastIsUnknown(lines, sure)) return { entries: sure.map((fit) => fit.entry), sure: true };
    return { entries: fits.length ? fits.map((fit) => fit.entry) : ours(text) ? guesses(text, lines) : [], sure: false };
  }

  function ours(text) {
    const few = text.trim().split(/\s+/).length <= FEW_WORDS;
    return few || regex.PYTORCH.test(text) || regex.KINDRED.test(text);
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
      lines.push({ text: plain(line), told: raised || !(where || code), raised, warned });
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
      const letters = pattern.replace(/\\.|\W/g, "").length;
      const said = lines[number].told || compiled(pattern).test(told);
      return [{ entry, letters, told: said, last: number >= last && last >= 0, warned: lines[number].warned, doubtful }];
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

  function guesses(text, lines) {
    const raised = lines.filter((line) => line.raised).map((line) => line.text);
    const asked = raised.length ? raised.at(-1) : plain(text);
    const symptoms = raised.length ? [] : bySymptom(asked);
    const withWords = known.entries.filter((entry) => entry.words.some((words) => compiled(words).test(asked)));
    const there = atPlace(lines, raised.length);
    const once = (entries) => [...new Set(entries)];
    const alike = () => likeness(asked).filter(([, share]) => share > ENOUGH).map(([entry]) => entry);
    if (raised.length) {
      const found = once([...withWords.filter((entry) => there.includes(entry)), ...there, ...withWords]);
      return found.length ? found : alike();
    }
    let found = once([...symptoms, ...withWords]);
    if (found.length < CANDIDATES) found = once([...found, ...bySymptom(asked, LOOSE)]).slice(0, CANDIDATES);
    const inWords = lines.every((line) => line.told); // a question, and not a piece of a traceback
    const about = inWords && !found.length ? bySubject(asked) : [];
    found = once([...found, ...about, ...there]).slice(0, Math.max(found.length, CANDIDATES));
    return found.length ? found : alike();
  }

  function atPlace(lines, raised) {
    const frames = raised ? lines.filter((line) => !line.told).slice(-LAST) : [];
    const said = lines.filter((line) => line.told).slice(-LAST);
    const names = PLACES.find(([pattern]) => [...frames, ...said].some(({ text }) => pattern.test(text)))?.[1] ?? [];
    return named(names);
  }

  const named = (names) => names.map((name) => known.entries.find((entry) => entry.id === name));

  function bySubject(question) {
    const asked = askedFor(question);
    for (const word of implied(asked)) asked.add(word);
    if (![...asked].some((word) => DOMAIN.has(word))) return [];
    const fits = ([needed]) => needed.every((words) => words.some((word) => asked.has(word)));
    return named(SUBJECTS.find(fits)?.[1] ?? []);
  }

  /** What goes without saying: a question about DDP is about several GPUs. */
  const implied = (asked) => new Set([...asked].flatMap((word) => (Object.hasOwn(IMPLIED, word) ? IMPLIED[word] : [])));

  function meanings(text) {
    let said = text.toLowerCase().replace(/[`*"]/g, "").replace(/(?<=[a-z0-9])-(?=[a-z])/g, " ");
    for (const [pattern, words] of PHRASES) said = said.replace(pattern, words);
    const words = said.match(/[a-z_][a-z_0-9']{1,}|-\d+|\b13[79]\b/g) ?? [];
    const meant = words.filter((word) => !EMPTY.has(word)).map(meaning);
    return new Set(meant.filter((word) => !EMPTY.has(word)));
  }

  function askedFor(question) {
    const words = meanings(question);
    return words.size > MANY ? words : new Set([...words].map(spelt));
  }

  function bySymptom(question, wanted) {
    const asked = new Set([...askedFor(question)].filter((word) => !EMPTY.has(word)));
    const said = question.toLowerCase().match(/[a-z]+|[a-z_]+/g) ?? [];
    const ours = [...said.map(meaning), ...asked].some((word) => DOMAIN.has(word));
    if (!asked.size || (!ours && (wanted || asked.size > FEW))) return [];
    const demand = wanted ?? (ours ? OF_OURS : OF_ANY);
    const all = sum([...asked].map(weight));
    const unsaid = implied(asked);
    const complaint = [...asked].filter((word) => COMPLAINTS.has(word));
    const scores = new Map();
    for (const [entry, symptoms] of symptomsOf()) {
      for (const words of symptoms) {
        const shared = [...words].filter((word) => asked.has(word));
        const left = shared.length > 1 ? [...words].filter((word) => unsaid.has(word) && !asked.has(word)) : [];
        const meant = sum(shared.map(weight));
        const share = (meant + sum(left.map(weight))) / sum([...words].map(weight));
        const complains = complaint.some((word) => words.has(word));
        const others = [...words].some((word) => COMPLAINTS.has(word) && !asked.has(word));
        const same = !others && (complains || !complaint.length);
        const telling = shared.filter((word) => !DOMAIN.has(word)).length;
        const enough = words.size > 2 ? share > demand.named && telling >= demand.telling : shared.length === words.size;
        const explained = demand.explained * (complains ? OTHER_COMPLAINT : 1) * all;
        const score = meant * share ** 2 * (same ? 1 : OTHER_COMPLAINT);
        if (enough && meant > explained) scores.set(entry, Math.max(scores.get(entry) ?? 0, score));
      }
    }
    return [...scores.keys()].sort((one, other) => scores.get(other) - scores.get(one));
  }

  const once = (make) => {
    let made;
    return () => (made ??= make());
  };
  const symptomsOf = once(() => known.entries.map((entry) => [entry, entry.symptoms.map(meanings)]));
  const rarity = once(() => {
    const frequency = new Map();
    for (const [, symptoms] of symptomsOf())
      for (const word of new Set(symptoms.flatMap((words) => [...words])))
        frequency.set(word, (frequency.get(word) ?? 0) + 1);
    const total = 1 + symptomsOf().filter(([, symptoms]) => symptoms.length).length;
    const rarities = new Map([...frequency].map(([word, count]) => [word, Math.log(total / count)]));
    return rarities.set("", Math.log(total) / 2);
  });
  const weight = (word) => rarity().get(word) ?? rarity().get("");

  const spelt = kept((word) => {
    const symptoms = new Set([...rarity().keys(), ...EMPTY, ...DOMAIN]);
    if (symptoms.has(word) || word.length < MISSPELT) return word;
    let [meant, best] = [word, ALIKE];
    for (const other of [...new Set([...symptoms, ...Object.keys(ONE_WORD)])].sort()) {
      const alike = other[0] === word[0] ? similarity(other, word) : 0;
      if (alike >= best) [meant, best] = [other, alike];
    }
    return meaning(meant);
  });

  /** How much two words have in common, 0 to 1, as Python's difflib counts it: by their longest common pieces. */
  const similarity = (a, b) => (2 * common(a, b)) / (a.length + b.length);
  function common(a, b) {
    let [start, from, size] = [0, 0, 0];
    for (let i = 0; i < a.length; i++)
      for (let j = 0; j < b.length; j++) {
        let k = 0;
        while (i + k < a.length && j + k < b.length && a[i + k] === b[j + k]) k++;
        if (k > size) [start, from, size] = [i, j, k];
      }
    if (!size) return 0;
    return size + common(a.slice(0, start), b.slice(0, from)) + common(a.slice(start + size), b.slice(from + size));
  }

  const kindOfError = /(error|exception)$/;
  const wordsOf = (text) => new Set((text.toLowerCase().match(/[a-z_]{3,}/g) ?? []).filter((word) => !kindOfError.test(word)));
  const wordsOfEntries = once(() => {
    const held = known.entries.map((entry) => wordsOf([entry.id, entry.title, entry.message, ...entry.symptoms].join(" ")));
    const frequency = new Map();
    for (const words of held) for (const word of words) frequency.set(word, (frequency.get(word) ?? 0) + 1);
    return { held, frequency };
  });

  function likeness(text) {
    const { held, frequency } = wordsOfEntries();
    const words = [...wordsOf(text)];
    const weights = words.map((word) => Math.log((1 + held.length) / (1 + (frequency.get(word) ?? 0))));
    const total = sum(weights) || 1;
    const shares = known.entries.map((entry, k) => [entry, sum(weights.filter((_, n) => held[k].has(words[n]))) / total]);
    return shares.sort(([, one], [, other]) => other - one);
  }

  return answer;
})();
