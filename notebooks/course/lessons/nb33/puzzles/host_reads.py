"""How many of `copies`, each (operator, from, to), bring something from a GPU to the CPU: there a real step waits for
its GPU.
"""

from collections.abc import Sequence
from random import Random

from course.kit.learn.agree import same_values
from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import wrong

hints = (
    "Not every copy, and not only those by `.cpu()`.",
    "`loss.item()` is a copy too; it shows up as `_local_scalar_dense`. The operator's name need not matter.",
    'Count those whose source starts with "cuda" and whose target is "cpu".',
)


Copy = tuple[str, str, str]


def host_reads(copies: Sequence[Copy]) -> int:
    return sum(source.startswith("cuda") and target == "cpu" for _, source, target in copies)


def cases(random: Random) -> Sequence[Case]:
    kinds = [
        ("scatter", "cpu", "cuda:0"),
        ("_to_copy", "cpu", "cuda:1"),
        ("broadcast_coalesced", "cuda:0", "cuda:1"),
        ("gather", "cuda:1", "cuda:0"),
        ("_to_copy", "cuda:0", "cpu"),
        ("_local_scalar_dense", "cuda:0", "cpu"),
        ("copy_", "cuda:1", "cpu"),
    ]
    drawn = [[random.choice(kinds) for _ in range(random.randint(0, 12))] for _ in range(20)]
    return [Case((copies,)) for copies in [[], kinds[:4], kinds, [kinds[5]] * 3, *drawn]]


agree = same_values


@wrong
def item_is_not_a_copy(copies: Sequence[Copy]) -> int:
    """this is the count of `_to_copy` alone. `.item()` is a copy to the host as well, and waits just as long.

    Source: I thought .item() is almost immediate: rosinality/style-based-gan-pytorch pull request 50, 2019
    """
    return sum(name == "_to_copy" and source.startswith("cuda") and target == "cpu" for name, source, target in copies)


@wrong
def every_copy(copies: Sequence[Copy]) -> int:
    """this is the count of every copy. Those to a GPU and between GPUs are queued; the host goes on.

    Source: copies to the GPU taken for waiting: pytorch/pytorch issue 135794, 2024
    """
    return len(copies)
