"""For (3, 0, 5): [0, 0, 0, 2, 2, 2, 2, 2]."""

from collections.abc import Sequence
from random import Random

from course.kit.learn.agree import same_values
from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import wrong

hints = (
    "Group k appears as often as it has classes, all its classes side by side.",
    "Two loops, the outer one over groups; or `torch.repeat_interleave`.",
    "`[group for group, n in enumerate(sizes) for _ in range(n)]`",
)


def class_index(nclasses_per_group: Sequence[int]) -> list[int]:
    """For every class, in order, the group it reads."""
    return [group for group, n in enumerate(nclasses_per_group) for _ in range(n)]


def cases(random: Random) -> Sequence[Case]:
    fixed = [(3, 0, 5), (2, 2, 2), (1,), (4, 1), (0, 3)]
    drawn = [tuple(random.randint(0, 6) for _ in range(random.randint(2, 6))) for _ in range(20)]
    return [Case((sizes,)) for sizes in fixed + [sizes for sizes in drawn if any(sizes)]]


agree = same_values


@wrong
def tiled(sizes):
    """this index goes round the groups again and again, as `Tensor.repeat` does. The classes of a group are neighbours,
    and there may be none.

    Source: Li-Wanhua/POEs issue 4, 2021, asks for repeat_interleave where repeat stands
    """
    return [c % len(sizes) for c in range(sum(sizes))]
