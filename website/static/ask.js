// A pasted traceback in the field of the search. The field has one line, so the breaks between lines become signs that
// can be seen. A text as long as that goes behind the "#" of the search's address, which is sent to no server.
// The page of the search answers with failures of the catalogue first, and below come the pages that Sphinx finds.
// The first page has a field of its own, which answers below itself.

(() => {
  const BREAK = " ⏎ ";
  const LONG = 200; // letters; no page holds every word of a longer text, which is what Sphinx's own search asks for
  const MOST = 100_000; // letters kept of a log: browsers refuse addresses of megabytes, and the error stands at its end
  const FEW = 3; // words of a subject such as "tensor parallel"
  const MORE = 3; // failures that are named beside the first
  const FIELD = "form.bd-search input";

  document.addEventListener("paste", (event) => {
    const text = event.clipboardData?.getData("text").trim() ?? "";
    if (!event.target.matches?.(FIELD) || !text.includes("\n")) return;
    event.preventDefault();
    const { selectionStart, selectionEnd } = event.target;
    event.target.setRangeText(text.split(/\r?\n/).join(BREAK), selectionStart, selectionEnd, "end");
  });

  document.addEventListener("submit", (event) => {
    const text = event.target.querySelector(FIELD)?.value ?? "";
    if (text.length <= LONG && !text.includes(BREAK)) return;
    event.preventDefault();
    const root = document.documentElement.dataset.content_root;
    const end = text.slice(-MOST).replace(/^[\udc00-\udfff]/, ""); // not the second half of a sign that was cut in two
    location.href = `${root}search.html#${encodeURIComponent(end)}`;
  });

  const element = (name, className = "", ...inside) => {
    const made = Object.assign(document.createElement(name), { className });
    made.append(...inside);
    return made;
  };
  /** A title or a cause, in which code stands between grave accents. */
  const prose = (text) => text.split("`").map((part, k) => (k % 2 ? element("code", "", part) : part));
  const link = (title, page) => {
    const href = `${document.documentElement.dataset.content_root}${page}`;
    return Object.assign(element("a", "", ...prose(title)), { href });
  };
  const linked = ({ id, title }) => link(title, `failures/${id}.html`);
  const list = (links) => element("ul", "", ...links.map((one) => element("li", "", one)));

  /** What the catalogue says to a text, or nothing. `long`: also where it knows nothing. */
  function said(text, long) {
    const { TOPICS, LESSONS } = window.catalogueOfFailures;
    const name = text.trim().toLowerCase();
    const chapters = Object.entries(TOPICS).find(([topic]) => topic === name)?.[1] ?? [];
    const lesson = LESSONS[name];
    if (lesson || chapters.length) {
      const links = [...(lesson ? [[`Read about it: ${lesson[0]}`, lesson[1]]] : []), ...chapters];
      const head = "This names a topic and not a failure:";
      return [element("p", "", head), list(links.map(([title, href]) => link(title, href)))];
    }
    const answer = window.explain(text);
    // A subject of few words that names no complaint gets no guess: the pages below are a better answer.
    if (!answer.sure && !long && name.split(/\s+/).length <= FEW && !complains(name)) return [];
    return answer.entries.length || long ? shown(answer) : [];
  }
  const complains = (name) =>
    /error|fail|hang|stuck|fr[eo]ez|slow|\boom\b|memory|\bnan\b|time-?out|\bdie|crash|kill|worse|wrong|[_:(]/.test(name);

  function shown({ entries: [first, ...others], sure, cause }) {
    if (!first) return [element("p", "", "The catalogue of failures has nothing to say to this text.")];
    const head = sure
      ? [element("strong", "", "The text holds the message of this failure:")]
      : [element("strong", "", "A guess"), ", since the text holds no message that the catalogue knows:"];
    const more = others.slice(0, MORE).map(linked);
    const [fix, ...also] = first.fix;
    const whole = link("The whole answer, with how to find out and a program", `failures/${first.id}.html`);
    return [
      element("p", "", ...head),
      element("p", "first", linked(first)),
      element("p", "", element("strong", "", "Why: "), ...prose(cause)),
      element("p", "", element("strong", "", "Fix: "), ...prose(fix)),
      ...(also.length ? [element("ul", "", ...also.map((one) => element("li", "", ...prose(one))))] : []),
      element("p", "", whole),
      ...(more.length ? [element("p", "", "It may also be:"), list(more)] : []),
    ];
  }

  /** Load the catalogue and its search, which only a reader who asks needs. */
  let loading;
  function catalogue() {
    const root = document.documentElement.dataset.content_root;
    const load = (name) =>
      new Promise((done, failed) => {
        const script = element("script");
        Object.assign(script, { src: `${root}_static/${name}.js`, onload: done, onerror: failed });
        document.head.append(script);
      });
    return (loading ??= window.explain ? Promise.resolve() : load("catalogue").then(() => load("explain")));
  }

  document.addEventListener("DOMContentLoaded", () => {
    const form = document.querySelector("form[data-explain]");
    if (!form) return;
    const field = form.querySelector("textarea");
    const answer = form.querySelector(".ask-answer");
    let waiting;
    const ask = async () => {
      await catalogue();
      const text = field.value.slice(-MOST);
      const inside = text.trim() ? said(text, text.includes("\n") || text.length > LONG) : [];
      answer.replaceChildren(...(inside.length ? [element("section", "explained", ...inside)] : []));
    };
    field.addEventListener("focus", catalogue, { once: true });
    field.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(ask, 250);
    });
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("click", ({ target }) => {
      if (!target.dataset.text) return;
      field.value = target.dataset.text;
      ask();
    });
  });

  document.addEventListener("DOMContentLoaded", () => {
    // What Sphinx quotes of a page it finds: its article, without the words of the buttons above.
    if (typeof Search === "undefined") return;
    const text = Search.htmlToText;
    Search.htmlToText = (page, anchor) => {
      const article = new DOMParser().parseFromString(page, "text/html").querySelector("article");
      return text(article ? `<main role="main">${article.outerHTML}</main>` : page, anchor);
    };
  });

  addEventListener("load", () => {
    // After Sphinx, which empties the fields where the address has no query.
    const results = document.querySelector("#search-results");
    if (!results) return;
    addEventListener("hashchange", () => location.reload());
    const typed = new URLSearchParams(location.search).get("q") ?? "";
    const pasted = decodeURIComponent(location.hash.slice(1));
    const text = pasted || typed;
    if (!text.trim()) return;
    if (pasted) for (const field of document.querySelectorAll(FIELD)) field.value = pasted;
    const inside = said(text.replaceAll(BREAK, "\n"), Boolean(pasted));
    if (inside.length) results.before(element("section", "explained", ...inside));
  });
})();
