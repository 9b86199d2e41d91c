import pytest
import torch
from torch import nn

from frcnn_lite.data import DigitScenes, Ignored, Letterbox, LetterboxedScenes
from frcnn_lite.detection import Detections
from frcnn_lite.engine import evaluate


class Oracle(nn.Module):
    """Finds what `answer(scene)` says: a detector whose precision is known."""

    def __init__(self, dataset, answer):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))
        self.found = [answer(dataset[i]) for i in range(len(dataset))]
        self.row = 0

    def forward(self, images):
        rows = self.found[self.row : self.row + len(images)]
        self.row += len(images)
        boxes, scores, labels = (torch.zeros(len(rows), 8, *s) for s in ((4,), (), ()))
        valid = torch.zeros(len(rows), 8, dtype=torch.bool)
        for k, (b, s, c) in enumerate(rows):
            boxes[k, : len(b)], scores[k, : len(b)], labels[k, : len(b)] = b, s, c.float()
            valid[k, : len(b)] = True
        return Detections(boxes, scores, labels.long(), valid)


@pytest.fixture
def scenes():
    return DigitScenes("test", 12)


def test_the_truth_has_precision_one(scenes, capsys):
    model = Oracle(scenes, lambda s: (s.boxes, torch.ones(len(s.labels)), s.labels))
    result = evaluate(model, scenes, batch_size=5)
    assert pytest.approx((1.0, 1.0, 1.0)) == (result.AP, result.AP50, result.AP75)
    assert list(result.AP50_per_class.values()) == pytest.approx([1.0] * len(result.AP50_per_class))
    assert result.images == 12 and result.objects == sum(len(scenes[i].labels) for i in range(12))
    assert capsys.readouterr() == ("", "")


def test_loose_boxes_pass_at_50_and_fail_at_75(scenes):
    def looser(scene):
        side = scene.boxes[:, 2:] - scene.boxes[:, :2]
        grown = torch.cat([scene.boxes[:, :2], scene.boxes[:, 2:] + side * 0.25], dim=1)  # IoU 1 / 1.25 ** 2 = 0.64
        return grown, torch.ones(len(scene.labels)), scene.labels

    result = evaluate(Oracle(scenes, looser), scenes)
    assert pytest.approx(1.0) == result.AP50 and result.AP75 == 0.0
    assert pytest.approx(0.3) == result.AP  # right at 0.50, 0.55 and 0.60 of ten thresholds


def test_wrong_labels_and_nothing_found(scenes):
    wrong = Oracle(scenes, lambda s: (s.boxes, torch.ones(len(s.labels)), (s.labels + 1) % 10))
    assert evaluate(wrong, scenes).AP50 < 0.35
    nothing = Oracle(scenes, lambda s: (s.boxes[:0], torch.ones(0), s.labels[:0]))
    assert evaluate(nothing, scenes).AP50 == 0.0


def test_training_mode_is_restored_and_no_pictures_are_refused(scenes):
    model = Oracle(scenes, lambda s: (s.boxes, torch.ones(len(s.labels)), s.labels)).train()
    evaluate(model, scenes)
    assert model.training
    with pytest.raises(ValueError, match="at least one picture"):
        evaluate(model, DigitScenes("test", 0))


class WithCrowds:
    """Scenes in which a region of digits is to be ignored."""

    class_names = DigitScenes.class_names

    def __init__(self, scenes):
        self.scenes = scenes

    def __len__(self):
        return len(self.scenes)

    def __getitem__(self, index):
        region = torch.tensor([[0.0, 0.0, 128.0, 128.0]])
        return self.scenes[index]._replace(ignored=Ignored(region, torch.tensor([3]), torch.tensor([True])))


def test_what_lies_in_a_crowd_counts_neither_for_nor_against(scenes):
    threes = torch.full((2,), 3)
    inside = torch.tensor([[5.0, 5, 20, 20], [30, 5, 60, 20]])

    def answer(scene):
        return torch.cat([inside, scene.boxes]), torch.ones(2 + len(scene.labels)), torch.cat([threes, scene.labels])

    assert evaluate(Oracle(scenes, answer), scenes).AP < 1
    result = evaluate(Oracle(scenes, answer), WithCrowds(scenes))
    assert pytest.approx(1.0) == result.AP
    assert result.objects == sum(len(scenes[i].labels) for i in range(12))


def test_on_a_canvas_the_objects_keep_the_sizes_of_their_files(scenes):
    """128 pixels shown on 32: digits of 12 to 48 pixels, some of which are medium, and all small on the canvas."""
    canvas = Letterbox(32, 32)
    model = Oracle(LetterboxedScenes(scenes, canvas), lambda s: (s.boxes, torch.ones(len(s.labels)), s.labels))
    result = evaluate(model, scenes, letterbox=canvas)
    assert pytest.approx([1.0, 1.0, 1.0]) == [result.AP, result.AP_small, result.AP_medium]
    assert result.AP_large is None
