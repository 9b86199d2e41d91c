"""Exercises of notebook 14: greedy suppression, rounds for a batch, and a test that a suppression has to pass."""

from collections.abc import Callable, Sequence
from functools import partial
from random import Random

import torch
from torch import Tensor
from torchvision import ops as vision

from course.kit.learn.exercise import Case, Exercise, Mistake, Program, Trial
from frcnn_lite import ops
from frcnn_lite.ops import box_iou
from frcnn_lite.ops.nms import round_down


def nms_by_hand(boxes: Tensor, threshold: float) -> list[int]:
    overlaps, kept = box_iou(boxes, boxes) > threshold, list[int]()
    for row in range(len(boxes)):
        if not any(overlaps[better, row] for better in kept):
            kept.append(row)
    return kept


def _removed_boxes_remove(boxes: Tensor, threshold: float) -> list[int]:
    overlaps = (box_iou(boxes, boxes) > threshold).triu(diagonal=1)
    return (~overlaps.any(dim=0)).nonzero()[:, 0].tolist()


def _nms_inclusive(boxes: Tensor, threshold: float) -> list[int]:
    return nms_by_hand(boxes + torch.tensor([0.0, 0.0, 1.0, 1.0]), threshold)  # noqa: FL002 exercises are on the CPU


def _at_the_threshold(boxes: Tensor, threshold: float) -> list[int]:
    overlaps, kept = box_iou(boxes, boxes) >= threshold, list[int]()
    for row in range(len(boxes)):
        if not any(overlaps[better, row] for better in kept):
            kept.append(row)
    return kept


def _removes_itself(boxes: Tensor, threshold: float) -> list[int]:
    return (~(box_iou(boxes, boxes) > threshold).any(dim=0)).nonzero()[:, 0].tolist()


def _last_kept(boxes: Tensor, threshold: float) -> list[int]:
    overlaps, kept = box_iou(boxes, boxes) > threshold, [0]
    for row in range(1, len(boxes)):
        if not overlaps[kept[-1], row]:
            kept.append(row)
    return kept


def _row_above(boxes: Tensor, threshold: float) -> list[int]:
    overlaps = box_iou(boxes, boxes) > threshold
    return [row for row in range(len(boxes)) if row == 0 or not overlaps[row - 1, row]]


def _as_a_mask(boxes: Tensor, threshold: float) -> list[bool]:
    kept = nms_by_hand(boxes, threshold)
    return [row in kept for row in range(len(boxes))]


def keep_masks(suppresses: Tensor) -> Tensor:
    keep = torch.ones_like(suppresses[:, 0])
    while True:
        after = ~(suppresses & keep[:, :, None]).any(dim=1)
        if torch.equal(after, keep):
            return keep
        keep = after


def _one_round(suppresses: Tensor) -> Tensor:
    return ~suppresses.any(dim=1)


def _rounds(count: int, suppresses: Tensor) -> Tensor:
    keep = torch.ones_like(suppresses[:, 0])
    for _ in range(count):
        keep = ~(suppresses & keep[:, :, None]).any(dim=1)
    return keep


def _until_one_is_done(suppresses: Tensor) -> Tensor:
    keep = torch.ones_like(suppresses[:, 0])
    while True:
        after = ~(suppresses & keep[:, :, None]).any(dim=1)
        if (after == keep).all(dim=1).any():
            return after
        keep = after


def _until_the_first_is_done(suppresses: Tensor) -> Tensor:
    keep = torch.ones_like(suppresses[:, 0])
    while True:
        after = ~(suppresses & keep[:, :, None]).any(dim=1)
        if torch.equal(after[0], keep[0]):
            return after
        keep = after


def _exchanged(suppresses: Tensor) -> Tensor:
    return keep_masks(suppresses.transpose(1, 2))


def mask_of(kept: Sequence[int], boxes: Tensor) -> Tensor:
    mask = torch.zeros(len(boxes), dtype=torch.bool)  # noqa: FL002 exercises are on the CPU
    mask[list(kept)] = True
    return mask


def _in_order(order: Tensor, boxes: Tensor, threshold: float) -> Tensor:
    """Greedy suppression that takes the boxes in some order, and decides at the threshold as torchvision's does."""
    exact = round_down(threshold, boxes.dtype)
    return mask_of(order[nms_by_hand(boxes[order], exact)].tolist(), boxes)


