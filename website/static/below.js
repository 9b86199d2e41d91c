// What stands below a question's closed outcome, up to the next cell of code, would tell it: it opens with the outcome.
// Without this script the text is there, and so is it for a reader who searches the page, prints it, or follows a link to it.
document.addEventListener("DOMContentLoaded", () => {
  const below = new Map(); // the folded outcome: the blocks below it, in whatever sections they are
  let outcome;
  for (const block of document.querySelectorAll("article section > :not(section)")) {
    if (block.matches("div.cell")) outcome = block.querySelector(".outcome")?.closest("details");
    else if (outcome) below.set(outcome, [...(below.get(outcome) ?? []), block]);
  }

  const openAll = () => {
    for (const told of below.keys()) told.open = true;
  };
  for (const [told, blocks] of below) {
    const note = document.createElement("p");
    const button = Object.assign(document.createElement("button"), { textContent: "Open all outcomes", onclick: openAll });
    note.className = "below";
    note.append("The text here opens with the outcome above. ", button);
    blocks[0].before(note);
    const show = () => {
      note.hidden = told.open;
      for (const block of blocks) block.hidden = told.open ? false : "until-found";
    };
    for (const block of blocks) block.addEventListener("beforematch", () => (told.open = true));
    told.addEventListener("toggle", show);
    show();
  }
  addEventListener("beforeprint", openAll);

  const follow = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const shows = (block) => block.contains(target) || target === block.parentElement && block.matches("h2, h3, h4");
    const [told] = [...below].find(([, blocks]) => target && blocks.some(shows)) ?? [];
    if (!told || told.open) return;
    told.addEventListener("toggle", () => target.scrollIntoView(), { once: true });
    told.open = true;
  };
  addEventListener("hashchange", follow);
  follow();
});
