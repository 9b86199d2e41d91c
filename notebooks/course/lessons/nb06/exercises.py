"""Exercises of notebook 06: which GPU fills first, a test for the loss of a step, and how many rows for the first."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from course.kit.learn.exercise import Case, Exercise, Mistake, Program, Trial
from course.lessons.nb06.balance import balanced_chunks

LossOf = Callable[[Tensor, Tensor, list[int]], Tensor]
RIGHT, ROUNDED = "the mean of all rows", "the mean of all rows, rounded differently"
NO_EMPTY_PART = "right, but nan where a part is empty"


def held(rows: list[int], row: int, output: int, weights: int, states: int) -> list[int]:
    found = [weights + count * row for count in rows]
    found[0] += states * weights + sum(rows) * output
    return found


def _without_gather(rows: list[int], row: int, output: int, weights: int, states: int) -> list[int]:
    return held(rows, row, 0, weights, states)


def _without_optimizer(rows: list[int], row: int, output: int, weights: int, states: int) -> list[int]:
    return held(rows, row, output, weights, 0)


def _split_weights(rows: list[int], row: int, output: int, weights: int, states: int) -> list[int]:
    found = held(rows, row, output, weights, states)
    return [size - weights + weights // len(rows) for size in found]


def _optimizer_everywhere(rows: list[int], row: int, output: int, weights: int, states: int) -> list[int]:
    first, *others = held(rows, row, output, weights, states)
    return [first, *(size + states * weights for size in others)]


def _own_rows_not_copied(rows: list[int], row: int, output: int, weights: int, states: int) -> list[int]:
    first, *others = held(rows, row, output, weights, states)
    return [first - rows[0] * output, *others]


def _moved(rows: list[int], row: int, output: int, weights: int, states: int) -> list[int]:
    return [size - own * output for size, own in zip(held(rows, row, output, weights, states), rows, strict=True)]


def _no_copies_of_the_weights(rows: list[int], row: int, output: int, weights: int, states: int) -> list[int]:
    first, *others = held(rows, row, output, weights, states)
    return [first, *(size - weights for size in others)]


def _with_gradients(rows: list[int], row: int, output: int, weights: int, states: int) -> list[int]:
    first, *others = held(rows, row, output, weights, states)
    return [first + weights, *others]


def _gradients_everywhere(rows: list[int], row: int, output: int, weights: int, states: int) -> list[int]:
    return [size + weights for size in held(rows, row, output, weights, states)]


def _held_cases(random: Random) -> Sequence[Case]:
    fixed = [([4, 20, 20, 20], 30, 10, 96, 1), ([15, 15, 15, 15], 10, 40, 60, 2), ([4, 20, 20, 20], 30, 1, 96, 0)]
    drawn = [
        (
            [random.randint(1, 32) for _ in range(random.randint(2, 8))],
            random.randint(1, 50),
            random.randint(1, 50),
            840 * random.randint(1, 9),
            random.randint(0, 2),
        )
        for _ in range(15)
    ]
    return [Case(arguments) for arguments in fixed + drawn]


def same_loss(loss_of: LossOf) -> None:
    scores, target = torch.randn(6, 3), torch.tensor([0, 1, 2, 0, 1, 2])
    whole = F.cross_entropy(scores, target)
    for sizes in ([1, 3, 2], [0, 4, 2]):
        assert torch.allclose(loss_of(scores, target, sizes), whole)


def _each(scores: Tensor, target: Tensor, sizes: list[int]) -> list[Tensor]:
    """The losses of the rows, in the parts that the GPUs compute."""
    return [
        F.cross_entropy(some, wanted, reduction="none")
        for some, wanted in zip(scores.split(sizes), target.split(sizes), strict=True)
    ]


def _right(scores: Tensor, target: Tensor, sizes: list[int]) -> Tensor:
    return torch.cat(_each(scores, target, sizes)).mean()


def _rounded_differently(scores: Tensor, target: Tensor, sizes: list[int]) -> Tensor:
    """Right, and apart from the others in the last digit, as where the parts are added in a different order."""
    return _right(scores, target, sizes) * (1 + 3e-7)


def _mean_of_means(scores: Tensor, target: Tensor, sizes: list[int]) -> Tensor:
    return torch.stack([losses.mean() for losses in _each(scores, target, sizes) if len(losses)]).mean()


def _stops_at_no_rows(scores: Tensor, target: Tensor, sizes: list[int]) -> Tensor:
    """Right while every GPU has a row; the mean of none is not a number."""
    weighed = [losses.mean() * len(losses) / len(scores) for losses in _each(scores, target, sizes)]
    return torch.stack(weighed).sum()


def _of_the_first(scores: Tensor, target: Tensor, sizes: list[int]) -> Tensor:
    return next(losses for losses in _each(scores, target, sizes) if len(losses)).mean()


def _sum_of_means(scores: Tensor, target: Tensor, sizes: list[int]) -> Tensor:
    return torch.stack([losses.mean() for losses in _each(scores, target, sizes) if len(losses)]).sum()


def _with_even_parts(loss_of: LossOf) -> None:
    scores, target = torch.randn(6, 3), torch.tensor([0, 1, 2, 0, 1, 2])
    assert torch.allclose(loss_of(scores, target, [2, 2, 2]), F.cross_entropy(scores, target))


def _with_a_row_for_each(loss_of: LossOf) -> None:
    scores, target = torch.randn(6, 3), torch.tensor([0, 1, 2, 0, 1, 2])
    assert torch.allclose(loss_of(scores, target, [1, 3, 2]), F.cross_entropy(scores, target))


def _all_alike(loss_of: LossOf) -> None:
    scores, target = torch.zeros(6, 3), torch.tensor([0, 1, 2, 0, 1, 2])
    for sizes in ([1, 3, 2], [0, 4, 2]):
        assert torch.allclose(loss_of(scores, target, sizes), F.cross_entropy(scores, target))


def _bit_for_bit(loss_of: LossOf) -> None:
    scores, target = torch.randn(6, 3), torch.tensor([0, 1, 2, 0, 1, 2])
    for sizes in ([1, 3, 2], [0, 4, 2]):
        assert loss_of(scores, target, sizes) == torch.cat(_each(scores, target, sizes)).mean()


def _is_bit_for_bit(cases: Sequence[Case], given: Sequence[Any]) -> bool:
    """The wrong programs fail, and of the right ones the one that rounds differently, by an assertion."""
    ended = {case.args[0].words: end for case, end in zip(cases, given, strict=True)}
    failed = not ended[ROUNDED].passed and ended[ROUNDED].why.startswith("AssertionError")
    return failed and not any(end.passed for name, end in ended.items() if name not in (RIGHT, NO_EMPTY_PART))


def _runs(loss_of: LossOf) -> None:
    assert loss_of(torch.randn(6, 3), torch.tensor([0, 1, 2, 0, 1, 2]), [1, 3, 2]) > 0


def _loss_cases(random: Random) -> Sequence[Case]:
    fixed = {
        RIGHT: _right,
        ROUNDED: _rounded_differently,
        "a mean of means": _mean_of_means,
        "the mean of the first part": _of_the_first,
        "a sum of means": _sum_of_means,
        NO_EMPTY_PART: _stops_at_no_rows,
    }
    factor = 1 + random.randint(10, 50) / 1000  # near 1, so that a loose tolerance does not see it
    programs = [Program(name, run) for name, run in fixed.items()]
    programs.append(Program(f"{factor} times the mean", lambda *arguments: factor * _right(*arguments)))
    return [Trial((program,)) for program in programs]


def first_rows(rows: int, gpus: int, row: int, extra: int) -> int:
    def fullest(first: int) -> int:
        own, *others = balanced_chunks(rows, gpus, first)
        return max(extra + own * row, max(others) * row)

    return min(range(rows // gpus, -1, -1), key=fullest)  # of equals min takes the first: the largest


def _one(rows: int, gpus: int, row: int, extra: int) -> int:
    return min(1, rows // gpus)


def _none(rows: int, gpus: int, row: int, extra: int) -> int:
    return 0


def _even(rows: int, gpus: int, row: int, extra: int) -> int:
    return rows // gpus


def _others_do_not_grow(rows: int, gpus: int, row: int, extra: int) -> int:
    return rows // gpus - extra // row


def _others_do_not_grow_from_0(rows: int, gpus: int, row: int, extra: int) -> int:
    return max(0, rows // gpus - extra // row)


def _others_do_not_grow_rounded_up(rows: int, gpus: int, row: int, extra: int) -> int:
    return max(0, rows // gpus + -extra // row)


def _smaller_of_two(rows: int, gpus: int, row: int, extra: int) -> int:
    def fullest(first: int) -> int:
        own, *others = balanced_chunks(rows, gpus, first)
        return max(extra + own * row, max(others) * row)

    return min(range(rows // gpus + 1), key=fullest)


def _of_cut_rows(rows: int, gpus: int, row: int, extra: int) -> float:
    """Where all GPUs would hold the same, if rows could be cut."""
    return rows / gpus - extra * (gpus - 1) / (gpus * row)


def _rounded(rows: int, gpus: int, row: int, extra: int) -> int:
    return max(0, round(_of_cut_rows(rows, gpus, row, extra)))


def _is_near_the_formula(cases: Sequence[Case], given: Sequence[Any]) -> bool:
    return all(abs(mine - max(0, _of_cut_rows(*case.args))) <= 1 for case, mine in zip(cases, given, strict=True))


def _row_cases(random: Random) -> Sequence[Case]:
    fixed = [(60, 4, 640, 3200), (60, 4, 640, 0), (8, 3, 100, 100), (16, 2, 10, 500), (3, 8, 100, 100)]
    drawn = [
        (random.randint(8, 96), random.randint(2, 8), row := random.randint(10, 900), random.randint(0, 12) * row)
        for _ in range(25)
    ]
    return [Case(arguments) for arguments in fixed + drawn]


EXERCISES = (
    Exercise(
        key="06.held",
        task="Bytes on each GPU when the outputs have been gathered: `rows[k]` rows on GPU k, `row` bytes for each row "
        "on the GPU that computes it, `output` bytes of a row that `forward` returns, a model of `weights` bytes, an "
        "optimizer with `states` numbers for each weight. Gradients are None, and the batch is not counted.",
        reference=held,
        cases=_held_cases,
        hints=(
            "Go through the legend of the chart, kind by kind. On which GPUs does it lie after `scores gathered`?",
            "Every GPU has a copy of the weights and its own rows. Only GPU 0 has the optimizer's state and the "
            "outputs of all rows.",
            "`weights + rows[k] * row` for each, and `states * weights + sum(rows) * output` more on GPU 0.",
        ),
        mistakes=(
            Mistake(
                "without what is gathered",
                "these are the bytes without what `gather` makes: the outputs of all rows once more, on GPU 0.",
                "the question of huggingface/transformers issue 279, 2019",
                answers=(_without_gather,),
            ),
            Mistake(
                "without the optimizer",
                "these are the bytes without what the optimizer keeps, for Adam twice the size of the weights.",
                "an answer in codertimo/BERT-pytorch issue 10, 2018",
                answers=(_without_optimizer,),
            ),
            Mistake(
                "split evenly",
                "these are the bytes of a model that is split over the GPUs. DataParallel splits rows; weights it "
                "copies whole, for one step.",
                answers=(_split_weights,),
            ),
            Mistake(
                "an optimizer on every GPU",
                "these are the bytes of GPUs that have an optimizer's state each, as under "
                "DistributedDataParallel. Replicas live for one step, and the only optimizer belongs to the "
                "weights on GPU 0.",
                answers=(_optimizer_everywhere,),
            ),
            Mistake(
                "moved, not copied",
                "these are the bytes of outputs that are moved. `gather` writes all rows into a new tensor, those "
                "of GPU 0 as well, and the outputs of the replicas are still there.",
                answers=(_own_rows_not_copied, _moved),
            ),
            Mistake(
                "no copies of the weights",
                "these are the bytes of GPUs of which the first alone has the weights. Each replica has a copy of "
                "all of them until backward is over.",
                answers=(_no_copies_of_the_weights,),
            ),
            Mistake(
                "gradients",
                "these are the bytes with the size of the weights once more, on GPU 0 or on all. A copy of them "
                "is on the other GPUs only, since the replica of GPU 0 uses the weights themselves. And there are "
                "no gradients at this moment: `zero_grad()` has made them None, and backward has not begun.",
                answers=(_with_gradients, _gradients_everywhere),
            ),
        ),
    ),
    Exercise(
        key="06.same_loss",
        task="A test that passes for a `loss_of(scores, target, sizes)` that returns the mean loss of all rows, and "
        "fails for one that does not.",
        reference=same_loss,
        cases=_loss_cases,
        hints=(
            "The right value needs no GPUs: `F.cross_entropy(scores, target)`.",
            "For which `sizes` is the mean of means equal to the mean? A test with those cannot see the difference.",
            "Compare with `torch.allclose` for parts of different sizes, `[1, 3, 2]`, and for an empty one, "
            "`[0, 4, 2]`.",
        ),
        mistakes=(
            Mistake(
                "even parts",
                "this is how a test ends in which every GPU has the same number of rows. There the mean of means "
                "is right, but balancing makes the parts uneven.",
                "asked about in airsplay/lxmert issue 17, 2019",
                answers=(_with_even_parts,),
            ),
            Mistake(
                "a row for each",
                "this is how a test ends in which every GPU has a row. With `first=0` the first has none, and the "
                "mean of no rows is nan.",
                "gpu0_bsz 0 in Link-Li/Balanced-DataParallel issue 8, 2020",
                answers=(_with_a_row_for_each,),
            ),
            Mistake(
                "it runs",
                "this is how a test ends that asks only whether a number comes back. A wrong loss is a number "
                "too, and training runs.",
                "a step that runs was taken for a right one in airsplay/lxmert issue 17, 2019",
                answers=(_runs,),
            ),
            Mistake(
                "all rows alike",
                "this is how a test ends in which all rows have the same loss. Then the mean of any of them is "
                "the mean of all.",
                answers=(_all_alike,),
            ),
            Mistake(
                "bit for bit",
                "this is how a test ends that compares bit for bit. A right program may add in a different order, "
                "on which the last digits of a float depend: use `torch.allclose`.",
                "asked about in pytorch/pytorch issue 14007, 2018",
                answers=(_bit_for_bit,),
                recognise=_is_bit_for_bit,
            ),
        ),
    ),
    Exercise(
        key="06.first_rows",
        task="The number of rows for the first GPU, 0 to `rows // gpus`, with which the fullest of `gpus` GPUs holds "
        "least: `row` bytes for each row it computes, and `extra` on the first. Of equals the largest.",
        reference=first_rows,
        cases=_row_cases,
        hints=(
            "Write the peak of the fullest GPU as a function of `first`.",
            "The first GPU holds `extra + own * row`, the others their rows times `row`. A row taken from the first "
            "goes to one of the others.",
            "Try all from `rows // gpus` down to 0 and take the one with the lowest peak.",
        ),
        mistakes=(
            Mistake(
                "as few as possible",
                "this is the number of rows of a first GPU that gets as few as possible. The others take over "
                "what it loses, and are the full ones now.",
                "gpu0_bsz 1 of a batch of 158 in Link-Li/Balanced-DataParallel issue 13, 2021; 0 in issue 8, 2020",
                answers=(_one, _none),
            ),
            Mistake(
                "even shares",
                "this is the number of rows when all GPUs get the same. That is what DataParallel does.",
                "the question of pytorch/pytorch issue 11730, 2018",
                answers=(_even,),
            ),
            Mistake(
                "where the rows go",
                "this is the number of rows when the first GPU loses rows until its extra is made up for. The "
                "others take these rows over, and grow.",
                answers=(_others_do_not_grow, _others_do_not_grow_from_0, _others_do_not_grow_rounded_up),
            ),
            Mistake(
                "the smaller of two",
                "this is the smallest of the numbers that reach the best peak. The largest is asked for: it "
                "leaves less work to the others.",
                answers=(_smaller_of_two,),
            ),
            Mistake(
                "a rounded formula",
                "this is near the formula for rows that can be cut into pieces. Rows are whole: compare the peaks "
                "of the numbers around it.",
                answers=(_rounded,),
                recognise=_is_near_the_formula,
            ),
        ),
    ),
)
