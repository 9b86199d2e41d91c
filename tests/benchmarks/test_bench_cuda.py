"""The benchmark for GPUs runs through on a virtual one, and prints the record where there is none."""

import bench_cuda
import pytest
import torch

import vgpu


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a real GPU, which is measured")
def test_without_a_gpu_the_record_is_shown_with_its_date_and_card(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["bench_cuda.py"])
    bench_cuda.main()
    assert "2026-11-27" in (printed := capsys.readouterr().out) and "NVIDIA H200" in printed


@pytest.mark.parametrize("ways", [(), pytest.param(("amp", "ddp"), marks=pytest.mark.exhaustive)])
def test_what_a_step_costs(monkeypatch, ways):
    monkeypatch.setattr(bench_cuda, "kernels", lambda step: 5)
    with vgpu.virtual_gpus(1, force=True):
        theirs, ours = (bench_cuda.cost(which, 2, *ways) for which in (0, 1))
    assert ours.calls < theirs.calls and ours.memory <= 1.01 * theirs.memory and theirs.waits - ours.waits > 30
    assert ours.waits == 1 or "ddp" in ways  # virtual GPUs have gloo in the place of NCCL, whose copies wait


def test_a_row_of_a_table(monkeypatch):
    monkeypatch.setattr(bench_cuda, "median_ratio", lambda theirs, ours, rounds: (20.0, 10.0, 2.0))
    monkeypatch.setattr(bench_cuda, "cost", lambda which, batch, *ways: bench_cuda.Cost(2**20, 7, 5, which))
    with vgpu.virtual_gpus(1, force=True):
        assert bench_cuda.row(2, 1) == "2 | 20.0 | 10.0 | 2.00 x (1.3) | 2.00 x | 1, 1 | 7, 7 | 5, 5 | 0, 1"
