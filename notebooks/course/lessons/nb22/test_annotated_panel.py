"""Annotations drawn as they are written, sound or not."""

import numpy as np
import pytest
from PIL import Image

from course.lessons.nb22.annotated_panel import annotated_panel
from frcnn_lite.data import Picture
from frcnn_lite.data.annotated import Object

NAN = float("nan")


@pytest.fixture
def file(tmp_path):
    Image.fromarray(np.full((40, 60, 3), 90, dtype=np.uint8)).save(tmp_path / "one.png")
    return tmp_path / "one.png"


def picture(file, *boxes):
    return Picture(file, "one.xml", (60, 40), tuple(Object(box, name) for name, box in boxes))


def test_boxes_are_drawn_as_they_are_written(file):
    sound, beyond = (4.0, 5.0, 20.0, 30.0), (10.0, 5.0, 900.0, 30.0)
    panel = annotated_panel(picture(file, ("cat", sound), ("dog", beyond), ("cow", (1.0, NAN, 9.0, 9.0))), "one")
    assert np.asarray(panel.values).shape == (3, 40, 60)
    assert panel.rows("as written").tolist() == [list(sound), list(beyond)]
    assert panel.tags == {"as written": ["cat", "dog"]}


def test_a_box_without_width_is_a_line(file):
    (box,) = annotated_panel(picture(file, ("cat", (7.0, 5.0, 7.0, 30.0))), "one").rows("as written").tolist()
    assert box == [7, 5, 8, 30]


def test_a_picture_that_cannot_be_decoded_is_grey(file):
    file.write_bytes(file.read_bytes()[:60])
    assert set(np.unique(annotated_panel(picture(file), "one").values)) == {208}
