"""The page of one failure of the catalogue; its links count from its place on the site.

Who comes here has an error text, so the page begins with it and with its repair. How to tell the causes apart comes
next; programs, other wordings and sources are folded.
"""

import difflib
import json
import posixpath
import re
from pathlib import Path

from multigpu.failures import Failure, catalogue
from multigpu.failures.marking import marked
from multigpu.failures.sentences import ENOUGH, sentences
from website.layout import FAILURES, notebooks
from website.links import anchored
from website.prose import first_sentence, listed

LONG = 110  # letters of a title
SMALL = 12  # lines that a change may have to be shown beside the repair
CLASS = re.compile(r"(?:[\w.]*\.)?(\w+(?:Error|Exception|Warning)): ")
TESTED = {
    "today": "a test makes it happen on virtual GPUs, and runs the repair",
    "simulated only": "a test acts out what a GPU does here, and runs the repair",
    "hardware": "not tested: it takes a GPU, a network or a system that the tests do not have",
    "other library": "not tested: it takes a library that the tests do not have",
    "some runs": "not tested: it is a race, which shows in some runs only",
}


def page(entry: Failure) -> str:
    """One failure: its message, its repair, which cause is the reader's, how to find out, and the rest folded."""
    parts = [head(entry), f"# {headline(entry)}\n", lead(entry), repair(entry), *causes(entry)]
    if entry.check:
        parts.append(f"## How to find out\n\n{listed(prose(entry.check))}")
    parts += [read_on(entry), *programs(entry), *wordings(entry), *sources(entry)]
    return "\n".join(part for part in parts if part)


def head(entry: Failure) -> str:
    """What search engines and those who share the page show of it."""
    told = json.dumps(f"{plain(entry)}. {first_sentence(entry.cause)}", ensure_ascii=False)
    title = json.dumps(plain(entry), ensure_ascii=False)
    meta = f'    description: {told}\n    "property=og:title": {title}\n    "property=og:description": {told}\n'
    return f"---\nmyst:\n  html_meta:\n{meta}---\n"


def plain(entry: Failure) -> str:
    """The title without marks for code, with the message where it is not the title."""
    return capital(entry.title) if entry.silent else f"{short(entry.message)}: {entry.title}"


def headline(entry: Failure) -> str:
    """The title of a page: the message, or where nothing is raised what happens."""
    return capital(marked(entry.title)) if entry.silent else inline(short(entry.message))


def short(message: str) -> str:
    """The first line of a message without the class of the error, cut between two words where it is long."""
    line = CLASS.sub("", message.strip().splitlines()[0], count=1)
    return line if len(line) <= LONG else f"{line[:LONG].rpartition(' ')[0].rstrip(',;:')} …"


def lead(entry: Failure) -> str:
    """What happens, what backs it, and the whole message where the title has only a part of it."""
    raised = CLASS.match(entry.message)
    kind = f" (`{raised[1]}`)" if raised else ""
    lines = [] if entry.silent else [f"**{capital(marked(entry.title))}**{kind}"]
    if entry.symptoms:
        lines.append(f"*One sees:* {seen(entry)}.")
    lines.append(f"*Tested:* {tested(entry)}. Its name in the catalogue is `{entry.id}`.")
    whole = short(entry.message) == CLASS.sub("", entry.message.strip(), count=1)
    said = "" if entry.silent or whole else fenced(entry.message, "text")
    return "\n\n".join([*lines, said])


def tested(entry: Failure) -> str:
    """What backs an entry, in words for somebody who does not know its marks."""
    if entry.mark in TESTED:
        return TESTED[entry.mark]
    return f"it happens {entry.mark}, and a test sees it gone in newer versions"


def seen(entry: Failure) -> str:
    """What people say who meet a failure: `hangs at the end of an epoch; stuck`."""
    return "; ".join(map(marked, entry.symptoms))


def repair(entry: Failure) -> str:
    """The box with the fix, and the lines of the program that it changes if they are few."""
    inside = listed(prose(entry.fix))
    changed = changes(entry)
    if 0 < len(changed) <= SMALL:
        inside += "\n" + fenced("\n".join(changed), "diff")
    return f"````{{admonition}} Fix\n:class: tip\n\n{inside}````\n"


