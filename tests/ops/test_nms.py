"""nms_mask against a slow oracle and against torchvision."""

import pytest
import torch
from torch import Tensor

from frcnn_lite.ops.nms import nms_mask, round_down


def overlaps(boxes: Tensor) -> Tensor:
    """IoU (B, K, K) of every box of an image with every other, in the arithmetic of torchvision."""
    low = torch.maximum(boxes[:, :, None, :2], boxes[:, None, :, :2])
    high = torch.minimum(boxes[:, :, None, 2:], boxes[:, None, :, 2:])
    intersection = (high - low).clamp(min=0).prod(dim=3)
    area = (boxes[..., 2:] - boxes[..., :2]).prod(dim=2)
    return intersection / (area[:, :, None] + area[:, None, :] - intersection)


def slow_nms(boxes: Tensor, scores: Tensor, threshold: float, classes: Tensor | None = None) -> list[bool]:
    """Greedy NMS of one image, one pair at a time, in float64."""
    corners = boxes.double().tolist()
    order = sorted(range(len(corners)), key=lambda i: -float(scores[i]))
    kept: list[int] = []
    for i in order:
        a = corners[i]
        for j in kept:
            b = corners[j]
            if classes is not None and classes[i] != classes[j]:
                continue
            width = max(0.0, min(a[2], b[2]) - max(a[0], b[0]))
            height = max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
            union = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - width * height
            if union > 0 and width * height / union > threshold:
                break
        else:
            kept.append(i)
    return [i in kept for i in range(len(corners))]


def crowd(batch: int, count: int, spread: float, seed: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    corner = torch.rand(batch, count, 2, generator=generator, dtype=dtype) * spread
    size = torch.rand(batch, count, 2, generator=generator, dtype=dtype) * 40 + 10
    return torch.cat([corner, corner + size], -1), torch.rand(batch, count, generator=generator, dtype=dtype)


@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.5, 0.7, 1.0])
@pytest.mark.parametrize("spread", [15.0, 60.0, 400.0])
def test_equals_the_slow_oracle(threshold: float, spread: float) -> None:
    boxes, scores = crowd(3, 60, spread, seed=int(spread), dtype=torch.float64)
    expected = [slow_nms(b, s, threshold) for b, s in zip(boxes, scores, strict=True)]
    assert nms_mask(overlaps(boxes), scores, threshold).tolist() == expected


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("threshold", [0.3, 0.7])
def test_equals_torchvision(dtype: torch.dtype, threshold: float) -> None:
    ops = pytest.importorskip("torchvision.ops")
    for spread in (20.0, 100.0, 500.0):
        boxes, scores = crowd(4, 400, spread, seed=1, dtype=dtype)
        mask = nms_mask(overlaps(boxes), scores, threshold)
        for image in range(4):
            expected = torch.zeros(400, dtype=torch.bool)
            expected[ops.nms(boxes[image], scores[image], threshold)] = True
            assert torch.equal(mask[image], expected)


def test_a_threshold_that_float32_cannot_hold_decides_as_in_double() -> None:
    """IoU = 1/5 in float32 is a little more than 0.2, so such a pair is suppressed, as torchvision does it."""
    ops = pytest.importorskip("torchvision.ops")
    boxes = torch.tensor([[0.0, 0.0, 5.0, 1.0], [0.0, 0.0, 1.0, 1.0]])
    scores = torch.tensor([0.9, 0.8])
    expected = len(ops.nms(boxes, scores, 0.2))
    assert nms_mask(overlaps(boxes[None]), scores[None], 0.2).sum() == expected == 1


def test_a_threshold_is_rounded_down_and_never_up() -> None:
    for threshold in (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1e-3):
        rounded = torch.tensor(round_down(threshold, torch.float32), dtype=torch.float32)
        above = torch.nextafter(rounded, torch.tensor(torch.inf))
        assert rounded.item() <= threshold < above.item()
    assert round_down(0.3, torch.float64) == 0.3 and round_down(0.0, torch.float32) == 0.0


