"""Prose of the catalogue in the form of a page: a long text becomes its first sentence and a list of the others."""

from multigpu.failures.sentences import ENOUGH, sentences


def listed(text: str) -> str:
    """A text as markdown: one paragraph, or its first sentence above a list of the others."""
    first, *others = sentences(text)
    if len(others) + 1 < ENOUGH:
        return f"{text.strip()}\n"
    return "\n".join([f"{first}\n", *(f"- {one}" for one in others), ""])


def first_sentence(text: str) -> str:
    """The first sentence alone."""
    return sentences(text)[0]
