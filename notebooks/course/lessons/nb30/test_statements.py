"""Statements in the prose of notebook 30 that no output shows, run again."""

import os

import pytest
import torch
from told import says
from torch import nn

import vgpu
from course.lessons.nb30.found_in import found_in


def test_the_outer_wrapper_comes_first():
    with vgpu.virtual_gpus(2):
        net = nn.Linear(2, 2).cuda()
        names = [*nn.DataParallel(torch.compile(net)).state_dict(), *torch.compile(nn.DataParallel(net)).state_dict()]
    assert {name.rpartition(".")[0] for name in names} == {"module._orig_mod", "_orig_mod.module"}
    net.compile()
    assert list(net.state_dict()) == ["weight", "bias"]
    assert says("30", "A compiled `DataParallel` gives `_orig_mod.module.`.")


def test_strict_false_forgives_names_and_not_shapes():
    with pytest.raises(RuntimeError, match="size mismatch"):
        nn.Linear(4, 5).load_state_dict(nn.Linear(4, 10).state_dict(), strict=False)
    assert says("30", "because it forgives names and not shapes")


def test_fresh_statistics_are_0_and_1():
    norm = nn.BatchNorm1d(3)
    assert (norm.running_mean.tolist(), norm.running_var.tolist()) == ([0.0] * 3, [1.0] * 3)
    assert says("30", "A fresh net has 0 and 1 there")


def test_what_has_the_name_is_whole(tmp_path):
    old, new = tmp_path / "run.pth", tmp_path / "run.part"
    old.write_text("old")
    new.write_text("new")
    os.replace(new, old)
    assert old.read_text() == "new" and not new.exists()
    assert says("30", "`os.replace` swaps the whole file at once")


@pytest.mark.parametrize("rank", [0, 1])
def test_a_checkpoint_is_read_by_rank(rank, tmp_path):
    with vgpu.virtual_gpus(2):
        torch.save({"weight": torch.ones(3).cuda()}, tmp_path / "placed.pth")
        found = torch.load(tmp_path / "placed.pth", map_location=f"cuda:{rank}", weights_only=True)
        assert found["weight"].device == torch.device("cuda", rank)
    assert says("30", 'or with `map_location=f"cuda:{rank}"`.')


def test_what_is_found_in_a_file_is_its_content_or_the_reason(tmp_path):
    torch.save({"epoch": 1}, tmp_path / "run.pth")
    assert found_in(tmp_path / "run.pth") == {"epoch": 1}
    (tmp_path / "half.pth").write_bytes((tmp_path / "run.pth").read_bytes()[:500])
    assert found_in(tmp_path / "half.pth").startswith("PytorchStreamReader failed")
