"""What notebooks 28 and 33 say of torch's documentation, of one GPU and of a pytest option, looked up and run again."""

import re
from pathlib import Path

import pytest
import torch
from test_statements import notebook, prose

import vgpu

ROOT = Path(__file__).resolve().parents[4]


def test_28_names_operators_that_raise_on_cuda():
    _, raising = torch.use_deterministic_algorithms.__doc__.split("will throw a", 1)
    entries = [" ".join(entry.split()) for entry in raising.split("        * ")]
    (sentence,) = re.findall(r"has the list, with (.+?) among them", prose(28))
    for name in re.findall(r"`[\w.]+?(\w+)`", sentence):
        assert any(name in entry and "CUDA" in entry for entry in entries), name


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
def test_33_says_which_of_twelve_mistakes_need_a_second_gpu(count, seen, capsys):
    cells = [cell.source for cell in notebook(33).cells if cell.cell_type == "code"]
    with vgpu.virtual_gpus(count) as gpus:
        space = {"torch": torch, "nn": torch.nn, "gpus": gpus}
        for words in CALLS:
            (source,) = (source for source in cells if words in source)
            exec(source, space)
    printed = capsys.readouterr().out
    assert [words for words in ON_ONE_TOO + ON_TWO_ALONE if words in printed] == list(seen)


def test_33_shows_a_workflow_that_can_be_followed():
    text = prose(33)
    (folder,) = re.findall(r"path/to/frcnn_lite/(\S+)", text)
    assert (ROOT / folder / "pyproject.toml").exists()
    plugin = (ROOT / folder / "src/vgpu/pytest_plugin.py").read_text(encoding="utf-8")
    options = set(re.findall(r"--vgpus(?:-\w+)*", text))
    assert "--vgpus-no-skips" in options
    assert all(f'"{option}"' in plugin for option in options)
