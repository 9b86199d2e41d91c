"""vgpu.trace(): operators, threads, copies and allocations, as a program on several devices makes them."""

import json

import pytest
import torch
from torch import nn
from torch.cuda import comm

import vgpu

pytestmark = pytest.mark.usefixtures("gpus")
ONE = torch.device("cuda:1")


def test_operators_and_allocations():
    x = torch.ones(256, device=ONE)
    with vgpu.trace() as t:
        y = x * 2
        y[:10].add_(1)
    names = [(e.name, str(e.device), e.allocated) for e in t.events]
    assert names == [("mul", "cuda:1", 1024), ("slice", "cuda:1", 0), ("add_", "cuda:1", 0)]
    assert t.copies() == [] and all(e.seconds >= 0 and e.thread == "MainThread" for e in t.events)
    (y + 1).sum()
    assert len(t.events) == 3, "the block has ended"


def test_every_way_to_move_bytes():
    host, gpu = torch.ones(100), torch.ones(50, device="cuda:0")
    with vgpu.trace() as t:
        host.cuda(2)
        gpu.to(ONE)
        gpu.cpu()
        torch.empty(50, device="cuda:3").copy_(gpu)
        gpu.sum().item()
        gpu.to("cuda:0")
    assert t.bytes_moved() == {
        ("cpu", "cuda:2"): 400,
        ("cuda:0", "cuda:1"): 200,
        ("cuda:0", "cpu"): 204,
        ("cuda:0", "cuda:3"): 200,
    }


def test_comm_counts_each_copy_once():
    x = torch.arange(8.0, device="cuda:0")
    with vgpu.trace() as t:
        parts = comm.scatter(x, [0, 1, 2], [4, 2, 2])
        comm.gather(parts, destination=0)
        comm.broadcast(x, [0, 3])
        comm.broadcast_coalesced([x, x], [0, 1])
    assert [(e.name, str(e.source), str(e.device), e.nbytes) for e in t.copies()] == [
        ("scatter", "cuda:0", "cuda:1", 8),
        ("scatter", "cuda:0", "cuda:2", 8),
        ("gather", "cuda:1", "cuda:0", 8),
        ("gather", "cuda:2", "cuda:0", 8),
        ("broadcast", "cuda:0", "cuda:3", 32),
        ("broadcast_coalesced", "cuda:0", "cuda:1", 32),
        ("broadcast_coalesced", "cuda:0", "cuda:1", 32),
    ]


def test_data_parallel_forward_and_backward():
    dp = nn.DataParallel(nn.Linear(4, 2).cuda(), [0, 1])
    x = torch.ones(6, 4)
    with vgpu.trace() as t:
        dp(x).sum().backward()
    threads = {
        str(e.device): {f.thread for f in t.events if f.device == e.device and f.name == "addmm"} for e in t.events
    }
    assert len(threads["cuda:0"] | threads["cuda:1"]) == 2, "a thread for each replica"
    moved = t.bytes_moved()
    assert moved["cpu", "cuda:0"] == moved["cpu", "cuda:1"] == 3 * 4 * 4, "half the batch each"
    weights, half_output = (4 * 2 + 2) * 4, 3 * 2 * 4
    assert moved["cuda:0", "cuda:1"] == weights + half_output, "weights out, the gradient of its output back"
    assert moved["cuda:1", "cuda:0"] == half_output + weights
    assert dp.module.weight.grad.shape == (2, 4)


def test_summary_and_chrome_trace(tmp_path):
    with vgpu.trace() as t:
        torch.ones(4).cuda(1).mul_(2)
    assert "cpu -> cuda:1: 1 copies, 16 bytes" in t.summary()
    t.save(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    (copy,) = (e for e in events if e.get("cat") == "copy")
    assert copy["args"] == {"from": "cpu", "bytes": 16} and copy["ph"] == "X" and copy["dur"] >= 0
    processes = {e["args"]["name"]: e["pid"] for e in events if e["name"] == "process_name"}
    assert copy["pid"] == processes["cuda:1"]


def test_nothing_stays_replaced_and_errors_pass():
    import threading

    before = threading.Thread.run, torch._C._scatter
    with pytest.raises(RuntimeError, match="same device"), vgpu.trace() as t:
        torch.ones(2, device="cuda:0") + torch.ones(2, device=ONE)
    assert (threading.Thread.run, torch._C._scatter) == before and len(t.events) == 2


def test_without_virtual_gpus_it_records_the_cpu():
    vgpu.disable()
    with vgpu.trace() as t:
        torch.ones(3) + 1
    assert [e.name for e in t.events] == ["ones", "add"]


def test_virtual_in_virtual_out(monkeypatch):
    from vgpu.operators import dispatch

    net = nn.DataParallel(nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU()).cuda(), [0, 1])
    with vgpu.check_placement():
        net(torch.ones(4, 1, 5, 5)).sum().backward()
        torch.zeros(3).copy_(torch.ones(3, device=ONE))
        torch.nn.utils.rnn.pack_padded_sequence(torch.ones(3, 2, 1, device=ONE), torch.tensor([3, 2]))
        torch.ones(3, device=ONE)[torch.tensor([0])].cpu()
    x = torch.ones(2, device=ONE)
    monkeypatch.setattr(dispatch, "_wrapped", lambda result, ordinal, put: result)
    with pytest.raises(AssertionError, match=r"aten.exp.default returned a tensor on cpu"), vgpu.check_placement():
        x.exp()
