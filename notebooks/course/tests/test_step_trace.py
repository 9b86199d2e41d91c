"""What `trace_step` sees of a step: rows, placement and memory, on virtual GPUs and on the CPU."""

from collections import Counter
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import vgpu
from course.kit.step_trace import trace_step


class Pair(nn.Module):
    def forward(self, x1: Tensor, x2: Tensor, *, extra: Any = None) -> Tensor:
        return x1


@pytest.mark.parametrize(("gpus", "sizes"), [(2, [5, 5]), (3, [4, 4, 2]), (5, [2] * 5), (8, [2] * 5)])
def test_shows_the_chunks_of_data_parallel(gpus: int, sizes: list[int]) -> None:
    x1, x2 = torch.randn(10, 4), torch.randn(10, 2)
    with vgpu.virtual_gpus(gpus):
        parallel = nn.DataParallel(Pair(), device_ids=list(range(gpus)))
        with trace_step(parallel) as step:
            parallel(x1.cuda(), x2.cuda())
        assert [str(call.device) for call in step.calls] == [f"cuda:{k}" for k in range(len(sizes))]
        assert [call.rows for call in step.calls] == [{"x1": size, "x2": size} for size in sizes]
        found = step.find_rows("x1", x1)
        assert [len(rows) for rows in found] == sizes and [row for rows in found for row in rows] == list(range(10))


def test_shows_the_rows_that_vanish() -> None:
    x1, x2 = torch.randn(10, 3, 4), torch.randn(1, 2)
    with vgpu.virtual_gpus(2):
        parallel = nn.DataParallel(Pair(), device_ids=[0, 1])
        with trace_step(parallel) as step:
            parallel(x1.cuda(), x2.cuda())
        assert step.find_rows("x1", x1) == [[0, 1, 2, 3, 4]]
        assert step.find_rows("x2", x2) == [[0]]


def test_rows_of_one_number() -> None:
    seeds = torch.tensor([5, 3, 8])
    module = Pair()
    with trace_step(module) as step:
        module(seeds[1:], seeds)
    assert step.find_rows("x1", seeds) == [[1, 2]]


def test_a_plain_module_nested_arguments_and_keywords() -> None:
    module = Pair()
    with trace_step(module) as step:
        module(torch.zeros(3, 2), x2=torch.zeros(2), extra=[{"boxes": torch.zeros(4, 4)}, "text", torch.tensor(1.0)])
    module(torch.zeros(1), torch.zeros(1))  # no longer traced
    (call,) = step.calls
    assert call.device == torch.device("cpu")
    assert call.rows == {"x1": 3, "x2": 2, "extra[0]['boxes']": 4}
    assert set(call.tensors) == {"x1", "x2", "extra[0]['boxes']", "extra[2]"}


def test_equal_rows_are_dealt_out_in_order_and_foreign_rows_are_minus_one() -> None:
    module = Pair()
    original = torch.tensor([[1.0], [1.0], [float("nan")], [2.0]])
    with trace_step(module) as step:
        module(original[:2], original)
        module(torch.tensor([[float("nan")], [1.0], [5.0]]), original)
    assert step.find_rows("x1", original) == [[0, 1], [2, 0, -1]]


def test_an_unknown_argument_is_named() -> None:
    module = Pair()
    with trace_step(module) as step:
        module(torch.zeros(1), torch.zeros(1))
    with pytest.raises(KeyError, match="had no tensor 'x3', but \\['x1', 'x2'\\]"):
        step.find_rows("x3", torch.zeros(1))


def test_a_call_that_fails_is_still_seen() -> None:
    module = Pair()
    with trace_step(module) as first, pytest.raises(TypeError):
        module(torch.zeros(2, 1))
    with trace_step(module) as second, pytest.raises(TypeError):
        module(torch.zeros(2, 1), torch.zeros(1), torch.zeros(1), wrong=torch.zeros(1))
    assert first.calls[0].rows == {"x1": 2}
    assert second.calls[0].rows == {"args[0]": 2, "args[1]": 1, "args[2]": 1, "wrong": 1}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden, self.score = nn.Linear(3, 4), nn.Linear(4, 2)
        self.register_buffer("mean", torch.ones(3))

    def forward(self, x):
        return self.score(self.hidden(x - self.mean).relu())


NAMES = ["hidden.weight", "hidden.bias", "score.weight", "score.bias"]
BYTES = 4 * (3 * 4 + 4 + 4 * 2 + 2 + 3)


@pytest.mark.parametrize(("gpus", "used"), [(2, 2), (3, 3), (8, 5)])
def test_every_replica_holds_every_weight_and_the_sum_is_on_the_first(gpus, used):
    with vgpu.virtual_gpus(gpus):
        dp = nn.DataParallel(Net().cuda())
        x = torch.randn(9, 3)
        with trace_step(dp) as step:
            dp(x).sum().backward()
        devices = [torch.device("cuda", k) for k in range(used)]
        held = Counter((tensor.name, tensor.device) for tensor in step.held)
        assert held == Counter((name, device) for name in [*NAMES, "mean"] for device in devices)
        assert [step.bytes_copied_to(device) for device in devices] == [0] + [BYTES] * (used - 1)
        assert Counter(step.gradients) == Counter((name, device) for name in NAMES for device in devices)
        assert step.sums == dict.fromkeys(NAMES, devices[0])
        assert [row for rows in step.find_rows("x", x) for row in rows] == list(range(9))


