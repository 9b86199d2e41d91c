"""Whether a test that needs `needed` GPUs may run where `torch.cuda.is_available()` says `available` and
`torch.cuda.device_count()` says `count`.
"""

from collections.abc import Sequence
from random import Random

from course.kit.learn.agree import same_values
from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import wrong

hints = (
    "Which of the two numbers says what the test needs to know?",
    "On a machine with one GPU, CUDA is available.",
    "`count >= needed`",
)


def may_run(available: bool, count: int, needed: int) -> bool:
    return count >= needed


def cases(random: Random) -> Sequence[Case]:
    """CUDA is available where there is a GPU, and nowhere else."""
    counts = [(1, 2), (2, 2), (0, 2), (0, 1), (4, 5)]
    counts += [(random.randint(0, 8), random.randint(1, 5)) for _ in range(20)]
    return [Case((count > 0, count, needed)) for count, needed in counts]


agree = same_values


@wrong
def any_GPU_will_do(available: bool, count: int, needed: int) -> bool:
    """this is the answer to whether there is a GPU at all, as `is_available()` and `count > 0` give it. With one GPU
    there is, and a test for two fails there.

    Source: repaired in meta-pytorch/torchtune pull request 196, 2024, and pytorch/torchtitan pull request 4377, 2026; a
    test for five GPUs on a machine with fewer: tinygrad/tinygrad issue 4145, 2024
    """
    return available
