"""A new tensor is at version 0. Its version after these methods, of which some are in-place."""

from collections.abc import Sequence
from random import Random

from course.kit.learn.agree import same_values
from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import wrong

hints = (
    "PyTorch marks in-place methods in their names, but not all that are marked count.",
    "A trailing underscore; but Python's own methods have two, and this notebook shows some that do not count.",
    '`sum(n.endswith("_") and not n.endswith("__") and n not in {"requires_grad_", ...} for n in operations)`',
)


# Of the methods with an underscore, those in the exercise that leave the counter alone: three change no number, two
# write past it. (`resize_` to the same size changes nothing, either.)
UNCOUNTED = {"requires_grad_", "detach_", "share_memory_", "apply_", "map_"}


def version_after(operations: Sequence[str]) -> int:
    """The version of a new tensor after these methods: those in place, with a last underscore, but `UNCOUNTED`."""
    return sum(_in_place(name) and name not in UNCOUNTED for name in operations)


def _in_place(name: str) -> bool:
    return name.endswith("_") and not name.endswith("__")


def cases(random: Random) -> Sequence[Case]:
    """Programs that torch runs, so whoever calls the methods gets the same answer: no write after `requires_grad_`."""
    known = ["add", "add_", "unsqueeze", "unsqueeze_", "squeeze_", "relu_", "detach", "view", "__len__", "mul"]
    known += sorted(UNCOUNTED - {"requires_grad_"})
    fixed = [["unsqueeze_", "squeeze_"], ["view", "add_"], [], ["add", "mul"], ["transpose_"], ["t_"]]
    fixed += [["detach_", "mul_", "requires_grad_"], ["share_memory_"], ["apply_", "add_"], ["map_"]]
    drawn = [random.choices(known, k=random.randint(1, 8)) for _ in range(10)]
    drawn = [names + random.choice([[], ["requires_grad_"]]) for names in drawn]
    return [Case((names,)) for names in (*fixed, *drawn)]


agree = same_values


@wrong
def shape_is_not_data(operations: Sequence[str]) -> int:
    """this is the count without the methods that change the shape alone. They count, too: autograd saved the old shape.

    Source: post 004, an engineer's notes, 2021: the target whose values nobody touched
    """
    shapes = {"unsqueeze_", "squeeze_", "t_", "transpose_"}
    return version_after([name for name in operations if name not in shapes])


@wrong
def every_underscore_counts(operations: Sequence[str]) -> int:
    """this is the count of every trailing underscore. requires_grad_, detach_ and share_memory_ change no number and
    leave the counter at 0; apply_ and map_ write numbers, and are not counted either.

    Source: pytorch/pytorch issue 14571, 2018: an in-place operation that left the counter alone
    """
    return sum(map(_in_place, operations))
