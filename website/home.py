"""The first page: a field for an error text, the topics, README, and the notebooks as tiles."""

import html
import re

from course.tools.series import progress
from website import layout, notebook, topics

PICTURE = re.compile(
    r'<picture>\n<source [^>]*srcset="(?P<narrow>[^"]+)">\n<img src="(?P<wide>[^"]+)".*?</picture>', re.DOTALL
)
COMMENT = re.compile(r"<!--.*?-->\n")  # marks what a program writes into README
TITLE = re.compile(r"\A(# .*\n)")
DESCRIPTION = (
    "Paste an error text of multi-GPU PyTorch and read its cause and its fix, or learn in notebooks why it happens: "
    "DataParallel, DDP, FSDP2, tensor parallelism, hangs and checkpoints, on virtual GPUs, without a GPU."
)
HEAD = f"---\nmyst:\n  html_meta:\n    description: {DESCRIPTION!r}\n---\n"
# Texts to try, as programs print them.
EXAMPLES = {
    "two devices": "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, "
    "cuda:0 and cuda:1!",
    "a watchdog": "[rank1]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5, OpType=ALLREDUCE) ran for "
    "600029 milliseconds before timing out.",
    "missing keys": "RuntimeError: Error(s) in loading state_dict for Net: Missing key(s) in state_dict: "
    '"conv1.weight". Unexpected key(s) in state_dict: "module.conv1.weight".',
}
FIELD = """\
<form class="ask" data-explain role="search">
<label for="error-text">Paste an error text, a whole log, or a few words:</label>
<textarea id="error-text" rows="5" spellcheck="false" placeholder="{example}"></textarea>
<p class="ask-note">Nothing leaves this page. Try {examples}.</p>
<div class="ask-answer" aria-live="polite"></div>
</form>
"""


def page() -> str:
    """The markdown of the first page."""
    readme = COMMENT.sub("", (layout.ROOT / layout.HOME).read_text(encoding="utf-8"))
    readme = PICTURE.sub(in_page, readme)
    readme = TITLE.sub(lambda title: f"{title[1]}\n{field()}\n{by_topic()}\n", readme, count=1)
    return f"{HEAD}\n{readme}\n## The notebooks\n\n{series_tiles()}\n"


def field() -> str:
    """The field that answers an error text; static/ask.js brings it to life, and hides it where scripts are off."""
    buttons = [
        f'<button type="button" data-text="{html.escape(text)}">{name}</button>' for name, text in EXAMPLES.items()
    ]
    example = html.escape(next(iter(EXAMPLES.values())))
    return FIELD.format(example=example, examples=", ".join(buttons))


def by_topic() -> str:
    """Links to the pages of the topics, and to where the course begins."""
    first = layout.notebooks()[0].replace(".ipynb", ".html")
    links = "\n".join(f'<a href="{page}">{name}</a>' for name, page in topics.pages())
    start = f'<a class="start" href="{first}">Start the course</a>'
    return f'<nav class="topics" aria-label="Topics">\n{start}\n{links}\n</nav>\n'


def in_page(picture: re.Match[str]) -> str:
    """README's picture, which has a form for narrow screens, as two drawings of which the theme's styles show one."""
    forms = {"d-none d-md-block": picture["wide"], "d-md-none": picture["narrow"]}
    drawn = {shown: (layout.ROOT / file).read_text(encoding="utf-8") for shown, file in forms.items()}
    return "".join(f'<div class="{shown}">{notebook.drawing(markup)}</div>\n' for shown, markup in drawn.items())


def series_tiles() -> str:
    """The tiles of notebook 00, each a link to the page of its notebook."""
    return notebook.with_pages(progress().html, "notebooks/")
