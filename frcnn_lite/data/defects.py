"""Defects of annotated pictures, and what is done about each: it is always reported, and never passed over."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

from frcnn_lite.printable import printable

# The first action of each kind is the default.
ACTIONS = {
    "unreadable": ("skip", "raise"),
    "not_unique": ("skip", "raise"),
    "other_size": ("skip", "keep", "raise"),
    "no_area": ("drop", "skip", "raise"),
    "outside": ("clip", "drop", "skip", "raise"),
    "unknown_class": ("drop", "skip", "raise"),
    "duplicate": ("drop", "keep", "skip", "raise"),
    "emptied": ("skip", "keep", "raise"),
    "empty": ("keep", "skip", "raise"),
}
REPAIRS = {
    "unreadable": "repair or remove what is named here",
    "not_unique": "give each image an entry and an id of its own, and each category an id and a name of its own",
    "other_size": "write the size of the image, and draw the boxes on this image",
    "no_area": "write the corners as finite numbers, the smaller ones first",
    "outside": "move the corners into the picture",
    "unknown_class": "correct the name, or add it to the list of classes",
    "duplicate": "remove all but one",
    "emptied": "repair its objects, or remove them where there is nothing to be found",
    "empty": "annotate what is in the picture, unless it shows background",
}


class Defect(NamedTuple):
    """One thing that is wrong with the data.

    Attributes:
        file: where it was found.
        kind: the field of `Handling` that decides about it.
        detail: what exactly is wrong.
    """

    file: str
    kind: str
    detail: str


@dataclass(frozen=True)
class Handling:
    """How a picture or a box with a defect is treated; the defect is reported in any case.

    A picture can be skipped, and an object dropped; "raise" refuses the data. data/README.md describes each kind, and
    the defaults below are the first of `ACTIONS`.
    Raises ValueError for an action that the kind does not have.
    """

    unreadable: str = "skip"
    not_unique: str = "skip"
    other_size: str = "skip"
    no_area: str = "drop"
    outside: str = "clip"
    unknown_class: str = "drop"
    duplicate: str = "drop"
    emptied: str = "skip"
    empty: str = "keep"

    def __post_init__(self) -> None:
        for field in fields(self):
            if getattr(self, field.name) not in ACTIONS[field.name]:
                raise ValueError(
                    f"`{field.name}` must be one of {ACTIONS[field.name]}, got {getattr(self, field.name)!r}"
                )

    @classmethod
    def parse(cls, choices: Sequence[str]) -> "Handling":
        """From texts like "outside=drop". Raises ValueError for anything else."""
        pairs = dict(choice.partition("=")[::2] for choice in choices)
        if unknown := pairs.keys() - ACTIONS.keys():
            raise ValueError(f"no defect is called {sorted(unknown)[0]!r}; the kinds are {', '.join(ACTIONS)}")
        return cls(**pairs)

    def refuse(self, defects: Sequence[Defect]) -> None:
        """Raises ValueError that lists the defects which are not to be put up with, if there are any."""
        if fatal := [defect for defect in defects if getattr(self, defect.kind) == "raise"]:
            raise ValueError("the data has defects that are not to be put up with:\n" + describe_defects(fatal))


def describe_defects(defects: Sequence[Defect], per_kind: int = 5) -> str:
    """The defects by kind, the first `per_kind` of each with file and detail, one a line, and what to do about them."""
    lines = []
    for kind, count in Counter(defect.kind for defect in defects).items():
        found = [printable(f"{defect.file}: {defect.detail}") for defect in defects if defect.kind == kind]
        choices = f"train with --handle {kind}={'|'.join(ACTIONS[kind])}, the first is the default"
        lines += [f"{kind}: {count}", *listed(found, per_kind), f"  To do: {REPAIRS[kind]}; or {choices}."]
    return "\n".join(lines)


def listed(texts: Sequence[str], most: int) -> list[str]:
    """Indented lines, the first `most` of them, and how many more there are."""
    return [f"  {text}" for text in texts[:most]] + [f"  and {len(texts) - most} more"] * (len(texts) > most)
