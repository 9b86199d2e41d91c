"""The first page: README, and below it the map of the series, whose boxes lead to the notebooks."""

import re

from course.tools.series import draw
from website import layout, notebook

PICTURE = re.compile(
    r'<picture>\n<source [^>]*srcset="(?P<narrow>[^"]+)">\n<img src="(?P<wide>[^"]+)".*?</picture>', re.DOTALL
)
COMMENT = re.compile(r"<!--.*?-->\n")  # marks what a program writes into README
# A box of the map as `course.kit.figures.prerequisites` draws it: a frame, the notebook's number, lines of its title.
BOX = re.compile(r'<rect [^>]*/>\n<text [^>]*font-weight="bold">(?P<number>\d\d)</text>(?:\n<text [^>]*>[^<]*</text>)*')


def page() -> str:
    """The markdown of the first page."""
    readme = COMMENT.sub("", (layout.ROOT / layout.HOME).read_text(encoding="utf-8"))
    readme = PICTURE.sub(in_page, readme)
    return f"{readme}\n## The map of the notebooks\n\n{series_map()}\n"


def in_page(picture: re.Match[str]) -> str:
    """README's picture, which has a form for narrow screens, as two drawings of which the theme's styles show one."""
    forms = {"d-none d-md-block": picture["wide"], "d-md-none": picture["narrow"]}
    drawn = {shown: (layout.ROOT / file).read_text(encoding="utf-8") for shown, file in forms.items()}
    return "".join(f'<div class="{shown}">{notebook.drawing(markup)}</div>\n' for shown, markup in drawn.items())


def series_map() -> str:
    """The drawing of notebook 00 in the page itself, each box a link to its notebook.

    It is too wide for any page, so it keeps its size, at which it can be read, and scrolls.
    """
    pages = {path.rpartition("/")[2][:2]: path.replace(".ipynb", ".html") for path in layout.notebooks()}
    linked = BOX.sub(lambda box: f'<a href="{pages[box["number"]]}">\n{box[0]}\n</a>', draw().markup)
    return notebook.drawing(linked.replace("max-width:100%;", "max-width:none;", 1))
