"""The figure of a fused weight in notebook 31."""

import pytest

from course.lessons.nb31.fused_rows import fused_rows

BY_RANK = [(letter, rank) for rank in (0, 1) for letter in "qkv"]


def test_blocks_are_drawn_in_their_order():
    drawn = fused_rows({"joined": BY_RANK, "wanted": sorted(BY_RANK, key=lambda block: "qkv".index(block[0]))}, "two")
    assert drawn.markup.count(">q of rank 1</text>") == 2
    assert drawn.description.startswith("joined: q of rank 0, k of rank 0, v of rank 0, q of rank 1, ")
    assert "wanted: q of rank 0, q of rank 1, k of rank 0, " in drawn.description


def test_columns_hold_the_same_blocks():
    with pytest.raises(ValueError, match="the same blocks"):
        fused_rows({"one": BY_RANK, "other": BY_RANK[:3]}, "wrong")
