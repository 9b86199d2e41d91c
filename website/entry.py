"""The page of one failure of the catalogue; its links count from its place on the site."""

import posixpath
import re
from dataclasses import replace
from pathlib import Path

from multigpu.failures import Failure, catalogue
from multigpu.failures.marking import marked
from website.layout import FAILURES, notebooks
from website.links import anchored


def page(entry: Failure) -> str:
    """One failure: its title, what people say who meet it, its message, its cause and its repair."""
    told = replace(entry, cause=linked(entry.cause), check=linked(entry.check), fix=linked(entry.fix))
    asked = f"*One sees:* {seen(entry)}\n\n" if entry.symptoms else ""
    return f"# {capital(marked(entry.title))}\n\n{asked}**{entry.marks}** · `{entry.id}`\n\n{text(told)}"


def seen(entry: Failure) -> str:
    """What people say who meet a failure: `hangs at the end of an epoch; stuck`."""
    return "; ".join(map(marked, entry.symptoms))


def linked(prose: str) -> str:
    """Prose that names other entries, with links to their pages."""
    names = sorted((entry.id for entry in catalogue() if "-" in entry.id), key=len, reverse=True)
    return re.sub(rf"(?<![\w`-])({'|'.join(names)})(?![\w`-])", r"[\1](\1.md)", prose)


def capital(title: str) -> str:
    """A title as it begins a page; one that begins with a name of a program, such as `barrier()`, stays as it is."""
    return title if re.match(r"`|\w*[_(.]", title) else title[:1].upper() + title[1:]


def text(entry: Failure) -> str:
    """Message, cause, program, repair, other wordings, and where people met it."""
    parts = [_fenced(entry.message, "text")]
    parts.append(f"*Cause.* {marked(entry.cause)}\n")
    if entry.check:
        parts.append(f"*Find out.* {marked(entry.check)}\n")
    if entry.program:
        parts.append(_fenced(entry.program, "python"))
    parts.append(f"*Fix.* {marked(entry.fix)}\n")
    if entry.repaired:
        parts.append(_fenced(entry.repaired, "python"))
    if entry.older:  # some entries have a dozen, and a reader of the page has found the entry already
        wordings = "; ".join(map(_inline, entry.older))
        parts.append(f"*Other wordings*, most of them of older versions: {wordings}\n")
    parts += [f"- {line}" for line in _further(entry)]
    return "\n".join(parts) + "\n"


def _further(entry: Failure) -> list[str]:
    lines = []
    if entry.helper:
        lines.append(f"helper: `python -m frcnn_lite copy {entry.helper}`")
    if entry.notebook:
        lines.append(f"notebook: [{entry.notebook}, {entry.section}]({_place(entry)})")
    return lines + [
        thread.cited.replace(f"*{thread.title}*", f"[{marked(thread.title)}]({thread.url})") for thread in entry.threads
    ]


def _place(entry: Failure) -> str:
    """Address of the section of a notebook that treats a failure."""
    (notebook,) = (path for path in notebooks() if Path(path).name.startswith(f"{entry.notebook}_"))
    return posixpath.relpath(notebook, FAILURES) + anchored(entry.section)


def _inline(message: str) -> str:
    """A message inside of a line; two backticks on each side hold one that has backticks itself."""
    return f"`` {message} ``" if "`" in message else f"`{message}`"


def _fenced(code: str, language: str) -> str:
    return f"```{language}\n{code.strip()}\n```\n"
