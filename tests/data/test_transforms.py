import pytest
import torch

from frcnn_lite.data import DigitScenes, Ignored, TransformedScenes

v2 = pytest.importorskip("torchvision.transforms.v2")


class WithRegion:
    class_names = DigitScenes.class_names

    def __len__(self):
        return 2

    def __getitem__(self, index):
        region = Ignored(torch.tensor([[10.0, 20, 50, 60]]), torch.tensor([4]), torch.tensor([True]))
        return DigitScenes("train", 2)[index]._replace(ignored=region)


def test_boxes_move_with_their_picture():
    scene = WithRegion()[1]
    flipped = TransformedScenes(WithRegion(), v2.RandomHorizontalFlip(p=1.0))[1]
    assert torch.equal(flipped.image, scene.image.flip(2)) and type(flipped.image) is torch.Tensor
    x1, y1, x2, y2 = scene.boxes.unbind(1)
    assert torch.equal(flipped.boxes, torch.stack([128 - x2, y1, 128 - x1, y2], dim=1))
    assert torch.equal(flipped.labels, scene.labels) and flipped.image_id == 1
    assert flipped.ignored.boxes.tolist() == [[78, 20, 118, 60]]


def test_boxes_that_leave_the_picture_are_dropped_with_their_labels():
    scene = WithRegion()[0]
    cropped = TransformedScenes(WithRegion(), v2.CenterCrop(40))[0]
    inside = [
        label
        for label, (x1, y1, x2, y2) in zip(scene.labels.tolist(), scene.boxes.tolist(), strict=True)
        if x1 < 84 and x2 > 44 and y1 < 84 and y2 > 44
    ]
    assert cropped.labels.tolist() == inside and len(cropped.boxes) == len(inside)
    assert cropped.image.shape == (3, 40, 40) and (cropped.boxes >= 0).all() and (cropped.boxes <= 40).all()
    assert cropped.ignored.boxes.tolist() == [[0, 0, 6, 16]]


def test_what_changes_the_number_of_boxes_or_the_pixels_type_is_refused():
    for transform in (v2.ToDtype(torch.float32, scale=True), lambda d: {**d, "boxes": d["boxes"][:0]}):
        with pytest.raises(ValueError, match=r"transform must keep \d boxes and uint8 pixels"):
            TransformedScenes(WithRegion(), transform)[0]
