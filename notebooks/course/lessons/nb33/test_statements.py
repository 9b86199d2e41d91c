"""Statements in the prose of notebook 33 that no output shows, run again."""

import re

import pytest
import torch
from told import prose, says
from torch._subclasses import FakeTensorMode

import vgpu
from course.kit.files import NOTEBOOKS


def test_shows_a_workflow_that_can_be_followed():
    text = prose("33")
    (folder,) = re.findall(r"path/to/frcnn_lite/(\S+)", text)
    assert (NOTEBOOKS.parent / folder / "pyproject.toml").exists()
    plugin = (NOTEBOOKS.parent / folder / "src/vgpu/pytest_plugin.py").read_text(encoding="utf-8")
    options = set(re.findall(r"--vgpus(?:-\w+)*", text))
    assert {"--vgpus-no-skips", "--vgpus-min"} <= options
    assert all(f'"{option}"' in plugin for option in options)


def step(rows):
    x = torch.rand(rows, 1024, device="cuda")
    return (x * 2).sum()


def test_a_retry_inside_the_except_block_does_not_fit():
    with vgpu.virtual_gpus(1, memory="9MiB"):
        try:
            step(2000)
        except torch.OutOfMemoryError:
            with pytest.raises(torch.OutOfMemoryError):
                step(1000)
        assert step(1000).shape == ()
    assert says("33", "Leave the block first, and then try again.")


def test_fake_tensors_have_devices_and_meta_tensors_do_not():
    with FakeTensorMode(), pytest.raises(Exception, match="device"):
        torch.ones(2, device="cuda:0") + torch.ones(2, device="cpu")
    assert torch.ones(2, device="meta").device.index is None
    assert says("33", "| `FakeTensorMode` | raises | no numbers | none |")