def test_a_bare_module_copies_nothing():
    module = Net()
    with trace_step(module) as step:
        module(torch.zeros(2, 3)).sum().backward()
    assert len(step.held) == 5 and not any(tensor.copied for tensor in step.held)
    assert step.sums == dict.fromkeys(NAMES, torch.device("cpu"))


def test_hooks_are_gone_afterwards():
    with vgpu.virtual_gpus(2) as gpus:
        net = Net().cuda()
        dp = nn.DataParallel(net)
        with trace_step(dp, gpus) as step:
            pass
        dp(torch.zeros(4, 3)).sum().backward()
        assert not any((step.held, step.gradients, step.sums, step.calls, step.samples))
        assert not net.hidden._forward_hooks and not net.hidden._forward_pre_hooks


def test_a_step_after_the_trace_of_a_bare_module_is_not_seen():
    module = Net()
    with trace_step(module) as step:
        module(torch.zeros(2, 3)).sum().backward()
    seen = len(step.gradients)
    module(torch.zeros(2, 3)).sum().backward()
    assert len(step.gradients) == seen == 4


def test_frozen_weights_are_held_but_have_no_gradient():
    with vgpu.virtual_gpus(2):
        net = Net().cuda()
        net.hidden.requires_grad_(False)
        dp = nn.DataParallel(net)
        with trace_step(dp) as step:
            dp(torch.zeros(4, 3)).sum().backward()
        assert len(step.held) == 10 and set(step.sums) == {"score.weight", "score.bias"}


ROWS, FEATURES = 40, 1000


class Wide(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(8, FEATURES, bias=False), nn.Linear(FEATURES, 2 * FEATURES, bias=False)

    def forward(self, x):
        return self.head(self.body(x))


def one_step(net, gpus):
    with trace_step(net, gpus) as step:
        step.mark("weights")
        out = net(torch.zeros(ROWS, 8))
        step.mark("outputs")
        out.sum().backward()
        step.mark("backward")
    return step


def blocks(*counts: int) -> int:
    """Bytes of tensors of so many floats, each in whole blocks of 512."""
    return sum(-(-4 * count // 512) * 512 for count in counts)


def test_memory_is_what_the_tensors_take(request) -> None:
    request.getfixturevalue("vgpu_fresh_memory")
    with vgpu.virtual_gpus(2) as gpus:
        step = one_step(nn.DataParallel(Wide().cuda(), gpus), gpus)
    weights, half = blocks(8 * FEATURES, 2 * FEATURES**2), ROWS // 2
    assert step.bytes_after("weights") == [weights, 0]
    after_body = blocks(half * 8, half * FEATURES)
    assert step.bytes_after("forward body") == [weights + after_body, weights + after_body]
    after_head = after_body + blocks(half * 2 * FEATURES)
    assert step.bytes_after("forward head") == [weights + after_head, weights + after_head]
    # Kept for backward: both inputs, and the head's weight. The body's is not: nobody wants the gradient of x.
    kept = weights - blocks(8 * FEATURES) + after_body
    assert step.bytes_after("outputs") == [weights + after_body + blocks(ROWS * 2 * FEATURES), kept]
    assert step.bytes_after("backward")[0] == 2 * weights + blocks(ROWS * 2 * FEATURES)
    assert step.bytes_after("backward")[1] == 0
    assert step.stages == ["weights", "forward body", "forward head", "outputs", "backward head", "backward"]
    for gpu, peak in zip(gpus, step.peaks, strict=True):
        own = step.samples_of(gpu)
        assert peak == max(sample.peak for sample in own.values()) >= own["outputs"].held


class OnTheSecond(nn.Module):
    """A wrapper that calls its module on the second GPU alone."""

    def __init__(self, module, gpus):
        super().__init__()
        self.module, self.gpus = module, gpus

    def forward(self, x):
        return nn.parallel.replicate(self.module, self.gpus)[1](x.to(self.gpus[1]))


def test_a_device_that_is_not_called_has_marks_only() -> None:
    with vgpu.virtual_gpus(2) as gpus:
        step = one_step(OnTheSecond(Wide().cuda(), gpus), gpus)
        assert list(step.samples_of(gpus[0])) == ["weights", "outputs", "backward"]
        assert list(step.samples_of(gpus[1])) == step.stages
        with pytest.raises(KeyError):
            step.bytes_after("forward body")
        assert [call.device for call in step.calls] == [gpus[1]]


def test_what_has_no_memory_to_count_is_named() -> None:
    with (
        pytest.raises(ValueError, match=r"`gpus` must be GPUs, .* got \['cpu'\]"),
        trace_step(Wide(), [torch.device("cpu")]),
    ):
        pass
