"""What can be wrong with annotated pictures, and what is done about it: always reported, never passed over."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

# The first action of each kind is the default.
ACTIONS = {
    "unreadable": ("skip", "raise"),
    "other_size": ("skip", "keep", "raise"),
    "no_area": ("drop", "raise"),
    "outside": ("clip", "drop", "raise"),
    "unknown_class": ("drop", "raise"),
    "duplicate": ("drop", "keep", "raise"),
    "empty": ("keep", "skip", "raise"),
}


class Defect(NamedTuple):
    """file: where it was found; kind: a field of `Handling`; detail: what exactly."""

    file: str
    kind: str
    detail: str


@dataclass(frozen=True)
class Handling:
    """What happens to a picture or a box with a defect; whatever it is, the defect is reported.

    unreadable: a picture or its annotation is missing, damaged or leads out of the data's folder: the picture is
    skipped; other_size: the image has not the size that its annotation names, so that no box can be trusted: skipped;
    no_area: a box without width or height, or not a number: dropped; outside: a box that sticks out of its
    picture by more than a pixel: clipped to it; unknown_class: an object of a class that is not among the data's:
    dropped; duplicate: an object that its picture has already, with the same class and box: dropped; empty: a picture
    without objects: kept, it shows what background looks like. "raise" refuses the data.
    Raises ValueError for an action that the kind does not have.
    """

    unreadable: str = "skip"
    other_size: str = "skip"
    no_area: str = "drop"
    outside: str = "clip"
    unknown_class: str = "drop"
    duplicate: str = "drop"
    empty: str = "keep"

    def __post_init__(self) -> None:
        for field in fields(self):
            if getattr(self, field.name) not in ACTIONS[field.name]:
                raise ValueError(
                    f"{field.name} must be one of {ACTIONS[field.name]}, got {getattr(self, field.name)!r}"
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
    """The defects by kind, the first `per_kind` of each with file and detail, one a line."""
    lines = []
    for kind, count in Counter(defect.kind for defect in defects).items():
        shown = [defect for defect in defects if defect.kind == kind][:per_kind]
        lines.append(f"{kind}: {count}")
        lines += [f"  {defect.file}: {defect.detail}" for defect in shown]
        lines += [f"  and {count - len(shown)} more"] * (count > len(shown))
    return "\n".join(lines)