def _best_first(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    return _in_order(scores.argsort(descending=True, stable=True), boxes, threshold)


def _all_at_once(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    suppresses = (box_iou(boxes, boxes) > threshold) & (scores[:, None] > scores)
    return ~suppresses.any(dim=0)


def _by_rounds(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    return ops.nms_mask(box_iou(boxes, boxes)[None], scores[None], threshold)[0]


def _inclusive(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    return _best_first(boxes + torch.tensor([0.0, 0.0, 1.0, 1.0]), scores, threshold)  # noqa: FL002 on the CPU


def _own_threshold(fixed: float, boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    return _best_first(boxes, scores, fixed)


def _programs(random: Random) -> Sequence[Case]:
    """Three right suppressions and six wrong ones."""
    programs: dict[str, Callable[[Tensor, Tensor, float], Tensor]] = {
        "torchvision's": lambda boxes, scores, threshold: mask_of(vision.nms(boxes, scores, threshold).tolist(), boxes),
        "the loop": _best_first,
        "the rounds": _by_rounds,
        "one round": _all_at_once,
        "rows as they stand": lambda boxes, scores, threshold: mask_of(nms_by_hand(boxes, threshold), boxes),
        "worst first": lambda boxes, scores, threshold: _in_order(scores.argsort(stable=True), boxes, threshold),
        "the extra pixel": _inclusive,
    }
    for fixed in (random.uniform(0.05, 0.2), random.uniform(0.6, 0.95)):
        programs[f"its own threshold, {fixed:.3f}"] = partial(_own_threshold, fixed)
    return [Trial((Program(name, compute),)) for name, compute in programs.items()]


def check_nms(program: Callable[[Tensor, Tensor, float], Tensor]) -> None:
    row = torch.tensor([[3.0, 0, 13, 10], [0, 0, 10, 10], [6, 0, 16, 10]])  # noqa: FL002 on the CPU
    scores = torch.tensor([0.8, 0.9, 0.7])  # noqa: FL002 on the CPU
    for boxes in (row, row / 128):
        assert program(boxes, scores, 0.5).tolist() == [False, True, True]
        assert program(boxes[:2], scores[:2], 0.5).tolist() == [False, True]


def _row(*order: int) -> Tensor:
    """Boxes that overlap their neighbours by more than half; box 3 stands apart."""
    boxes = [[0.0, 0, 10, 10], [3, 0, 13, 10], [6, 0, 16, 10], [60, 60, 80, 80]]
    return torch.tensor([boxes[k] for k in order])  # noqa: FL002 exercises are on the CPU


def _scores(*scores: float) -> Tensor:
    return torch.tensor(scores)  # noqa: FL002 exercises are on the CPU


def _without_a_chain(program: Callable[[Tensor, Tensor, float], Tensor]) -> None:
    for boxes in (_row(1, 0, 3), _row(1, 0, 3) / 128):
        assert program(boxes, _scores(0.8, 0.9, 0.7), 0.5).tolist() == [False, True, True]


def _already_sorted(program: Callable[[Tensor, Tensor, float], Tensor]) -> None:
    for boxes in (_row(0, 1, 2), _row(0, 1, 2) / 128):
        assert program(boxes, _scores(0.9, 0.8, 0.7), 0.5).tolist() == [True, False, True]
        assert program(boxes[:2], _scores(0.9, 0.8), 0.5).tolist() == [True, False]


def _pixels_only(program: Callable[[Tensor, Tensor, float], Tensor]) -> None:
    assert program(_row(1, 0, 2), _scores(0.8, 0.9, 0.7), 0.5).tolist() == [False, True, True]
    assert program(_row(1, 0), _scores(0.8, 0.9), 0.5).tolist() == [False, True]


def _chain_alone(program: Callable[[Tensor, Tensor, float], Tensor]) -> None:
    for boxes in (_row(1, 2, 0), _row(1, 2, 0) / 128):
        assert program(boxes, _scores(0.8, 0.7, 0.9), 0.5).tolist() == [False, True, True]


def _chain_in_pixels(program: Callable[[Tensor, Tensor, float], Tensor]) -> None:
    assert program(_row(1, 2, 0), _scores(0.8, 0.7, 0.9), 0.5).tolist() == [False, True, True]


def _sorted_in_pixels(program: Callable[[Tensor, Tensor, float], Tensor]) -> None:
    assert program(_row(0, 1, 2), _scores(0.9, 0.8, 0.7), 0.5).tolist() == [True, False, True]


def _counts(program: Callable[[Tensor, Tensor, float], Tensor]) -> None:
    for boxes in (_row(1, 0, 2), _row(1, 0, 2) / 128):
        assert program(boxes, _scores(0.8, 0.9, 0.7), 0.5).sum() == 2
        assert program(boxes[:2], _scores(0.8, 0.9), 0.5).sum() == 1


def _none_overlap(program: Callable[[Tensor, Tensor, float], Tensor]) -> None:
    boxes = _row(1, 0, 2)
    kept = boxes[program(boxes, _scores(0.8, 0.9, 0.7), 0.5)]
    assert (box_iou(kept, kept).fill_diagonal_(0) <= 0.5).all()


def _wants_numbers(program: Callable[[Tensor, Tensor, float], Tensor]) -> None:
    assert program(_row(1, 0, 2), _scores(0.8, 0.9, 0.7), 0.5).tolist() == [1, 2]


def _boxes_apart(program: Callable[[Tensor, Tensor, float], Tensor]) -> None:
    assert program(_row(0, 3), _scores(0.8, 0.9), 0.5).tolist() == [True, True]


def _returns_the_comparison(program: Callable[[Tensor, Tensor, float], Tensor]) -> bool:
    return bool(program(_row(1, 0, 2), _scores(0.8, 0.9, 0.7), 0.5).tolist() == [False, True, True])


def _clusters(generator: torch.Generator, count: int, scale: float = 100.0) -> Tensor:
    """Boxes around a few places, so that they overlap in chains."""
    places = torch.rand(3, 2, generator=generator)[torch.randint(3, (count,), generator=generator)]
    corner = places * 0.6 + torch.rand(count, 2, generator=generator) * 0.2
    return torch.cat([corner, corner + 0.15 + torch.rand(count, 2, generator=generator) * 0.1], dim=1) * scale


def _generator(random: Random) -> torch.Generator:
    return torch.Generator().manual_seed(random.randrange(2**32))


def _nms_cases(random: Random) -> Sequence[Case]:
    generator = _generator(random)
    chain = torch.tensor([[0.0, 0.0, 10.0, 10.0], [3.0, 0.0, 13.0, 10.0], [6.0, 0.0, 16.0, 10.0]])
    drawn = [Case((_clusters(generator, n), 0.4)) for n in random.sample(range(12, 40), 5)]
    half = torch.tensor([[0.0, 0.0, 10.0, 10.0], [0.0, 0.0, 10.0, 5.0], [30.0, 0.0, 40.0, 10.0]])  # IoU 0.5 exactly
    long = torch.stack([chain[0] + torch.tensor([3.0 * k, 0.0, 3.0 * k, 0.0]) for k in range(40)])  # every second stays
    return [Case((boxes, 0.5)) for boxes in (chain, chain / 100, half, long)] + drawn


def _batch_cases(random: Random) -> Sequence[Case]:
    """Batches whose pictures need different numbers of rounds; row i of a picture scores above row i + 1."""
    generator, cases = _generator(random), []
    line = torch.eye(200, dtype=torch.bool).roll(1, dims=1).triu(diagonal=1)  # noqa: FL002 on the CPU
    cases.append(Case((torch.stack([torch.zeros_like(line), line]),)))
    for count in random.sample(range(8, 30), 4):
        boxes = torch.stack([_clusters(generator, count) for _ in range(3)])
        cases.append(Case(((box_iou(boxes, boxes) > 0.4).triu(diagonal=1),)))
    return cases


def _same_mask(given: object, expected: Tensor) -> bool:
    return isinstance(given, Tensor) and given.shape == expected.shape and torch.equal(given.bool(), expected)


EXERCISES = (
    Exercise(
        key="14.nms_by_hand",
        task="Rows that greedy suppression keeps of `boxes` (R, 4), best first, as a list of integers.",
        reference=nms_by_hand,
        cases=_nms_cases,
        hints=(
            "`frcnn_lite.ops.box_iou(boxes, boxes)` has all overlaps at once.",
            "Walk down the rows. What may remove row 5: all rows above it, or only some?",
            "Row by row: keep it, unless a row that was *kept* overlaps it by more than the threshold.",
        ),
        mistakes=(
            Mistake(
                "removed boxes remove others",
                "here a box is removed by one that is itself removed. A overlaps B, B overlaps C, A and C are apart: "
                "B goes, and C has to stay, since nothing is left that says the same.",
                "meant so, as an approximation, in Fast NMS: Bolya et al., YOLACT, 2019",
                answers=(_removed_boxes_remove,),
            ),
            Mistake(
                "counts pixels",
                "this is what comes out when 1 is added to widths and heights. On boxes in pixels it shifts the "
                "threshold a little; on boxes between 0 and 1 nearly all overlap, and one survives.",
                "shimat/opencvsharp pull request 1400, 2022",
                answers=(_nms_inclusive,),
            ),
            Mistake(
                "on the threshold",
                "here a box is removed that overlaps a kept one by exactly the threshold. It goes only if it "
                "overlaps by *more*.",
                answers=(_at_the_threshold,),
            ),
            Mistake(
                "itself",
                "here a box removes itself: its overlap with itself is 1. Compare it with the boxes above it.",
                answers=(_removes_itself,),
            ),
            Mistake(
                "one box alone",
                "this is what comes out when each box is compared with one other only, the row above it or the box "
                "that was kept last. Every box that was kept may remove it.",
                answers=(_last_kept, _row_above),
            ),
            Mistake(
                "a mask",
                "this is a mask. The numbers of the rows that stay were asked for.",
                answers=(_as_a_mask,),
            ),
        ),
    ),
    Exercise(
        key="14.keep_masks",
        task="Masks (B, R) of the boxes that suppression keeps, of suppresses (B, R, R) bool: box i may remove box j.",
        reference=keep_masks,
        cases=_batch_cases,
        agree=_same_mask,
        hints=(
            "One round for a batch is the line of one picture with one dimension more. Which dimension is box i?",
            "Start with all boxes kept. Compute the next mask from the last one, until two of them are equal.",
            "`after = ~(suppresses & keep[:, :, None]).any(dim=1)`, and stop when `torch.equal(after, keep)`.",
        ),
        mistakes=(
            Mistake(
                "one round",
                "this is the result of the first round, or of a mask that may only shrink, which comes to the same. "
                "A box that was removed by a box that is itself removed has to be given back.",
                "meant so, as an approximation, in Fast NMS: Bolya et al., YOLACT, 2019",
                answers=(_one_round,),
            ),
            Mistake(
                "a fixed number of rounds",
                "this is the result of a fixed number of rounds. How many are needed depends on the longest chain of "
                "the batch; go on until nothing changes.",
                answers=tuple(partial(_rounds, count) for count in (*range(2, 11), 20, 50, 100)),
            ),
            Mistake(
                "one picture is done",
                "this is what comes out when the rounds end as soon as nothing changes in one picture. The others "
                "may still need more rounds.",
                answers=(_until_one_is_done, _until_the_first_is_done),
            ),
            Mistake(
                "i and j exchanged",
                "here the worse box removes the better one. Row i of `suppresses` says whom box i may remove.",
                answers=(_exchanged,),
            ),
        ),
    ),
    Exercise(
        key="14.check_nms",
        task="A test: it calls `program(boxes, scores, threshold)`, which returns a mask of the boxes that are kept, "
        "and raises an AssertionError on a wrong suppression. It passes on right ones.",
        reference=check_nms,
        cases=_programs,
        hints=(
            "Each wrong program is right on many inputs. On which three boxes do a loop and a single round differ?",
            "Three boxes in a row, not sorted by score; the same boxes divided by 128; and two of them alone.",
            "`row = torch.tensor([[3.0, 0, 13, 10], [0, 0, 10, 10], [6, 0, 16, 10]])` with scores 0.8, 0.9, 0.7 "
            "and threshold 0.5 leaves [False, True, True].",
        ),
        mistakes=(
            Mistake(
                "no chain",
                "this is how a test ends in which no removed box overlaps a third one. A suppression that makes only "
                "one round, as Fast NMS does, passes it.",
                "meant so, as an approximation, in Fast NMS: Bolya et al., YOLACT, 2019",
                answers=(_without_a_chain,),
            ),
            Mistake(
                "sorted boxes only",
                "a program that never looks at the scores passes this test. That happens if the boxes are given best "
                "first, and also if their order makes no difference to what is kept. Let a good box come after a "
                "worse one that it removes.",
                "jwyang/faster-rcnn.pytorch issue 320, 2018: boxes reach the kernel without being sorted",
                answers=(_already_sorted, _sorted_in_pixels),
            ),
            Mistake(
                "a chain read backwards",
                "a program that takes the worst box first passes this test. It keeps as many boxes as a right one, "
                "and of a chain of three even the same ones. Two of the three boxes alone tell: which one stays?",
                answers=(_chain_alone, _chain_in_pixels, _counts),
            ),
            Mistake(
                "too few",
                "this is how a test ends that only sees whether boxes that overlap are left. A program that removes "
                "too many passes.",
                answers=(_none_overlap,),
            ),
            Mistake(
                "always fails",
                "this test fails on every program, also on the right ones; the error below says why. (A program "
                "returns a mask, true for each box that is kept, and not the numbers of rows.)",
                answers=(_wants_numbers,),
            ),
            Mistake(
                "pixels only",
                "this is how a test ends whose boxes are many pixels large. A program that adds 1 to widths and "
                "heights is nearly right there, and useless on boxes between 0 and 1.",
                "shimat/opencvsharp pull request 1400, 2022",
                answers=(_pixels_only,),
            ),
            Mistake(
                "never fails",
                "this test lets every program pass. Either it never raises anything (a test that *returns* False has "
                "passed; write `assert`), or its boxes do not overlap, so every program keeps all of them.",
                "pytest warns about tests that return something since version 7.2, 2022",
                answers=(_returns_the_comparison, _boxes_apart),
            ),
        ),
    ),
)
