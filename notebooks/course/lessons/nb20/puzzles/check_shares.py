"""A test: `program(shares)` deals eight pictures to ranks and returns the gradient that all of them hold after
backward; `shares` has a list of picture numbers for each rank. Raise an AssertionError where it is not that of one
process, however the pictures are dealt. Pictures 2 and 5 have no objects. Two right programs may differ in the last
digits.
"""

from collections.abc import Callable, Sequence
from random import Random

import torch
from torch import Tensor

from course.kit.learn.exercise import Case, Ended, Program, Trial
from course.kit.learn.puzzle import also, wrong

hints = (
    "`program([[0, 1, 2, 3, 4, 5, 6, 7]])` is one process. On which other shares do the wrong programs differ from it?",
    "With as many pictures on each rank, one wrong program is right. With two ranks, a different one is. And what if a "
    "rank has only pictures without objects?",
    "`for shares in ([[0, 1, 3, 4, 6, 7], [2, 5]], [[0, 1, 2, 3], [4, 5], [6, 7]]):` compare by "
    "`torch.testing.assert_close`.",
)


Shares = Sequence[Sequence[int]]
OBJECTS = torch.tensor([3, 1, 0, 2, 5, 0, 4, 1])  # of each picture: 16, so dividing by all of them rounds nothing
# The gradient of the sum of each picture's losses, (pictures, parameters); without objects it is 0.
SUMS = torch.tensor([[5.0, -2, 1], [9, 3, 4], [0, 0, 0], [-4, 6, 2], [8, 1, -7], [0, 0, 0], [2, -9, 3], [6, 6, -5]])
SUMS = SUMS.double()


def _over_all(shares: Shares) -> Tensor:
    """Each rank's own sum times W by the count of all; DDP's mean over the ranks."""
    everywhere = max(sum(int(OBJECTS[list(own)].sum()) for own in shares), 1)
    own = [SUMS[list(numbers)].sum(0) * len(shares) / everywhere for numbers in shares]
    return torch.stack(own).mean(0)


def _in_float32(shares: Shares) -> Tensor:
    everywhere = sum(int(OBJECTS[list(own)].sum()) for own in shares)
    own = [(SUMS[list(numbers)].float() / 7).flip(0).sum(0) * 7 / everywhere for numbers in shares]
    return torch.stack(own).sum(0)


def _means_of_pictures(shares: Shares) -> Tensor:
    own = [SUMS[list(numbers)].sum(0) / max(len(numbers), 1) for numbers in shares]
    return torch.stack(own).mean(0)


def _means_of_objects(shares: Shares) -> Tensor:
    own = [SUMS[list(numbers)].sum(0) / OBJECTS[list(numbers)].sum().clamp(min=1) for numbers in shares]
    return torch.stack(own).mean(0)


def _at_least_one_on_each(shares: Shares) -> Tensor:
    everywhere = sum(max(int(OBJECTS[list(own)].sum()), 1) for own in shares)
    return SUMS[[k for own in shares for k in own]].sum(0) / everywhere


def _nan_without_objects(shares: Shares) -> Tensor:
    gradient = _over_all(shares)
    return gradient if all(int(OBJECTS[list(own)].sum()) for own in shares) else gradient * float("nan")


def _ranks_forgotten(shares: Shares) -> Tensor:
    return _over_all(shares) / len(shares)


def _for_two_ranks(shares: Shares) -> Tensor:
    return _over_all(shares) / len(shares) * min(len(shares), 2)


def _filled_up(shares: Shares) -> Tensor:
    """Ranks with fewer pictures are given the first ones of all, too, until each has as many."""
    most = max(map(len, shares))
    return _over_all([[*own, *range(most - len(own))] for own in shares])