def changes(entry: Failure) -> list[str]:
    """The lines that the repair takes out and puts in, with the one line before and after them."""
    if not entry.repaired:
        return []
    before, after = entry.program.strip().splitlines(), entry.repaired.strip().splitlines()
    told = list(difflib.unified_diff(before, after, lineterm="", n=1))[3:]
    return ["  ..." if line.startswith("@@") else line for line in told]


def causes(entry: Failure) -> list[str]:
    """Why it happens. A text of several sentences names several situations, of which one is the reader's."""
    several = len(sentences(entry.cause)) >= ENOUGH
    return [f"## {'Which of these is yours?' if several else 'Why'}\n", listed(prose(entry.cause))]


def read_on(entry: Failure) -> str:
    """The notebook that treats the failure, and the helper that mends it."""
    lines = []
    if entry.notebook:
        lines.append(f"Notebook [{entry.notebook}, {entry.section}]({_place(entry)}) shows it happen.")
    if entry.helper:
        lines.append(f"`python -m frcnn_lite copy {entry.helper}` copies a helper that mends it, with its test.")
    return " ".join(lines) + "\n" if lines else ""


def programs(entry: Failure) -> list[str]:
    """The program that fails, and the same repaired."""
    if not entry.program:
        return []
    inside = [f"It ends in `{short(entry.message)}`.\n" if entry.silent else "", fenced(entry.program, "python")]
    if entry.repaired:
        inside += ["Repaired:\n", fenced(entry.repaired, "python")]
    return [folded("A program that fails" + (", and the same repaired" if entry.repaired else ""), *inside)]


def wordings(entry: Failure) -> list[str]:
    """Other forms of the message: some entries have a dozen, and a reader of the page has found the entry already."""
    if not entry.older:
        return []
    return [
        folded(f"Other wordings ({len(entry.older)})", *(f"- {inline(' '.join(text.split()))}" for text in entry.older))
    ]


def sources(entry: Failure) -> list[str]:
    """The public threads where people met it, folded."""
    cited = sources_of(entry)
    return [folded(f"Threads where people met it ({len(cited)})", *(f"- {line}" for line in cited))] if cited else []


def sources_of(entry: Failure) -> list[str]:
    """The public threads where people met it, each with a link."""
    return [
        thread.cited.replace(f"*{thread.title}*", f"[{marked(thread.title)}]({thread.url})") for thread in entry.threads
    ]


def folded(title: str, *lines: str) -> str:
    """Markdown that a reader may open."""
    return "\n".join(["<details>", f"<summary>{title}</summary>\n", *lines, "\n</details>\n"])


def prose(text: str) -> str:
    """Prose of an entry as markdown, with its code marked and links to the entries that it names."""
    return marked(linked(text))


def linked(text: str) -> str:
    """Prose that names other entries, with links to their pages."""
    names = sorted((entry.id for entry in catalogue() if "-" in entry.id), key=len, reverse=True)
    return re.sub(rf"(?<![\w`-])({'|'.join(names)})(?![\w`-])", r"[\1](\1.md)", text)


def capital(title: str) -> str:
    """A title as it begins a page; one that begins with a name of a program, such as `barrier()`, stays as it is."""
    return title if re.match(r"`|\w*[_(.]", title) else title[:1].upper() + title[1:]


def inline(message: str) -> str:
    """A message inside of a line; two backticks on each side hold one that has backticks itself."""
    return f"`` {message} ``" if "`" in message else f"`{message}`"


def fenced(code: str, language: str) -> str:
    """Code in a box of its own."""
    return "```{}\n{}\n```\n".format(language, code.strip("\n"))


def _place(entry: Failure) -> str:
    """Address of the section of a notebook that treats a failure."""
    (notebook,) = (path for path in notebooks() if Path(path).name.startswith(f"{entry.notebook}_"))
    return posixpath.relpath(notebook, FAILURES) + anchored(entry.section)
