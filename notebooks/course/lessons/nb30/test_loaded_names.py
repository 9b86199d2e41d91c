"""The figure of notebook 30: what was loaded, hatched where it was never in the file."""

import pytest

from course.lessons.nb30.loaded_names import loaded_names

NAMES = ["0.weight", "0.bias", "1.running_mean"]


def test_each_tensor_is_loaded_or_hatched():
    files = {"whole": ([], 0, "92 %"), "no statistics": (["1.running_mean"], 0, "67 %"), "other": (NAMES, 3, "10 %")}
    drawn = loaded_names(NAMES, files, "three files")
    assert drawn.markup.count(">loaded</text>") == 3 + 2
    assert drawn.description == (
        "whole: 3 of 3 tensors loaded, 92 % right; no statistics: 2 of 3 tensors loaded, without 1.running_mean, "
        "67 % right; other: 0 of 3 tensors loaded, 3 names of the file left over, 10 % right."
    )


def test_a_missing_name_has_to_be_one_of_the_net():
    with pytest.raises(ValueError, match="lacks 'fc', which is none of `names`"):
        loaded_names(NAMES, {"odd": (["fc"], 0, "1 %")}, "odd")
