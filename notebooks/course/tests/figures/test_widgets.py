"""Sliders redraw the same pure function, and their static text needs no kernel."""

import pytest

from course.kit.figures.svg import Canvas
from course.kit.figures.widgets import sliders


def draw(rows, gpus):
    return Canvas(10, 10, "Rows", f"{rows} rows on {gpus} GPUs").figure()


def test_moving_a_slider_redraws_picture_and_words():
    live = sliders(draw, rows=(1, 32, 10), gpus=(1, 8, 2))
    live.sliders["gpus"].value = 5
    assert live.picture.value == draw(10, 5).markup
    assert "10 rows on 5 GPUs" in live.words.value


def test_text_alternative_is_fixed_and_the_view_is_a_widget():
    bundle = sliders(draw, rows=(1, 32, 10), gpus=(1, 8, 2))._repr_mimebundle_()
    assert bundle["text/plain"].startswith("Live in JupyterLab: sliders for rows and gpus.")
    three = sliders(lambda a, b, c: draw(a, b), a=(1, 2, 1), b=(1, 2, 1), c=(1, 2, 1))
    assert "sliders for a, b and c." in three._repr_mimebundle_()["text/plain"]
    assert "application/vnd.jupyter.widget-view+json" in bundle


def test_the_name_of_a_slider_has_the_room_it_needs():
    live = sliders(lambda number_of_proposals: draw(number_of_proposals, 1), number_of_proposals=(1, 5, 1))
    assert live.sliders["number_of_proposals"].style.description_width == "initial"


def test_a_broken_drawing_fails_at_once():
    with pytest.raises(ZeroDivisionError):
        sliders(lambda rows: 1 // 0, rows=(1, 2, 1))


@pytest.mark.parametrize(
    ("ranges", "message"), [({}, "at least one"), ({"rows": (1, 5, 9)}, "start 9 lies outside 1..5")]
)
def test_impossible_ranges_are_refused(ranges, message):
    with pytest.raises(ValueError, match=message):
        sliders(draw, **ranges)
