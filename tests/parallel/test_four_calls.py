"""Our four calls against torch's, on virtual GPUs; and on plain CPUs, where torch's do not run."""

import gc
import traceback
from collections import namedtuple

import pytest
import torch
from torch import nn
from torch.nn import parallel as torch_parallel

from frcnn_lite.parallel.four_calls import data_parallel, gather, parallel_apply, replicate, scatter


@pytest.fixture
def vgpu():
    return pytest.importorskip("vgpu", reason="it needs vgpu, which gives a machine several GPUs")


Scores = namedtuple("Scores", "rows total")


class Model(nn.Module):
    """Tied weights, a layer without bias, a buffer, an RNN, nested outputs."""

    def __init__(self):
        super().__init__()
        self.hidden, self.free, self.tied = nn.Linear(5, 4), nn.Linear(4, 4, bias=False), nn.Linear(4, 4)
        self.tied.weight = self.free.weight
        self.recurrent = nn.GRU(4, 3, batch_first=True)
        self.register_buffer("shift", torch.full((5,), 0.5))

    def forward(self, x, table, *, options):
        y = self.tied(self.free(self.hidden(x - self.shift))) + table
        z, _ = self.recurrent(y.unsqueeze(1))
        return {"y": y, "parts": [Scores(z.squeeze(1), y.sum(1)), (y * options["scale"],)], "none": None}


def step(run, devices):
    """Outputs, and gradients of all weights and of the input."""
    torch.manual_seed(0)
    model = Model().double().to(devices[0])
    x = torch.randn(10, 5, dtype=torch.float64).to(devices[0]).requires_grad_()
    table, scale = torch.randn(10, 4, dtype=torch.float64), torch.randn(10, 1, dtype=torch.float64)
    out = run(model, (x, table), devices, module_kwargs={"options": {"scale": scale, "note": "for all"}})
    scores, (scaled,) = out["parts"]
    assert type(scores).__name__ == "Scores" and out["none"] is None
    loss = out["y"].logsumexp(1).sum() + scores.rows.cos().sum() + scores.total.square().sum() + scaled.sum()
    return [out["y"], *scores, scaled, *torch.autograd.grad(loss, [*model.parameters(), x])]


