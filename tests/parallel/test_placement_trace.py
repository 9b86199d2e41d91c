from collections import Counter

import pytest
import torch
from torch import nn

import vgpu
from frcnn_lite.parallel import chunk_sizes, trace_placement


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden, self.score = nn.Linear(3, 4), nn.Linear(4, 2)
        self.register_buffer("mean", torch.ones(3))

    def forward(self, x):
        return self.score(self.hidden(x - self.mean).relu())


NAMES = ["hidden.weight", "hidden.bias", "score.weight", "score.bias"]
BYTES = 4 * (3 * 4 + 4 + 4 * 2 + 2 + 3)


@pytest.mark.parametrize("gpus", [2, 3, 8])
def test_every_replica_holds_every_weight_and_the_sum_is_on_the_first(gpus):
    with vgpu.virtual_gpus(gpus):
        dp = nn.DataParallel(Net().cuda())
        x = torch.randn(9, 3)
        with trace_placement(dp) as trace:
            dp(x).sum().backward()
        used = len(chunk_sizes(9, gpus))
        devices = [torch.device("cuda", k) for k in range(used)]
        held = Counter((tensor.name, tensor.device) for tensor in trace.held)
        assert held == Counter((name, device) for name in [*NAMES, "mean"] for device in devices)
        assert [trace.bytes_copied_to(device) for device in devices] == [0] + [BYTES] * (used - 1)
        assert Counter(trace.gradients) == Counter((name, device) for name in NAMES for device in devices)
        assert trace.sums == dict.fromkeys(NAMES, devices[0])
        assert [row for rows in trace.rows.find_rows("x", x) for row in rows] == list(range(9))


def test_a_bare_module_copies_nothing():
    module = Net()
    with trace_placement(module) as trace:
        module(torch.zeros(2, 3)).sum().backward()
    assert len(trace.held) == 5 and not any(tensor.copied for tensor in trace.held)
    assert trace.sums == dict.fromkeys(NAMES, torch.device("cpu"))


def test_hooks_are_gone_afterwards():
    with vgpu.virtual_gpus(2):
        dp = nn.DataParallel(Net().cuda())
        with trace_placement(dp) as trace:
            pass
        dp(torch.zeros(4, 3)).sum().backward()
        assert not trace.held and not trace.gradients and not trace.sums and not trace.rows.calls


def test_frozen_weights_are_held_but_have_no_gradient():
    with vgpu.virtual_gpus(2):
        net = Net().cuda()
        net.hidden.requires_grad_(False)
        dp = nn.DataParallel(net)
        with trace_placement(dp) as trace:
            dp(torch.zeros(4, 3)).sum().backward()
        assert len(trace.held) == 10 and set(trace.sums) == {"score.weight", "score.bias"}
