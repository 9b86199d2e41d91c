"""A notebook by its number, for the tests of what it says: its prose, its cells, and what they printed."""

from functools import cache

from stored import Notebook

from course.kit.files import NOTEBOOKS


@cache
def notebook(number: str) -> Notebook:
    """The stored notebook of that number, two digits."""
    (path,) = NOTEBOOKS.glob(f"{number}_*.ipynb")
    return Notebook.read(path)


@cache
def prose(number: str) -> str:
    """All its prose in one line, because a statement may run over the end of a line."""
    return " ".join(" ".join(text for _, text in notebook(number).prose).split())


def says(number: str, words: str) -> bool:
    """Whether `words` are in its prose, wherever its lines break."""
    return " ".join(words.split()) in prose(number)


def cell(number: str, words: str) -> str:
    """The source of the one code cell that has these words."""
    (found,) = [cell.source for _, cell in notebook(number).code if words in cell.source]
    return found


def output(number: str, words: str) -> str:
    """The text that the one code cell printed whose source has these words."""
    (found,) = [cell for _, cell in notebook(number).code if words in cell.source]
    return "".join(output.get("text", "") for output in found.outputs)