@pytest.mark.parametrize("count", range(1, 9))
def test_outputs_and_gradients_equal_torchs(vgpu, count):
    with vgpu.virtual_gpus(8):
        devices = [torch.device("cuda", k) for k in range(count)]
        ours, theirs = step(data_parallel, devices), step(torch_parallel.data_parallel, devices)
        assert len(ours) == len(theirs) == 4 + 9
        for mine, its in zip(ours, theirs, strict=True):
            assert mine.device == its.device
            torch.testing.assert_close(mine, its, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("count", [2, 3, 7])
def test_runs_on_cpus_alone(count):
    for mine, its in zip(step(data_parallel, ["cpu"] * count), step(data_parallel, ["cpu"]), strict=True):
        torch.testing.assert_close(mine, its, rtol=1e-10, atol=1e-12)


def test_dim_and_output_device(vgpu):
    with vgpu.virtual_gpus(2):
        x = torch.randn(3, 10)
        y = data_parallel(nn.Identity(), (x,), ["cuda:0", "cuda:1"], output_device="cpu", dim=1)
        assert y.device == torch.device("cpu") and torch.equal(y, x)


def test_scatter_hands_the_rest_to_all():
    flag = object()
    shares = scatter((torch.zeros(9, 2), {"n": torch.arange(9)}, flag, []), ["cpu"] * 4)
    assert [len(x) for x, *_ in shares] == [len(kw["n"]) for _, kw, *_ in shares] == [3, 3, 3]
    assert all(rest[0] is flag for _, _, *rest in shares)


def test_replicas_have_parameters_that_lead_to_the_module(vgpu):
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    with vgpu.virtual_gpus(2):
        net = net.cuda()
        second = replicate(net, ["cuda:0", "cuda:1"])[1]
        assert next(second.parameters()).device == torch.device("cuda:1")
        assert [name for name, _ in second.named_parameters()] == [name for name, _ in net.named_parameters()]
        second.eval()(torch.ones(4, 2).cuda(1)).sum().backward()
        assert net[0].weight.grad.device == torch.device("cuda:0") and net[0].weight.grad.abs().sum() > 0
        assert net.training and isinstance(net[0].weight, nn.Parameter)


def test_a_hook_of_a_replica_stays_its_own():
    net = nn.Linear(2, 2)
    seen = []
    net.register_forward_hook(lambda *_: seen.append("module"))
    first, second = replicate(net, ["cpu", "cpu"])
    first.register_forward_hook(lambda *_: seen.append("first"))
    second(torch.zeros(1, 2))
    assert seen == ["module"] and len(net._forward_hooks) == 1


def test_threads_have_the_callers_modes():
    class Modes(nn.Module):
        def forward(self, x):
            return torch.tensor([[torch.is_grad_enabled(), torch.is_autocast_enabled("cpu")]])

    with torch.no_grad(), torch.autocast("cpu"):
        assert data_parallel(Modes(), (torch.zeros(4),), ["cpu", "cpu"]).tolist() == [[0, 1]] * 2
    assert data_parallel(Modes(), (torch.zeros(4),), ["cpu", "cpu"]).tolist() == [[1, 0]] * 2


def test_the_first_exception_is_raised_with_its_frames():
    class Breaks(nn.Module):
        def forward(self, x):
            raise ValueError(f"bad row {int(x[0])}")

    with pytest.raises(ValueError, match="bad row 0") as caught:
        data_parallel(Breaks(), (torch.arange(4),), ["cpu", "cpu"])
    assert caught.value.__notes__ == ["in replica 0 on cpu"]
    assert [frame.f_code.co_name for frame, _ in traceback.walk_tb(caught.value.__traceback__)][-1] == "forward"


def test_an_error_that_was_handled_leaves_no_memory_behind(vgpu):
    """After an OutOfMemoryError one wants to go on with a smaller batch, at once."""

    class Fails(nn.Module):
        def forward(self, x):
            y = x * 2
            raise ValueError(f"after {len(y)} rows")

    gc.collect()
    gc.disable()
    try:
        with vgpu.virtual_gpus(2):
            torch.cuda.init()  # before that nothing is counted, not even what a failed test left behind
            before = [torch.cuda.memory_allocated(k) for k in (0, 1)]
            with pytest.raises(ValueError, match="after 500 rows"):
                data_parallel(Fails(), (torch.zeros(1000, 100),), ["cuda:0", "cuda:1"])
            assert [torch.cuda.memory_allocated(k) for k in (0, 1)] == before
    finally:
        gc.enable()


def test_what_cannot_be_gathered_or_split_is_named():
    with pytest.raises(TypeError, match="got float"):
        gather([0.5, 0.5], "cpu")
    with pytest.raises(ValueError, match="`devices` is empty"):
        data_parallel(nn.Identity(), (torch.zeros(2),), [])
    assert gather([torch.tensor(1.0), torch.tensor(2.0)], "cpu").tolist() == [1, 2]
    assert parallel_apply([], [], [], []) == []


class Where(nn.Linear):
    def forward(self, x):
        return torch.cuda.current_device(), super().forward(x.cuda())


def test_devices_are_those_of_the_weights(vgpu):
    with vgpu.virtual_gpus(4):
        replicas = replicate(Where(3, 2).cuda(), ["cuda:0", "cuda:3", "cuda:2"])
        results = parallel_apply(replicas, [(torch.ones(1, 3),)] * 3, [{}] * 3)
        assert [(current, out.get_device()) for current, out in results] == [(0, 0), (3, 3), (2, 2)]
        with pytest.raises(ValueError, match="`devices` is needed: Identity has neither"):
            parallel_apply([nn.Identity()], [(torch.ones(1),)], [{}])
