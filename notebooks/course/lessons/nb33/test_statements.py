"""Numbers and statements in the prose of notebook 33 that no output shows, computed and run again."""

import re

import pytest
import torch
from told import cell, prose

import vgpu
from course.kit.files import NOTEBOOKS

CALLS = ("class Kept(", "mistakes = {", "class Does(", "def count(", 'with torch.autocast("cuda")')
ON_TWO_ALONE = (
    "more than 1 value per channel",
    "number of modules",
    "[[2, 1], [2, 1]]",
    "map object",
    "gathered: None",
)
ON_ONE_TOO = ("weight type", "indexed tensor", "numpy", "invalid device", "float32", "0-dim", ": nan")


@pytest.mark.parametrize(("count", "seen"), [(1, ON_ONE_TOO), (4, ON_ONE_TOO + ON_TWO_ALONE)])
def test_says_which_of_twelve_mistakes_need_a_second_gpu(count, seen, capsys):
    with vgpu.virtual_gpus(count) as gpus:
        space = {"torch": torch, "nn": torch.nn, "gpus": gpus}
        for words in CALLS:
            exec(cell("33", words), space)
    printed = capsys.readouterr().out
    assert [words for words in ON_ONE_TOO + ON_TWO_ALONE if words in printed] == list(seen)


def test_shows_a_workflow_that_can_be_followed():
    text = prose("33")
    (folder,) = re.findall(r"path/to/frcnn_lite/(\S+)", text)
    assert (NOTEBOOKS.parent / folder / "pyproject.toml").exists()
    plugin = (NOTEBOOKS.parent / folder / "src/vgpu/pytest_plugin.py").read_text(encoding="utf-8")
    options = set(re.findall(r"--vgpus(?:-\w+)*", text))
    assert "--vgpus-no-skips" in options
    assert all(f'"{option}"' in plugin for option in options)
