"""The sentences of a cause, and which of them are about the text that somebody has.

A message that several causes share has one entry. Its cause quotes in each sentence the words that only this case has.
"""

import re

ENOUGH = 4  # sentences; of fewer none need be picked out
LETTERS = 8  # of a quoted part that is a single word: shorter ones, as "cuda", are in every text
# A sentence that leans on the one before it, so that the two stay together.
LEANING = re.compile(
    r"(It|Its|They|Their|Then|This|That|These|Those|There|So|Else|Both|Or|And|But|The (first|second|other|same))\b"
)
BREAK = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'`(])")
QUOTED = re.compile(r'"([^"]+)"')


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


def quoting(cause: str, lines: tuple[str, ...]) -> str:
    """The sentences of a cause that quote these lines; empty if none does, or if the cause has few or begins so."""
    text = _even(" ".join(lines))
    picked = [sentence for sentence, quotes in cases(cause) if any(_is_in(words, text) for words in quotes)]
    return "" if picked == sentences(cause)[:1] else " ".join(picked)


def cases(cause: str) -> list[tuple[str, list[str]]]:
    """Each sentence of a cause that quotes a message, with the words that it quotes; none if the cause has few."""
    told = sentences(cause)
    quotes = [(sentence, list(filter(_is_telling, map(_even, QUOTED.findall(sentence))))) for sentence in told]
    return [case for case in quotes if case[1]] if len(told) >= ENOUGH else []


def _is_telling(words: str) -> bool:
    return len(words) >= LETTERS or " " in words


def _is_in(words: str, text: str) -> bool:
    """Whether a text has the quoted words; an ellipsis in these is for anything."""
    return re.search(".*".join(map(re.escape, words.split("..."))), text) is not None


def _even(text: str) -> str:
    """A text in small letters and with single blanks."""
    return " ".join(text.lower().split())
