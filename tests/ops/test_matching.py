import pytest
import torch

from frcnn_lite.ops.matching import BACKGROUND, IGNORED, match

REAL = torch.tensor([[True, True, False]])


def test_thresholds_and_padding() -> None:
    #                     positive, ignored, negative, only padding overlaps
    iou = torch.tensor([[[0.9, 0.1, 0.2, 0.0], [0.3, 0.5, 0.1, 0.0], [0.0, 0.9, 0.9, 0.9]]])
    assert match(iou, REAL, 0.7, 0.3).tolist() == [[0, IGNORED, BACKGROUND, BACKGROUND]]


def test_thresholds_are_inclusive_above_and_exclusive_below() -> None:
    assert match(torch.tensor([[[0.7, 0.3]]]), REAL[:, :1], 0.7, 0.3).tolist() == [[0, IGNORED]]


def test_low_quality_gives_every_box_its_best_candidates_and_no_others() -> None:
    #                      best for box 0   tied best for box 1
    iou = torch.tensor([[[0.2, 0.1, 0.0, 0.0], [0.0, 0.25, 0.25, 0.1], [0.9, 0.9, 0.9, 0.9]]])
    assert match(iou, REAL, 0.7, 0.3, allow_low_quality=True).tolist() == [[0, 1, 1, BACKGROUND]]


def test_a_box_that_overlaps_nothing_rescues_nothing() -> None:
    matched = match(torch.zeros(1, 2, 3), torch.ones(1, 2, dtype=torch.bool), 0.7, 0.3, allow_low_quality=True)
    assert (matched == BACKGROUND).all()


def test_equals_torchvision() -> None:
    utils = pytest.importorskip("torchvision.models.detection._utils")
    iou = (torch.rand(6, 5, 40, generator=torch.Generator().manual_seed(0)) * 20).round() / 20  # ties occur
    real = torch.ones(6, 5, dtype=torch.bool)
    for low_quality in (False, True):
        ours = match(iou, real, 0.7, 0.3, allow_low_quality=low_quality)
        for image in range(6):
            theirs = utils.Matcher(0.7, 0.3, allow_low_quality_matches=low_quality)(iou[image])
            positive = theirs >= 0
            assert torch.equal(ours[image].clamp(max=0), theirs.clamp(max=0))
            # of boxes that it overlaps equally well, either may be the candidate's
            assert torch.equal(
                iou[image].gather(0, ours[image][None].clamp(min=0))[0, positive], iou[image].amax(0)[positive]
            )
