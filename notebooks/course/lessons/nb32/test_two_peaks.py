"""The figure of two peaks in notebook 32."""

from course.lessons.nb32.two_peaks import two_peaks

HEAT = [[0.0, 0.5], [1.0, 0.2]]


def test_both_places_are_named_and_joined():
    drawn = two_peaks(HEAT, 8, (12, 4), (8, 0), "moved")
    assert drawn.description == "PyTorch finds the peak at row 12, column 4; the file finds it at row 8, column 0."
    assert drawn.markup.count("<line") == 1 and drawn.markup.count("<circle") == 4


def test_one_place_has_no_arrow():
    assert "<line" not in two_peaks(HEAT, 8, (12, 4), (12, 4), "the same").markup
