"""Bounding box voting: where a detection lies is decided by all that saw the object."""

from dataclasses import replace

import pytest
import torch

from frcnn_lite.data import DigitScenes, collate
from frcnn_lite.detection import FasterRCNN, FasterRCNNConfig
from frcnn_lite.detection.postprocess import vote
from frcnn_lite.ops import box_iou


def some_candidates(count: int = 40) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    low = torch.rand(3, count, 2, generator=generator) * 30
    boxes = torch.cat([low, low + 5 + torch.rand(3, count, 2, generator=generator) * 20], dim=-1)
    return boxes, torch.rand(3, count, generator=generator), torch.randint(3, (3, count), generator=generator)


def test_it_is_the_mean_by_score_of_those_that_overlap() -> None:
    boxes, scores, labels = some_candidates()
    found = vote(boxes, scores, labels, 0.5)
    for image in range(3):
        for n, (box, label) in enumerate(zip(boxes[image], labels[image], strict=True)):
            near = box_iou(box[None], boxes[image])[0] >= 0.5
            mine = near & (labels[image] == label)
            expected = (boxes[image][mine] * scores[image][mine, None]).sum(0) / scores[image][mine].sum()
            torch.testing.assert_close(found[image, n], expected)
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(vote(boxes, scores, labels, 0.5), found)


def test_what_nobody_has_a_say_in_stays() -> None:
    point = torch.tensor([[[4.0, 4.0, 4.0, 9.0], [0.0, 0.0, 8.0, 8.0], [0.0, 0.0, 8.0, 8.0]]])
    labels = torch.tensor([[0, 1, 2]])
    for scores in (torch.tensor([[0.9, 0.5, 0.4]]), torch.zeros(1, 3)):
        assert vote(point, scores, labels, 0.5).equal(point), "no area, one's own class alone, no score"


@pytest.mark.parametrize("class_specific_boxes", [False, True])
def test_only_the_boxes_change(class_specific_boxes: bool) -> None:
    torch.manual_seed(0)
    plain = FasterRCNN(
        FasterRCNNConfig(class_specific_boxes=class_specific_boxes, score_threshold=0.0, voting_iou=1.0)
    ).eval()
    voting = FasterRCNN(replace(plain.config, voting_iou=0.5)).eval()
    voting.load_state_dict(plain.state_dict())
    scenes = DigitScenes("train", 3, seed=0)
    images = collate([scenes[k] for k in range(3)]).images
    first, second = plain(images), voting(images)
    for name in ("scores", "labels", "valid"):
        assert getattr(first, name).equal(getattr(second, name))
    assert not first.boxes.equal(second.boxes) and second.boxes.isfinite().all()
    torch.testing.assert_close(voting(images[1:2]).boxes[0], second.boxes[1], msg="an image's boxes are its own")
    assert second.boxes.min() >= 0 and second.boxes.max() <= 128
