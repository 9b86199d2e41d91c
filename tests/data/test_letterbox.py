import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from frcnn_lite.data import DigitScenes, Letterbox, LetterboxedScenes, Room

sides = st.integers(1, 700)


@given(sides, sides, st.integers(8, 300), st.integers(8, 300))
@settings(deadline=None)
def test_boxes_come_back_from_the_canvas(height, width, canvas_height, canvas_width):
    letterbox = Letterbox(canvas_height, canvas_width)
    boxes = torch.tensor([[0, 0, width, height], [width / 4, height / 3, width / 2, height]], dtype=torch.float32)
    placed = letterbox.to_canvas(boxes, height, width)
    fitted = letterbox.fit(height, width)
    assert placed[0].tolist() == pytest.approx([0, 0, fitted[1], fitted[0]], rel=1e-5)
    assert fitted[0] <= canvas_height and fitted[1] <= canvas_width
    assert max(canvas_height - fitted[0], 0) * max(canvas_width - fitted[1], 0) == 0 or 1 in fitted
    torch.testing.assert_close(letterbox.to_picture(placed, height, width), boxes, rtol=1e-5, atol=1e-4)


def test_a_box_beyond_the_picture_ends_at_its_edge():
    boxes = Letterbox(64, 64).to_picture(torch.tensor([[-3.0, -1, 64, 64]]), height=50, width=100)
    assert boxes.tolist() == [[0, 0, 100, 50]]


def test_a_marked_pixel_lands_where_its_box_does():
    image = torch.zeros(3, 40, 80, dtype=torch.uint8)
    image[:, 20:30, 40:60] = 255
    letterbox = Letterbox(96, 120)
    canvas = letterbox.place(image)
    (x1, y1, x2, y2) = letterbox.to_canvas(torch.tensor([[40.0, 20, 60, 30]]), 40, 80)[0].int().tolist()
    assert (canvas[:, y1 + 1 : y2 - 1, x1 + 1 : x2 - 1] == 255).all()
    assert canvas[:, :60].float().mean() == pytest.approx(255 * 200 / 3200, rel=0.02)
    assert (canvas[:, 60:] == 115).all()


def test_a_picture_of_the_size_of_the_canvas_is_left_as_it_is():
    scenes = DigitScenes("test", 2)
    assert torch.equal(LetterboxedScenes(scenes, Letterbox(128, 128))[1].image, scenes[1].image)


def test_as_many_pictures_are_kept_as_there_is_room_for():
    asked = []

    class Counting(DigitScenes):
        def __getitem__(self, index):
            asked.append(index)
            return super().__getitem__(index)

    scenes = LetterboxedScenes(Counting("test", 3), Letterbox(64, 64), Room(2 * 3 * 64 * 64))
    first = [scenes[k] for k in range(3)]
    again = [scenes[k] for k in range(3)]
    assert asked == [0, 1, 2, 2]
    assert all(torch.equal(a.image, b.image) for a, b in zip(first, again, strict=True))
