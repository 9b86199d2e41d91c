"""The memory of a GPU by kind, on virtual GPUs."""

import threading

import pytest
import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks

import vgpu
from course.kit.memory_kinds import BLOCK, KINDS, Ledger, in_blocks, settled
from course.kit.step_trace import trace_step

pytestmark = pytest.mark.usefixtures("vgpu_fresh_memory")


def nothing() -> dict[str, int]:
    return dict.fromkeys(KINDS, 0)


def storages(tensors) -> int:
    """Bytes of the memories of `tensors`, each counted once, in whole blocks."""
    return sum({t.untyped_storage().data_ptr(): in_blocks(t.untyped_storage().nbytes()) for t in tensors}.values())


def test_what_is_freed_is_forgotten_and_what_is_kept_is_not():
    with vgpu.virtual_gpus(2) as gpus:
        ledger, first, second = Ledger(), torch.zeros(1000).cuda(), torch.zeros(129, device="cuda:1")
        ledger.name("batch", [first, {"more": second}, "text", torch.zeros(5)])
        assert ledger.split(5000, gpus[0]) == nothing() | {"batch": 4096, "activations": 5000 - 4096}
        assert ledger.split(1024, gpus[1]) == nothing() | {"batch": 1024}
        del first
        assert ledger.split(5000, gpus[0]) == nothing() | {"activations": 5000}
        third = torch.zeros(1000).cuda()  # may lie where the first one was
        ledger.name("outputs", third)
        assert ledger.split(4096, gpus[0]) == nothing() | {"outputs": 4096}


def test_views_share_one_memory_and_the_first_name_counts():
    with vgpu.virtual_gpus(1) as gpus:
        ledger, x = Ledger(), torch.zeros(10, 128).cuda()
        ledger.name("batch", x)
        ledger.name("outputs", [x[:5], x.view(-1)])
        assert ledger.split(10 * BLOCK, gpus[0]) == nothing() | {"batch": 10 * BLOCK}


def test_the_weights_of_a_generator_and_a_kind_that_is_unknown():
    with vgpu.virtual_gpus(1) as gpus:
        ledger, net = Ledger(), nn.Linear(128, 2).cuda()
        ledger.name("weights", net.parameters())
        assert ledger.split(3 * BLOCK, gpus[0])["weights"] == 3 * BLOCK
        with pytest.raises(ValueError, match=r"`kind` must be one of weights, .* got 'activations'"):
            ledger.name("activations", [])


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(8, 1000), nn.Linear(1000, 2000)

    def forward(self, x):
        return self.head(self.body(x).exp())


def test_the_rest_is_what_autograd_keeps():
    """On one GPU: nothing but saved tensors has no name after a forward."""
    saved = []

    def keep(tensor):
        saved.append(tensor)
        return tensor

    with vgpu.virtual_gpus(1) as gpus:
        net, x = Net().cuda(), torch.ones(40, 8).cuda()
        with trace_step(net, gpus) as memory, saved_tensors_hooks(keep, lambda tensor: tensor):
            scores = net(x)
            memory.mark("forward")
            loss = scores.square().sum()
            memory.mark("loss", outputs=loss)
        named = {t.untyped_storage().data_ptr() for t in (*net.parameters(), x, scores, loss)}
        kept = storages(t for t in saved if t.untyped_storage().data_ptr() not in named)
    for stage in ("forward", "loss"):
        kinds = memory.samples_of(gpus[0])[stage].kinds
        assert kinds["activations"] == kept > 40 * 1000 * 4
        assert kinds["weights"] == storages(net.parameters())
        assert kinds["batch"] == storages([x])
    assert kinds["outputs"] == storages([scores, loss])


def one_step(dp, adam, gpus):
    """A step, and the tensors that the caller holds after it."""
    adam.zero_grad()
    with trace_step(dp, gpus) as memory:
        memory.mark("before", optimizer=adam.state)
        x = torch.ones(40, 8).cuda()
        memory.mark("batch", batch=x)
        scores = dp(x)
        memory.mark("gathered", outputs=scores)
        scores.sum().backward()
        memory.mark("backward")
        adam.step()
        memory.mark("step")
    return memory, x, scores


def test_a_step_of_data_parallel_by_kind():
    with vgpu.virtual_gpus(2) as gpus:
        net = Net().cuda()
        dp, adam = nn.DataParallel(net, gpus), torch.optim.Adam(net.parameters())
        one_step(dp, adam, gpus)  # makes Adam's state
        memory, x, scores = one_step(dp, adam, gpus)
        first, second = (memory.samples_of(gpu) for gpu in gpus)
        weights = storages(net.parameters())
        state = storages(t for per_weight in adam.state.values() for t in per_weight.values() if t.is_cuda)
        gradients, batch, outputs = storages(p.grad for p in net.parameters()), storages([x]), storages([scores])
    between = nothing() | {"weights": weights, "optimizer": state}
    assert first["before"].kinds == between
    assert second["before"].kinds == second["step"].kinds == nothing()
    assert first["step"].kinds == between | {"gradients": gradients, "batch": batch, "outputs": outputs}
    copies = second["forward body"].kinds
    assert weights <= copies["weights"] <= weights + BLOCK and copies["batch"] == in_blocks(20 * 8 * 4)
    assert 0 < second["gathered"].kinds["weights"] < copies["weights"]  # only what backward needs is kept
    assert second["backward head"].kinds["gradients"] == sum(in_blocks(p.nbytes) for p in net.head.parameters())
    for sample in memory.samples:
        assert sum(sample.kinds.values()) == sample.held and min(sample.kinds.values()) >= 0, sample


def test_gradients_that_are_there_before_a_step_have_their_kind():
    with vgpu.virtual_gpus(1) as gpus:
        net = nn.Linear(128, 2).cuda()
        net(torch.ones(3, 128).cuda()).sum().backward()
        with trace_step(net, gpus) as memory:
            memory.mark("before")
    assert memory.samples[0].kinds == nothing() | {"weights": 3 * BLOCK, "gradients": 3 * BLOCK}


def test_settled_waits_for_what_is_let_go_a_moment_later():
    with vgpu.virtual_gpus(1):
        kept = torch.zeros(1000).cuda()
        late = torch.zeros(1000).cuda()
        ring = [late]
        ring.append(ring)  # a cycle, which only the collector finds
        held = [torch.zeros(1000).cuda()]
        timer = threading.Timer(0.05, held.clear)
        timer.start()
        del late, ring
        assert settled(wait=0.2) == kept.nbytes + 96 == in_blocks(kept.nbytes)
        timer.join()
