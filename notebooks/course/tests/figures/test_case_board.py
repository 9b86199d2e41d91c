import re

import pytest

from course.kit.figures import Ending, case_board
from course.kit.figures.palette import GPU_COLOURS

CELLS = {
    ("lambda", "one: forward"): Ending("raises"),
    ("lambda", "one: backward"): Ending("none", "not reached"),
    ("data", "one: forward"): Ending("right"),
    ("data", "one: backward"): Ending("wrong", "no gradient"),
}


def test_every_cell_is_drawn_and_told():
    figure = case_board(["lambda", "data"], {"one": ["forward", "backward"]}, CELLS, "Suspects")
    for words in ("✗ raises", "not reached", "✓ right", "≠ no gradient"):
        assert f">{words}</text>" in figure.markup
    assert figure.description == (
        "lambda: one: forward raises, one: backward not reached; data: one: forward right, one: backward no gradient."
    )


def test_columns_stand_in_their_groups():
    trials = {"one": ["forward"], "other": ["forward"]}
    cells = {("case", f"{group}: forward"): Ending("right") for group in trials}
    figure = case_board(["case"], trials, cells, "t")
    x = [float(value) for value in re.findall(r'<text x="([\d.]+)"[^>]*>forward<', figure.markup)]
    assert len(x) == 2 and x[0] < x[1]


def test_missing_cells_and_kinds_are_named():
    with pytest.raises(ValueError, match=r"missing: \(data, one: backward\)"):
        case_board(["data"], {"one": ["forward", "backward"]}, {("data", "one: forward"): Ending("right")}, "t")
    with pytest.raises(ValueError, match="`kind` must be one of fits, right, raises, wrong, none, got 'fine'"):
        Ending("fine")


def test_a_column_may_ask_whether_a_case_fits_and_no_colour_is_a_gpus():
    cells = {("a", "report: fits?"): Ending("fits"), ("b", "report: fits?"): Ending("none", "no, in forward")}
    figure = case_board(["a", "b"], {"report": ["fits?"]}, cells, "t")
    assert ">✓ fits</text>" in figure.markup and ">no, in forward</text>" in figure.markup
    assert not any(colour in figure.markup for colour in GPU_COLOURS)
