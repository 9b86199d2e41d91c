"""Exercises of notebook 29: which saved tensor fails, how versions count, which write is to blame."""

from collections.abc import Sequence
from random import Random

from course.kit.learn.agree import same_values
from course.kit.learn.exercise import Case, Exercise, Mistake

Events = Sequence[tuple[str, str]]


def failing_saves(events: Events) -> list[int]:
    """Positions of the saves whose tensor is at another version when backward comes.

    events: ("save" or "write", name of the tensor), in the order of the forward pass.
    """
    versions: dict[str, int] = {}
    saved = []
    for position, (kind, name) in enumerate(events):
        if kind == "write":
            versions[name] = versions.get(name, 0) + 1
        else:
            saved.append((position, name, versions.get(name, 0)))
    return [position for position, name, version in saved if version != versions.get(name, 0)]


# Of the methods with an underscore, those in the exercise that leave the counter alone: three change no number, two
# write past it. (`resize_` to the same size changes nothing, either.)
UNCOUNTED = {"requires_grad_", "detach_", "share_memory_", "apply_", "map_"}


def version_after(operations: Sequence[str]) -> int:
    """The version of a new tensor after these methods: those in place, with a last underscore, but `UNCOUNTED`."""
    return sum(_in_place(name) and name not in UNCOUNTED for name in operations)


def _in_place(name: str) -> bool:
    return name.endswith("_") and not name.endswith("__")


def guilty_write(events: Events, save: int) -> int | None:
    """Position of the first write to the tensor saved at position `save` after it was saved; None if there is none."""
    name = events[save][1]
    later = range(save + 1, len(events))
    return next((position for position in later if events[position] == ("write", name)), None)


def _any_tensor(events: Events) -> list[int]:
    last = max((position for position, (kind, _) in enumerate(events) if kind == "write"), default=-1)
    return [position for position, (kind, _) in enumerate(events) if kind == "save" and position < last]


def _shape_does_not_count(operations: Sequence[str]) -> int:
    shapes = {"unsqueeze_", "squeeze_", "t_", "transpose_"}
    return version_after([name for name in operations if name not in shapes])


def _every_underscore(operations: Sequence[str]) -> int:
    return sum(map(_in_place, operations))


def _event_cases(random: Random) -> Sequence[Case]:
    fixed: list[Events] = [
        [("save", "target"), ("write", "target"), ("save", "target")],
        [("write", "target"), ("save", "target"), ("save", "target")],
        [("save", "target"), ("write", "mask")],
        [],
    ]
    return [Case((events,)) for events in (*fixed, *(_drawn(random) for _ in range(20)))]


def _drawn(random: Random) -> Events:
    length = random.randint(1, 9)
    return [(random.choice(["save", "save", "write"]), random.choice("abc")) for _ in range(length)]


def _name_cases(random: Random) -> Sequence[Case]:
    """Programs that torch runs, so whoever calls the methods gets the same answer: no write after `requires_grad_`."""
    known = ["add", "add_", "unsqueeze", "unsqueeze_", "squeeze_", "relu_", "detach", "view", "__len__", "mul"]
    known += sorted(UNCOUNTED - {"requires_grad_"})
    fixed = [["unsqueeze_", "squeeze_"], ["view", "add_"], [], ["add", "mul"], ["transpose_"], ["t_"]]
    fixed += [["detach_", "mul_", "requires_grad_"], ["share_memory_"], ["apply_", "add_"], ["map_"]]
    drawn = [random.choices(known, k=random.randint(1, 8)) for _ in range(10)]
    drawn = [names + random.choice([[], ["requires_grad_"]]) for names in drawn]
    return [Case((names,)) for names in (*fixed, *drawn)]


def _blame_cases(random: Random) -> Sequence[Case]:
    fixed: list[tuple[Events, int]] = [
        ([("write", "t"), ("save", "t"), ("write", "t"), ("write", "t")], 1),
        ([("save", "t"), ("write", "u")], 0),
    ]
    for _ in range(20):
        events = [("save", random.choice("ab")), *_drawn(random)]
        saves = [position for position, (kind, _) in enumerate(events) if kind == "save"]
        fixed.append((events, random.choice(saves)))
    return [Case(arguments) for arguments in fixed]


POST = "post 004, an engineer's notes, 2021"
EXERCISES = (
    Exercise(
        key="29.failing_saves",
        task='From ("save" or "write", tensor) in forward order: the positions of the saves that fail at backward.',
        reference=failing_saves,
        cases=_event_cases,
        agree=same_values,
        hints=(
            "A save remembers one number. What changes that number afterwards?",
            "Count the writes per tensor; note the count at every save; compare with the counts at the end.",
            "`[p for p, name, version in saved if version != versions.get(name, 0)]`",
        ),
        mistakes=(
            Mistake(
                "any write after any save",
                "here every write fails every earlier save. Versions belong to a tensor: a write to a different one "
                "does no harm.",
                f'{POST}: "put the loss that modifies before all losses"',
                answers=(_any_tensor,),
            ),
        ),
    ),
    Exercise(
        key="29.version_after",
        task="A new tensor is at version 0. Its version after these methods, of which some are in-place.",
        reference=version_after,
        cases=_name_cases,
        agree=same_values,
        hints=(
            "PyTorch marks in-place methods in their names, but not all that are marked count.",
            "A trailing underscore; but Python's own methods have two, and this notebook shows some that do not count.",
            '`sum(n.endswith("_") and not n.endswith("__") and n not in {"requires_grad_", ...} for n in operations)`',
        ),
        mistakes=(
            Mistake(
                "shape is not data",
                "this is the count without the methods that change the shape alone. They count, too: autograd saved "
                "the old shape.",
                f"{POST}: the target whose values nobody touched",
                answers=(_shape_does_not_count,),
            ),
            Mistake(
                "every underscore counts",
                "this is the count of every trailing underscore. requires_grad_, detach_ and share_memory_ change no "
                "number and leave the counter at 0; apply_ and map_ write numbers, and are not counted either.",
                "pytorch/pytorch issue 14571, 2018: an in-place operation that left the counter alone",
                answers=(_every_underscore,),
            ),
        ),
    ),
    Exercise(
        key="29.guilty_write",
        task="From the events of 29.failing_saves and the position of a save: the first write that breaks it, or None.",
        reference=guilty_write,
        cases=_blame_cases,
        agree=same_values,
        hints=(
            "It comes after the save. Anomaly mode shows the save.",
            "Look at the positions after `save` for a write to the same tensor.",
            '`next((p for p in range(save + 1, len(events)) if events[p] == ("write", name)), None)`',
        ),
        mistakes=(
            Mistake(
                "the operation in the backtrace",
                "this is the operation that saved the tensor. It is the victim; the write comes later.",
                f'the hint that {POST} quote: "the operation that failed to compute its gradient"',
                answers=(lambda events, save: save,),
            ),
        ),
    ),
)
