"""Links as a page of the site has them: to the page of a file where it has one, to the file itself elsewhere."""

import posixpath
import re
from pathlib import PurePosixPath
from urllib.parse import unquote

from website.layout import ROOT, Layout

CODE = r"^(?P<fence>```|~~~).*?^(?P=fence)|^ {4}.*?$|`[^`\n]+`"
TEXT = r"[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*"  # brackets may stand in it, as in `x[0]`
TARGET = r"[^()\s]+(?:\([^()\s]*\)[^()\s]*)*"  # so may a pair of parentheses here
# Whichever begins first: a link whose words are code is a link, and what looks like a link in a program is not one.
LINK_OR_CODE = re.compile(rf"{CODE}|(?<!!)\[(?P<text>{TEXT})\]\((?P<target>{TARGET})\)", re.DOTALL | re.MULTILINE)


def on_site(text: str, path: str, place: str, layout: Layout, repo: str = "") -> str:
    """Markdown of the file `path`, with its links rewritten for the page `place` (both from their roots).

    A link to a file that is not a page leads to the file at GitHub where `repo`, "owner/name", is known; without it the
    words stay and the link goes, because a page that nobody serves must not be promised.
    """

    def rewritten(match: re.Match[str]) -> str:
        target = match["target"]
        if target is None or re.match(r"[a-z]+:", target):
            return match[0]
        if target.startswith("#"):
            return f"[{match['text']}]({anchored(target)})"
        file, _, anchor = unquote(target).partition("#")
        inside = posixpath.normpath(posixpath.join(PurePosixPath(path).parent, file))
        page = layout.address(inside)
        if page is None:
            return (
                f"[{match['text']}](https://github.com/{repo}/{kind(inside)}/main/{inside})" if repo else match["text"]
            )
        to = posixpath.relpath(f"{page}.md", PurePosixPath(place).parent)
        to = re.sub(r"\.md$", suffix(inside, page), to)
        return f"[{match['text']}]({to}{anchored(anchor)})"

    return LINK_OR_CODE.sub(rewritten, text)


def suffix(file: str, page: str) -> str:
    """The suffix of the source of a page."""
    return ".ipynb" if file.endswith(".ipynb") and not page.startswith("failures") else ".md"


def kind(inside: str) -> str:
    """How GitHub addresses a path: a folder is a tree, a file a blob."""
    return "tree" if (ROOT / inside).is_dir() else "blob"


def anchored(anchor: str) -> str:
    """An anchor of JupyterLab ("#The-table-by-name") or of GitHub ("#the-table-by-name") in the form of the latter."""
    anchor = unquote(anchor.removeprefix("#")).lower().replace(" ", "-")
    return "#" + re.sub(r"[^\w\-]", "", anchor) if anchor else ""
