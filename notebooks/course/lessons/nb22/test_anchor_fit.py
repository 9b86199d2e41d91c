import pytest

from course.lessons.nb22.anchor_fit import anchor_fit

BOXES = [[0, 0, 20, 20], [5, 5, 25, 27], [0, 0, 90, 30]]


def test_a_box_is_reached_by_an_anchor_that_overlaps_it_by_half():
    figure = anchor_fit(BOXES, [20.0], [1.0], "Fit")
    assert "anchors: 1; 2 boxes have one that overlaps them by half or more, 1 have none" in figure.description
    assert figure.markup.count("<circle") == 2 + 1  # two boxes and the legend
    wider = anchor_fit(BOXES, [20.0, 52.0], [1.0, 0.33], "Fit")
    assert "anchors: 4; 3 boxes" in wider.description


def test_the_drawing_is_the_same_every_time_and_needs_boxes():
    assert anchor_fit(BOXES, [20.0], [1.0], "Fit") == anchor_fit(BOXES, [20.0], [1.0], "Fit")
    with pytest.raises(ValueError, match="`boxes` must hold at least one box, got none"):
        anchor_fit([], [20.0], [1.0], "Fit")
