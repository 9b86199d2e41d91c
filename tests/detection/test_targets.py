"""Target assignment against torchvision's, picture by picture, and what it promises of the awkward cases."""

import pytest
import torch
from op_counter import READS_BACK, OpCounter
from torch import Tensor

from frcnn_lite.detection.targets import Targets, assign_targets
from frcnn_lite.ops import random_keys

WEIGHTS = torch.tensor([10.0, 10.0, 5.0, 5.0])
BACKGROUND = 7
SETTINGS = {"thresholds": (0.6, 0.3), "size": 16, "positive_fraction": 0.5, "background": BACKGROUND}


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


def assert_same(expected: Targets, found: Targets) -> None:
    for name, one, other in zip(Targets._fields, expected, found, strict=True):
        assert one.dtype == other.dtype and torch.equal(one, other), name


@pytest.mark.parametrize("low_quality", [False, True])
@pytest.mark.parametrize("thresholds", [(0.6, 0.3), (0.5, 0.5)])
def test_with_room_for_all_candidates_targets_are_torchvisions(low_quality, thresholds) -> None:
    ops = pytest.importorskip("torchvision.ops")
    utils = pytest.importorskip("torchvision.models.detection._utils")
    for seed in range(5):
        candidates, boxes, labels, keys = scene(seed)
        boxes[..., 2:] += 1  # torchvision's logarithm has no bound for an empty box
        candidates[..., 2:] += 1
        settings = SETTINGS | {"thresholds": thresholds, "size": candidates.shape[1], "positive_fraction": 1.0}
        found = assign_targets(candidates, boxes, labels, keys, WEIGHTS, allow_low_quality=low_quality, **settings)
        for k in range(len(boxes)):
            real = labels[k] >= 0
            if not real.any():
                continue
            matcher = utils.Matcher(*thresholds, allow_low_quality_matches=low_quality)
            matched = matcher(ops.box_iou(boxes[k][real], candidates[k]))
            used = matched > -2
            taken, weights = found.indices[k], found.weights[k]
            assert sorted(taken[weights > 0].tolist()) == used.nonzero()[:, 0].tolist()
            theirs = matched[taken]
            wanted = labels[k][real][theirs.clamp(min=0)].where(theirs >= 0, BACKGROUND)
            assert torch.equal(found.labels[k][weights > 0], wanted[weights > 0])
            assert torch.equal(found.box_weights[k] > 0, (theirs >= 0) & (weights > 0))
            near = boxes[k][real][theirs.clamp(min=0)]
            deltas = utils.BoxCoder(tuple(WEIGHTS.tolist())).encode_single(near, candidates[k][taken])
            has_box = found.box_weights[k] > 0
            torch.testing.assert_close(found.deltas[k][has_box], deltas[has_box], rtol=1e-5, atol=1e-5)


def test_the_same_candidates_for_every_image() -> None:
    candidates, boxes, labels, keys = scene(0)
    shared = candidates[:1].expand(3, -1, -1)
    found = assign_targets(candidates[0], boxes, labels, keys, WEIGHTS, allow_low_quality=True, **SETTINGS)
    assert_same(assign_targets(shared, boxes, labels, keys, WEIGHTS, allow_low_quality=True, **SETTINGS), found)


def test_images_without_objects_have_background_only() -> None:
    candidates, boxes, _, keys = scene(0)
    found = assign_targets(candidates, boxes, torch.full((3, 5), -1), keys, WEIGHTS, **SETTINGS)
    assert (found.labels == BACKGROUND).all() and found.weights.all() and not found.box_weights.any()
    assert found.deltas.isfinite().all()


def test_too_few_candidates_leave_slots_empty() -> None:
    candidates, boxes, labels, keys = scene(0, candidates=2)
    valid = torch.zeros(3, 7, dtype=torch.bool)
    valid[:, :3] = True
    settings = SETTINGS | {"thresholds": (0.5, 0.5), "size": 10, "positive_fraction": 1.0}
    found = assign_targets(candidates, boxes, labels, keys, WEIGHTS, valid=valid, **settings)
    assert found.weights.sum(dim=1).tolist() == [3, 3, 3] and not found.box_weights[found.weights == 0].any()
    assert (found.indices[found.weights > 0] < 3).all()


def test_the_steps_wait_for_no_device() -> None:
    candidates, boxes, labels, keys = scene(0)
    with OpCounter() as counter:
        assign_targets(candidates, boxes, labels, keys, WEIGHTS, **SETTINGS)
    assert len(counter.ops) > 50 and [op for op in counter.ops if any(word in op for word in READS_BACK)] == []


def arguments() -> dict[str, Tensor]:
    given = dict(zip(("candidates", "boxes", "labels", "keys"), scene(0), strict=True))
    return given | {"valid": given["keys"] < 0.9, "delta_weights": WEIGHTS}


@pytest.mark.parametrize("wrong", ["boxes", "keys", "valid"])
def test_the_argument_whose_shape_does_not_fit_is_named(wrong) -> None:
    given = arguments()
    for part in (given[wrong][:, 1:], given[wrong][1:], given[wrong][0, 0]):
        with pytest.raises(ValueError, match=rf"`{wrong}` must be \(3, .*got \("):
            assign_targets(**{**given, wrong: part}, **SETTINGS)


def test_the_arguments_that_the_others_are_compared_with_are_named() -> None:
    given = arguments()
    for part in (given["labels"][0], given["labels"][:, :0]):
        with pytest.raises(ValueError, match=r"`labels` must be \(B, M\), M at least 1, got \("):
            assign_targets(**{**given, "labels": part}, **SETTINGS)
    candidates = given["candidates"]
    for part in (candidates[1:], candidates[..., :3], candidates[:, :0], candidates[0, 0]):
        with pytest.raises(ValueError, match=r"`candidates` must be \(N, 4\) or \(3, N, 4\), N at least 1, got \("):
            assign_targets(**{**given, "candidates": part}, **SETTINGS)
    with pytest.raises(ValueError, match=r"`delta_weights` must be \(4,\), got \(1,\)"):
        assign_targets(**{**given, "delta_weights": torch.ones(1)}, **SETTINGS)


def test_labels_are_int64_whatever_they_were() -> None:
    candidates, boxes, labels, keys = scene(0)
    found = assign_targets(candidates, boxes, labels.int(), keys, WEIGHTS, **SETTINGS)
    assert_same(assign_targets(candidates, boxes, labels, keys, WEIGHTS, **SETTINGS), found)