def test_classes_leave_each_other_alone() -> None:
    boxes, scores = crowd(2, 80, 40.0, seed=3, dtype=torch.float64)
    classes = torch.randint(0, 4, (2, 80), generator=torch.Generator().manual_seed(0))
    expected = [slow_nms(b, s, 0.4, c) for b, s, c in zip(boxes, scores, classes, strict=True)]
    assert nms_mask(overlaps(boxes), scores, 0.4, classes).tolist() == expected
    assert nms_mask(overlaps(boxes), scores, 0.4).sum() < nms_mask(overlaps(boxes), scores, 0.4, classes).sum()


def test_a_long_chain_of_suppressors_is_settled() -> None:
    """Each box overlaps only its neighbours: every second one stays, and the last depends on the first."""
    left = torch.arange(101, dtype=torch.float32) * 4
    boxes = torch.stack([left, torch.zeros(101), left + 10, torch.ones(101)], dim=1)
    keep = nms_mask(overlaps(boxes[None]), torch.arange(101, 0, -1.0)[None], 0.3)[0]
    assert keep.tolist() == [i % 2 == 0 for i in range(101)]


def test_of_equal_scores_the_first_stays() -> None:
    boxes = torch.tensor([[0.0, 0.0, 10.0, 10.0]]).repeat(1, 3, 1)
    assert nms_mask(overlaps(boxes), torch.ones(1, 3), 0.5).tolist() == [[True, False, False]]


def test_padding_of_score_minus_infinity_suppresses_nothing_real() -> None:
    boxes = torch.tensor([[[0.0, 0.0, 10.0, 10.0], [0.0, 0.0, 10.0, 9.0]]])
    keep = nms_mask(overlaps(boxes), torch.tensor([[-torch.inf, 0.1]]), 0.5)
    assert keep.tolist() == [[False, True]]


def test_no_boxes() -> None:
    assert nms_mask(overlaps(torch.zeros(2, 0, 4)), torch.zeros(2, 0), 0.5).shape == (2, 0)


def test_an_image_is_treated_alone() -> None:
    boxes, scores = crowd(5, 50, 50.0, seed=4, dtype=torch.float32)
    alone = torch.cat([nms_mask(overlaps(b[None]), s[None], 0.5) for b, s in zip(boxes, scores, strict=True)])
    assert torch.equal(nms_mask(overlaps(boxes), scores, 0.5), alone)


def test_boxes_that_are_not_numbers_leave_the_others_alone() -> None:
    """Their IoU is NaN, which is not above any threshold."""
    boxes = torch.tensor([[[torch.nan, 0.0, 10.0, 10.0], [0.0, 0.0, 10.0, 10.0], [0.0, 0.0, 10.0, 9.0]]])
    assert nms_mask(overlaps(boxes), torch.tensor([[0.9, 0.8, 0.7]]), 0.5).tolist() == [[True, True, False]]


def test_wrong_shapes_are_named() -> None:
    iou, scores = torch.zeros(1, 3, 3), torch.zeros(1, 3)
    with pytest.raises(ValueError, match=r"`iou` must be \(B, K, K\), got \(3, 3\)"):
        nms_mask(iou[0], scores, 0.5)
    with pytest.raises(ValueError, match=r"`iou` must be \(B, K, K\), got \(1, 3, 4\)"):
        nms_mask(torch.zeros(1, 3, 4), scores, 0.5)
    with pytest.raises(ValueError, match=r"`scores` must be \(B, K\) = \(1, 3\), got \(3,\)"):
        nms_mask(iou, scores[0], 0.5)
    with pytest.raises(ValueError, match=r"`classes` must be \(B, K\) = \(1, 3\), got \(1, 2\)"):
        nms_mask(iou, scores, 0.5, torch.zeros(1, 2))
