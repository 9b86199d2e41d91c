import math

import pytest
import torch

from frcnn_lite.ops.boxes import box_iou, clip_boxes, decode_boxes, encode_boxes


def random_boxes(*shape: int, generator: torch.Generator, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    corner = torch.rand(*shape, 2, generator=generator, dtype=dtype) * 100
    size = torch.rand(*shape, 2, generator=generator, dtype=dtype) * 60 + 1
    return torch.cat([corner, corner + size], dim=-1)


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def test_iou_by_hand() -> None:
    first = torch.tensor([[0.0, 0.0, 2.0, 2.0]])
    second = torch.tensor([[0.0, 0.0, 2.0, 2.0], [1.0, 1.0, 3.0, 3.0], [2.0, 0.0, 4.0, 2.0], [5.0, 5.0, 6.0, 6.0]])
    assert torch.allclose(box_iou(first, second), torch.tensor([[1.0, 1 / 7, 0.0, 0.0]]))


def test_iou_of_a_batch_is_the_iou_of_each_image(generator: torch.Generator) -> None:
    first, second = random_boxes(3, 5, generator=generator), random_boxes(3, 7, generator=generator)
    assert torch.equal(box_iou(first, second), torch.stack([box_iou(a, b) for a, b in zip(first, second, strict=True)]))


def test_iou_equals_torchvision(generator: torch.Generator) -> None:
    ops = pytest.importorskip("torchvision.ops")
    for dtype in (torch.float32, torch.float64):
        first = random_boxes(20, generator=generator, dtype=dtype)
        second = random_boxes(30, generator=generator, dtype=dtype)
        assert torch.equal(box_iou(first, second), ops.box_iou(first, second))


def test_iou_of_two_empty_boxes_is_zero_and_not_nan() -> None:
    padding = torch.zeros(1, 4)
    assert box_iou(padding, padding).item() == 0.0


def test_decode_inverts_encode(generator: torch.Generator) -> None:
    boxes, reference = random_boxes(2, 9, generator=generator), random_boxes(2, 9, generator=generator)
    weights = torch.tensor([10.0, 10.0, 5.0, 5.0], dtype=torch.float64)
    decoded = decode_boxes(encode_boxes(boxes, reference, weights), reference, weights)
    torch.testing.assert_close(decoded, boxes, rtol=1e-10, atol=1e-10)


def test_encode_by_hand() -> None:
    reference = torch.tensor([0.0, 0.0, 10.0, 20.0])
    boxes = torch.tensor([5.0, 10.0, 25.0, 20.0])  # centre (15, 15) against (5, 10), size (20, 10) against (10, 20)
    deltas = encode_boxes(boxes, reference, torch.ones(4))
    torch.testing.assert_close(deltas, torch.tensor([1.0, 0.25, math.log(2), -math.log(2)]))


def test_encode_of_padding_is_finite() -> None:
    assert encode_boxes(torch.zeros(1, 4), torch.zeros(1, 4), torch.ones(4)).isfinite().all()


def test_decode_limits_the_size() -> None:
    decoded = decode_boxes(torch.tensor([0.0, 0.0, 1e4, 1e4]), torch.tensor([0.0, 0.0, 1.0, 1.0]), torch.ones(4))
    torch.testing.assert_close(decoded[2:] - decoded[:2], torch.tensor([62.5, 62.5]))


def test_clip_keeps_boxes_inside_the_image() -> None:
    boxes = torch.tensor([[-5.0, -6.0, 200.0, 50.0], [10.0, 20.0, 30.0, 40.0]])
    assert clip_boxes(boxes, height=40, width=100).tolist() == [[0.0, 0.0, 100.0, 40.0], [10.0, 20.0, 30.0, 40.0]]
