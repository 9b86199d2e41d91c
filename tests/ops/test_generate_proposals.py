"""Proposal generation: the compiled kernel against the steps it stands for, bit for bit."""

import math

import pytest
import torch
from torch import Tensor

from frcnn_lite.ops import generate_proposals
from frcnn_lite.ops.kernels import compiled
from frcnn_lite.ops.proposals import generate_in_torch

WEIGHTS = torch.tensor([1.0, 1.0, 0.5, 0.5])
SIZE = (110, 128)


def predictions(seed: int, anchors: int, spread: float, dtype: torch.dtype = torch.float32) -> tuple[Tensor, ...]:
    """Logits (3, N) with ties, deltas (3, N, 4) and anchors (N, 4), some of which reach out of the picture."""
    generator = torch.Generator().manual_seed(seed)
    low = torch.rand(anchors, 2, generator=generator, dtype=dtype) * 150 - 20
    boxes = torch.cat([low, low + torch.rand(anchors, 2, generator=generator, dtype=dtype) * 40], dim=1)
    logits = torch.randint(-50, 50, (3, anchors), generator=generator).to(dtype)
    return logits, torch.randn(3, anchors, 4, generator=generator, dtype=dtype) * spread, boxes, WEIGHTS.to(dtype)


def assert_same(*arguments) -> tuple[Tensor, Tensor]:
    kernel = compiled("proposals")
    assert kernel is not None
    expected, found = generate_in_torch(*arguments), kernel.generate(*arguments)
    for one, other in zip(expected, found, strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape
        torch.testing.assert_close(other, one, rtol=0, atol=0, equal_nan=True)
    return found


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("levels", [(400,), (300, 93, 7)])
@pytest.mark.parametrize("spread", [0.05, 0.3, 3.0])
def test_the_kernel_generates_what_the_steps_do(dtype, levels, spread) -> None:
    for seed in range(10):
        given = predictions(seed, 400, spread, dtype)
        for candidates, threshold, size in ((200, 0.7, 48), (400, 0.5, 300), (20, 0.0, 30), (5, 1.0, 900)):
            assert_same(*given, SIZE, levels, candidates, threshold, size)


def test_predictions_that_are_not_numbers_propose_nothing() -> None:
    logits, deltas, anchors, weights = predictions(0, 60, 0.1)
    deltas[0, :, 0], deltas[1, ::2, 3] = math.nan, math.inf
    _, valid = assert_same(logits, deltas, anchors, weights, SIZE, (60,), 60, 0.7, 20)
    assert not valid[0].any() and valid[2].any()


def test_a_batch_is_its_pictures_one_by_one_and_views_are_welcome() -> None:
    logits, deltas, anchors, weights = predictions(1, 200, 0.2)
    settings = {"image_size": SIZE, "levels": (200,), "candidates": 100, "iou_threshold": 0.6, "size": 25}
    boxes, valid = generate_proposals(logits, deltas, anchors, weights, **settings)
    turned = generate_proposals(logits, deltas.mT.contiguous().mT, anchors.mT.contiguous().mT, weights, **settings)
    assert torch.equal(turned[0], boxes) and torch.equal(turned[1], valid)
    for k in range(3):
        alone = generate_proposals(logits[k : k + 1], deltas[k : k + 1], anchors, weights, **settings)
        assert torch.equal(alone[0][0], boxes[k]) and torch.equal(alone[1][0], valid[k])


def test_logits_of_another_precision_are_taken_by_the_steps() -> None:
    logits, deltas, anchors, weights = predictions(2, 200, 0.2)
    settings = {"image_size": SIZE, "levels": (200,), "candidates": 100, "iou_threshold": 0.6, "size": 25}
    usual = generate_proposals(logits, deltas, anchors, weights, **settings)
    mixed = generate_proposals(logits.double(), deltas, anchors, weights, **settings)
    assert torch.equal(mixed[0], usual[0]) and torch.equal(mixed[1], usual[1])


@pytest.mark.parametrize("levels", [(60,), (50, 10)])
def test_is_an_operator_as_pytorch_wants_them(levels) -> None:
    arguments = (*predictions(3, 60, 0.1), list(SIZE), list(levels), 20, 0.7, 25)
    torch.library.opcheck(torch.ops.frcnn_lite.generate_proposals.default, arguments)


def test_shapes_that_do_not_fit_are_named() -> None:
    logits, deltas, anchors, weights = predictions(4, 60, 0.1)
    settings = {"image_size": SIZE, "candidates": 20, "iou_threshold": 0.7, "size": 25}
    for given in ((logits[:, 1:], deltas, anchors), (logits, deltas[..., :3], anchors), (logits, deltas, anchors[1:])):
        with pytest.raises(ValueError, match=r"want logits \(B, N\), deltas \(B, N, 4\), anchors \(N, 4\)"):
            generate_proposals(*given, weights, levels=(60,), **settings)
    with pytest.raises(ValueError, match=r"levels that add up to N, got .*, \(50, 9\)"):
        generate_proposals(logits, deltas, anchors, weights, levels=(50, 9), **settings)


def test_mixed_precision_is_taken_by_the_steps_and_foreseen() -> None:
    logits, deltas, anchors, weights = predictions(5, 60, 0.1)
    settings = {"image_size": SIZE, "levels": (60,), "candidates": 20, "iou_threshold": 0.7, "size": 25}
    for given in (
        (deltas, anchors.double(), weights),
        (deltas, anchors, weights.double()),
        (deltas.half(), anchors, weights),
    ):
        arguments = (logits, *given, list(SIZE), [60], 20, 0.7, 25)
        torch.library.opcheck(torch.ops.frcnn_lite.generate_proposals.default, arguments)
        boxes, _ = generate_proposals(logits, *given, **settings)
        assert boxes.dtype == max((x.dtype for x in given), key=lambda dtype: dtype.itemsize)


def test_a_trace_of_the_jit_and_a_compiled_call_of_any_size_keep_the_values() -> None:
    logits, deltas, anchors, weights = predictions(6, 60, 0.1)
    deltas.requires_grad_()

    def propose(logits: Tensor, deltas: Tensor) -> tuple[Tensor, Tensor]:
        settings = {"image_size": SIZE, "levels": (60,), "candidates": 20, "iou_threshold": 0.7, "size": 25}
        return generate_proposals(logits, deltas, anchors, weights, **settings)

    expected = propose(logits, deltas)
    traced = torch.jit.trace(propose, (logits, deltas), check_trace=False)
    for x in (logits, deltas):
        torch._dynamo.mark_dynamic(x, 0)  # refuses where the batch would become a constant
    compiled_ = torch.compile(propose, fullgraph=True, backend="eager")
    for found in (traced(logits, deltas), compiled_(logits, deltas)):
        assert torch.equal(found[0], expected[0]) and torch.equal(found[1], expected[1])
