import torch

from frcnn_lite.detection.matching import match

REAL = torch.tensor([[True, True, False]])


def test_thresholds_and_padding() -> None:
    #                     positive, ignored, negative, only padding overlaps
    iou = torch.tensor([[[0.9, 0.1, 0.2, 0.0], [0.3, 0.5, 0.1, 0.0], [0.0, 0.9, 0.9, 0.9]]])
    matches = match(iou, REAL, 0.7, 0.3)
    assert matches.positive.tolist() == [[True, False, False, False]]
    assert matches.negative.tolist() == [[False, False, True, True]]
    assert matches.gt_index[0, :3].tolist() == [0, 1, 0]


def test_thresholds_are_inclusive_above_and_exclusive_below() -> None:
    matches = match(torch.tensor([[[0.7, 0.3]]]), REAL[:, :1], 0.7, 0.3)
    assert matches.positive.tolist() == [[True, False]] and matches.negative.tolist() == [[False, False]]


def test_low_quality_gives_every_box_its_best_candidates_and_no_others() -> None:
    #                      best for box 0   tied best for box 1
    iou = torch.tensor([[[0.2, 0.1, 0.0, 0.0], [0.0, 0.25, 0.25, 0.1], [0.9, 0.9, 0.9, 0.9]]])
    matches = match(iou, REAL, 0.7, 0.3, allow_low_quality=True)
    assert matches.positive.tolist() == [[True, True, True, False]]
    assert matches.negative.tolist() == [[False, False, False, True]]
    assert matches.gt_index.tolist() == [[0, 1, 1, 1]]


def test_a_box_that_overlaps_nothing_rescues_nothing() -> None:
    matches = match(torch.zeros(1, 2, 3), torch.ones(1, 2, dtype=torch.bool), 0.7, 0.3, allow_low_quality=True)
    assert not matches.positive.any() and matches.negative.all()


def test_equals_torchvision() -> None:
    import pytest

    utils = pytest.importorskip("torchvision.models.detection._utils")
    iou = (torch.rand(6, 5, 40, generator=torch.Generator().manual_seed(0)) * 20).round() / 20  # ties occur
    real = torch.ones(6, 5, dtype=torch.bool)
    for low_quality in (False, True):
        ours = match(iou, real, 0.7, 0.3, allow_low_quality=low_quality)
        for image in range(6):
            theirs = utils.Matcher(0.7, 0.3, allow_low_quality_matches=low_quality)(iou[image])
            assert torch.equal(ours.positive[image], theirs >= 0)
            assert torch.equal(ours.negative[image], theirs == -1)
            chosen = theirs >= 0
            assert torch.equal(iou[image].gather(0, ours.gt_index[image][None])[0, chosen], iou[image].amax(0)[chosen])
