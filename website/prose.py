"""Prose of the catalogue in the form of a page: a long text becomes its first sentence and a list of the others."""

import re

ENOUGH = 4  # sentences; fewer stay one paragraph
# A sentence that leans on the one before it, so that the two stay together.
LEANING = re.compile(
    r"(It|Its|They|Their|Then|This|That|These|Those|There|So|Else|Both|Or|And|But|The (first|second|other|same))\b"
)
BREAK = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'`(])")


def sentences(text: str) -> list[str]:
    """The sentences of a text, each with those that lean on it. None is cut within quotes, code or parentheses."""
    whole: list[str] = []
    open_ = False
    for piece in BREAK.split(text.strip()):
        if whole and (open_ or LEANING.match(piece)):
            whole[-1] += f" {piece}"
        else:
            whole.append(piece)
        open_ = _is_open(whole[-1])
    return whole


def _is_open(text: str) -> bool:
    """Whether a quote, code or a parenthesis of the text has not ended yet."""
    return text.count('"') % 2 == 1 or text.count("`") % 2 == 1 or text.count("(") > text.count(")")


def listed(text: str) -> str:
    """A text as markdown: one paragraph, or its first sentence above a list of the others."""
    first, *others = sentences(text)
    if len(others) + 1 < ENOUGH:
        return f"{text.strip()}\n"
    return "\n".join([f"{first}\n", *(f"- {one}" for one in others), ""])


def first_sentence(text: str) -> str:
    """The first sentence alone."""
    return sentences(text)[0]
