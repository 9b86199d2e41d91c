"""Target assignment: the compiled kernel against the steps it stands for."""

import pytest
import torch
from op_counter import READS_BACK, OpCounter
from torch import Tensor

from frcnn_lite.ops import random_keys
from frcnn_lite.ops.kernels import compiled
from frcnn_lite.ops.targets import Targets, assign_in_torch, assign_targets

WEIGHTS = torch.tensor([10.0, 10.0, 5.0, 5.0])
BACKGROUND = 7


def scene(seed: int, images: int = 3, rows: int = 5, candidates: int = 400) -> tuple[Tensor, ...]:
    """Candidates (B, N, 4), some of them equal to boxes, some empty; boxes, their labels, -1 for padding; keys."""
    generator = torch.Generator().manual_seed(seed)

    def draw(count: int) -> Tensor:
        low = torch.randint(100, (images, count, 2), generator=generator).float()
        return torch.cat([low, low + torch.randint(60, (images, count, 2), generator=generator)], dim=2)

    boxes = draw(rows)
    candidates_ = torch.cat([draw(candidates), boxes], dim=1)
    labels = torch.randint(-1, 3, (images, rows), generator=generator)
    keys = random_keys(torch.arange(images) + seed, candidates_.shape[1], 0)
    return candidates_, boxes, labels, keys


def both(candidates: Tensor, valid: Tensor | None, boxes: Tensor, labels: Tensor, keys: Tensor, *rule) -> list[Targets]:
    kernel = compiled("targets")
    assert kernel is not None
    arguments = (candidates, valid, boxes, labels, keys, WEIGHTS.to(boxes.dtype), *rule, BACKGROUND)
    return [assign_in_torch(*arguments), Targets(*kernel.assign(*arguments))]


def assert_same(expected: Targets, found: Targets) -> None:
    for name, one, other in zip(Targets._fields, expected, found, strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape, name
        if name == "deltas":  # the two take a logarithm from different libraries
            torch.testing.assert_close(other, one, rtol=1e-6, atol=1e-5)
        else:
            assert torch.equal(one, other), name


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("low_quality", [False, True])
@pytest.mark.parametrize("thresholds", [(0.6, 0.3), (0.5, 0.5), (0.0, 0.0)])
def test_the_kernel_assigns_what_the_steps_do(dtype, low_quality, thresholds) -> None:
    for seed in range(10):
        candidates, boxes, labels, keys = scene(seed)
        valid = keys.roll(1, 0) < 0.9
        for size, fraction in ((32, 0.5), (500, 0.25), (7, 1.0)):
            rule = (*thresholds, size, fraction, low_quality)
            assert_same(*both(candidates.to(dtype), valid, boxes.to(dtype), labels, keys, *rule))


def test_the_same_candidates_for_every_image() -> None:
    candidates, boxes, labels, keys = scene(0)
    assert_same(*both(candidates[0], None, boxes, labels, keys, 0.6, 0.3, 64, 0.5, True))


def test_images_without_objects_have_background_only() -> None:
    candidates, boxes, _, keys = scene(0)
    expected, found = both(candidates, None, boxes, torch.full((3, 5), -1), keys, 0.6, 0.3, 64, 0.5, True)
    assert_same(expected, found)
    assert (found.labels == BACKGROUND).all() and found.weights.all() and not found.box_weights.any()
    assert found.deltas.isfinite().all()


def test_too_few_candidates_leave_slots_empty() -> None:
    candidates, boxes, labels, keys = scene(0, candidates=2)
    valid = torch.zeros(3, 7, dtype=torch.bool)
    valid[:, :3] = True
    expected, found = both(candidates, valid, boxes, labels, keys, 0.5, 0.5, 10, 1.0, False)
    assert_same(expected, found)
    assert found.weights.sum(dim=1).tolist() == [3, 3, 3] and not found.box_weights[found.weights == 0].any()


def test_views_and_boxes_of_another_precision() -> None:
    candidates, boxes, labels, keys = scene(0)
    settings = {"thresholds": (0.6, 0.3), "size": 16, "positive_fraction": 0.5, "background": BACKGROUND}
    usual = assign_targets(candidates, boxes, labels, keys, WEIGHTS, **settings)
    turned = assign_targets(candidates.mT.contiguous().mT, boxes.mT.contiguous().mT, labels, keys, WEIGHTS, **settings)
    assert_same(usual, turned)
    mixed = assign_targets(candidates.double(), boxes, labels, keys, WEIGHTS, **settings)
    assert torch.equal(mixed.indices, usual.indices)


def test_is_an_operator_as_pytorch_wants_them() -> None:
    candidates, boxes, labels, keys = scene(0)
    arguments = (candidates, None, boxes, labels, keys, WEIGHTS, 0.6, 0.3, 16, 0.5, True, 7)
    torch.library.opcheck(torch.ops.frcnn_lite.assign_targets.default, arguments)


def test_the_steps_wait_for_no_device() -> None:
    candidates, boxes, labels, keys = scene(0)
    with OpCounter() as counter:
        assign_in_torch(candidates, None, boxes, labels, keys, WEIGHTS, 0.6, 0.3, 16, 0.5, True, 7)
    assert len(counter.ops) > 50 and [op for op in counter.ops if any(word in op for word in READS_BACK)] == []


SETTINGS = {"thresholds": (0.6, 0.3), "size": 16, "positive_fraction": 0.5, "background": BACKGROUND}


def arguments() -> dict[str, Tensor]:
    given = dict(zip(("candidates", "boxes", "labels", "keys"), scene(0), strict=True))
    return given | {"valid": given["keys"] < 0.9, "delta_weights": WEIGHTS}


@pytest.mark.parametrize("wrong", ["candidates", "boxes", "labels", "keys", "valid"])
def test_shapes_that_do_not_fit_are_named(wrong) -> None:
    given = arguments()
    for part in (given[wrong][:, 1:], given[wrong][1:], given[wrong][0, 0]):
        with pytest.raises(ValueError, match=r"want candidates .* got candidates \("):
            assign_targets(**{**given, wrong: part}, **SETTINGS)


@pytest.mark.parametrize("rows", [("boxes", "labels"), ("candidates", "keys", "valid")])
def test_nothing_to_match_is_refused(rows) -> None:
    given = arguments()
    with pytest.raises(ValueError, match="N and M at least 1"):
        assign_targets(**{**given, **{name: given[name][:, :0] for name in rows}}, **SETTINGS)


def test_a_weight_for_each_delta_is_wanted() -> None:
    with pytest.raises(ValueError, match=r"delta_weights \(1,\)"):
        assign_targets(**{**arguments(), "delta_weights": torch.ones(1)}, **SETTINGS)


def test_labels_are_int64_whatever_they_were() -> None:
    candidates, boxes, labels, keys = scene(0)
    assert_same(*both(candidates, None, boxes, labels.int(), keys, 0.6, 0.3, 16, 0.5, True))
