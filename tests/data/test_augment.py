import pytest
import torch

from frcnn_lite.data import Augmentation, Batch, DigitScenes, collate, mirror
from frcnn_lite.data.augment import VISIBLE, zoom
from frcnn_lite.ops import random_keys


def scenes(count: int = 4) -> Batch:
    return collate([DigitScenes("train", count)[k] for k in range(count)])


def one_square(box: list[float], size: tuple[int, int] = (96, 128)) -> Batch:
    """A black picture with a white box, and a row of padding."""
    image = torch.zeros(1, 3, *size)
    x1, y1, x2, y2 = (round(edge) for edge in box)
    image[:, :, y1:y2, x1:x2] = 1
    return Batch(image, torch.tensor([[box, [0.0] * 4]]), torch.tensor([[3, -1]]), torch.zeros(1, dtype=torch.int64))


def test_mirrored_pictures_and_boxes_belong_together():
    batch = scenes()
    chosen = torch.tensor([True, False, True, False])
    out = mirror(batch, chosen)
    assert torch.equal(out.images[1], batch.images[1]) and torch.equal(out.boxes[3], batch.boxes[3])
    for row in (0, 2):
        assert torch.equal(out.images[row], batch.images[row].flip(2))
        for box, mirrored, label in zip(batch.boxes[row].int(), out.boxes[row].int(), batch.labels[row], strict=True):
            x1, y1, x2, y2 = mirrored.tolist()
            if label >= 0:
                patch = batch.images[row][:, box[1] : box[3], box[0] : box[2]]
                assert torch.equal(out.images[row][:, y1:y2, x1:x2], patch.flip(2))
            else:
                assert mirrored.tolist() == [0, 0, 0, 0]
    again = mirror(out, chosen)
    assert isinstance(again, Batch) and torch.equal(again.images, batch.images)
    assert torch.equal(again.boxes, batch.boxes)


def test_a_scale_of_one_changes_nothing():
    batch = scenes()
    out = zoom(batch, torch.ones(4), torch.zeros(4, 2))
    torch.testing.assert_close(out.images, batch.images, atol=1e-5, rtol=0)
    assert torch.equal(out.boxes, batch.boxes) and torch.equal(out.labels, batch.labels)


@pytest.mark.parametrize("scale", [0.6, 0.8, 1.25, 1.5])
@pytest.mark.parametrize("offset", [(0.0, 0.0), (-1.0, 1.0), (0.4, -0.7)])
def test_boxes_stay_around_what_they_held(scale, offset):
    out = zoom(one_square([40, 30, 80, 60]), torch.tensor([scale]), torch.tensor([offset]))
    ys, xs = (out.images[0, 0] > 0.6).nonzero().T
    seen = torch.stack([xs.min(), ys.min(), xs.max() + 1, ys.max() + 1])
    torch.testing.assert_close(out.boxes[0, 0], seen.float(), atol=1.0, rtol=0)
    assert out.labels.tolist() == [[3, -1]] and out.boxes[0, 1].tolist() == [0, 0, 0, 0]


def test_a_smaller_picture_stays_whole_and_a_larger_one_leaves_no_room():
    white = one_square([0, 0, 128, 96])
    for offset in ((-1.0, -1.0), (1.0, 0.0), (0.3, 1.0)):
        smaller, larger = (zoom(white, torch.tensor([scale]), torch.tensor([offset])) for scale in (0.5, 2.0))
        assert (smaller.boxes[0, 0, 2:] - smaller.boxes[0, 0, :2]).tolist() == pytest.approx([64, 48])
        assert larger.images[..., 1:-1, 1:-1].min() > 0.99  # half of the outermost pixel lies outside


def test_a_box_that_is_cut_off_becomes_padding():
    enlarged = torch.tensor([2.0])
    for left, stays in ((20.0, False), (24.0, True)):  # at twice the size x = 32 is the edge, of 20 pixels' width
        batch = one_square([left, 40, left + 20, 60])
        out = zoom(batch, enlarged, torch.zeros(1, 2))
        share = (left + 20 - 32) / 20
        assert (share > VISIBLE) is stays
        assert out.labels.tolist() == [[3 if stays else -1, -1]]
        assert out.boxes[0, 0].tolist() == ([0, 32, 2 * share * 20, 72] if stays else [0, 0, 0, 0])


def test_each_picture_changes_by_its_own_numbers_alone():
    augment, batch = Augmentation(flip=0.5, zoom=0.25, light=0.2), scenes()
    keys = random_keys(torch.arange(4), Augmentation.DRAWS, 2)
    together = augment(batch, keys)
    assert together.images.min() >= 0 and together.images.max() <= 1
    for row in range(4):
        alone = augment(Batch(*(field[row : row + 1] for field in batch)), keys[row : row + 1])
        for one, all_of_them in zip(alone, together, strict=True):
            assert torch.equal(one[0], all_of_them[row])
    assert not torch.equal(together.images[0], batch.images[0])


def test_nothing_is_the_default():
    batch = scenes()
    assert Augmentation()(batch, torch.rand(4, Augmentation.DRAWS)) is batch


@pytest.mark.parametrize(("field", "value"), [("flip", 1.5), ("zoom", -0.1), ("light", 1.0), ("zoom", float("nan"))])
def test_refusals_name_the_field(field, value):
    with pytest.raises(ValueError, match=f"`{field}` must be between 0 and"):
        Augmentation(**{field: value})