RIGHT = (
    Program("a program that divides by the objects of all ranks", _over_all),
    Program("one that does the same in float32, in a different order", _in_float32),
)
WRONG = (
    Program("a program whose ranks divide by their own pictures", _means_of_pictures),
    Program("a program whose ranks divide by their own objects", _means_of_objects),
    Program("a program in which a rank without objects sends 1", _at_least_one_on_each),
    Program("a program that gives NaN where a rank has no objects", _nan_without_objects),
    Program("a program that forgets what DDP divides by", _ranks_forgotten),
    Program("a program that multiplies by 2 for the number of ranks", _for_two_ranks),
    Program("a program that shows pictures twice until all ranks have as many", _filled_up),
)
ONE_PROCESS = [list(range(8))]


def check_shares(program: Callable[[Shares], Tensor]) -> None:
    whole = program([[0, 1, 2, 3, 4, 5, 6, 7]])
    for shares in ([[0, 1, 3, 4, 6, 7], [2, 5]], [[0, 1, 2, 3], [4, 5], [6, 7]]):
        torch.testing.assert_close(program(shares), whole, rtol=1e-4, atol=1e-5)


def cases(random: Random) -> Sequence[Case]:
    programs = [*RIGHT, *WRONG]
    return [Trial((program,)) for program in random.sample(programs, len(programs))]


def _refuses_the_other_order(cases: Sequence[Case], given: Sequence[object]) -> bool:
    ended = {case.args[0].run: end for case, end in zip(cases, given, strict=True)}
    return ended[_over_all] == Ended(True) and ended[_in_float32] == Ended(False)


def _on(*deals: Shares) -> Callable[[Callable[[Shares], Tensor]], None]:
    def test(program: Callable[[Shares], Tensor]) -> None:
        for shares in deals:
            torch.testing.assert_close(program(shares), program(ONE_PROCESS), rtol=1e-4, atol=1e-5)

    return test


@wrong
def as_many_pictures_on_each(*given):
    """this is how a test ends that gives every rank as many pictures. A program whose ranks divide by the number of
    their pictures is right on such shares, and one that fills up short ranks has nothing to fill up.
    """
    return _on([[0, 1, 2, 3], [4, 5, 6, 7]])(*given)


also(as_many_pictures_on_each)(_on([[0, 1], [2, 3], [4, 5], [6, 7]]))
also(as_many_pictures_on_each)(_on([[0, 1, 2, 3], [4, 5, 6, 7]], [[0, 1], [2, 5], [3, 4], [6, 7]]))


@wrong
def objects_on_each(*given):
    """this is how a test ends in whose shares every rank has an object. What a program does on a rank without objects
    is not seen: some count it as one, and some give NaN.
    """
    return _on([[0, 1, 2, 3], [4, 5], [6, 7]])(*given)


also(objects_on_each)(_on([[0, 1, 2, 3, 4, 5, 6], [7]], [[0, 1, 2, 3], [4, 5], [6, 7]]))


@wrong
def two_ranks(*given):
    """this is how a test ends that tries two ranks and no other number. A program that multiplies by 2, in place of the
    number of ranks, is right on two.
    """
    return _on([[0, 1, 3, 4, 6, 7], [2, 5]])(*given)


also(two_ranks)(_on([[0, 1, 2, 3, 4], [5, 6, 7]]))


@wrong(recognise=_refuses_the_other_order)
def bit_for_bit(program: Callable[[Shares], Tensor]) -> None:
    """this test passes one right program and refuses the other, which adds in a different order and in float32. Compare
    within a tolerance, such as that of `torch.testing.assert_close` with `rtol=1e-4`.
    """
    for shares in ([[0, 1, 3, 4, 6, 7], [2, 5]], [[0, 1, 2, 3], [4, 5], [6, 7]]):
        assert torch.equal(program(shares), program(ONE_PROCESS))


@wrong
def never_fails(program: Callable[[Shares], Tensor]) -> bool:
    """this test lets every program pass. Either it compares a program with itself on the same shares, or it never
    raises anything: a test that *returns* False has passed; write `assert`.
    """
    return torch.equal(program([[0, 1, 2, 3], [4, 5], [6, 7]]), program(ONE_PROCESS))
