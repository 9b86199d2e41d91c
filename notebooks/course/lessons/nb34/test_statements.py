"""Statements in the prose of notebook 34 that no output shows, run again."""

import pytest
from stored import Notebook
from told import notebook, says
from torch import nn

import vgpu
from course.lessons.nb34.bugs import KINDS, RIGHT
from course.lessons.nb34.plant import chosen, definitions, plant


def board_of_the_notebook() -> str:
    stored: Notebook = notebook("34")
    (cell,) = [cell for _, cell in stored.code if cell.source.endswith("board(found)")]
    (text,) = [o.data["text/plain"] for o in cell.outputs if "image/svg+xml" in o.get("data", {})]
    return text


@pytest.mark.parametrize("number", range(1, 11))
def test_a_symptom_in_the_text_is_the_one_that_the_run_gave(number):
    title = KINDS[number - 1].title
    (text,) = [text for _, text in notebook("34").prose if f"### Exercise 34.{number} · {title}" in text]
    quoted = text.rsplit("> ", 1)[1].strip()
    shown = board_of_the_notebook().split(f"{number}, {title}: ")[1]
    assert shown.split("; ", 1)[1].startswith(quoted)


def test_each_case_is_repaired_in_one_function():
    right, planted = definitions(RIGHT), definitions(plant(0))
    assert len([name for name in right if right[name] != planted[name]]) == len(KINDS)
    assert says("34", "Each case can be repaired in one function, and its docstring says what is expected of it.")
    for kind in chosen(0):
        (home,) = [name for name in kind.homes if right[name] != planted[name]]
        assert '"""' in right[home]


def test_the_program_has_about_two_hundred_lines():
    assert 190 < len(plant(0).splitlines()) < 215
    assert says("34", "`plant(0)` is a program of two hundred lines")


def test_a_conversion_whose_result_is_thrown_away_changes_nested_layers_only():
    with vgpu.virtual_gpus(1):
        net, layer = nn.Sequential(nn.BatchNorm1d(2)), nn.BatchNorm1d(2)
        nn.SyncBatchNorm.convert_sync_batchnorm(net)
        nn.SyncBatchNorm.convert_sync_batchnorm(layer)
    assert isinstance(net[0], nn.SyncBatchNorm) and not isinstance(layer, nn.SyncBatchNorm)
    assert says("34", "The function replaces layers inside of the module that it gets, so `net` is changed.")
