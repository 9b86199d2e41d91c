"""Memory of every device through a step, and the figure of it, on virtual GPUs."""

import pytest
import torch
from torch import nn

import vgpu
from course.figures import megabytes, memory_timeline
from frcnn_lite.parallel import BalancedDataParallel, MemoryTrace, trace_memory

pytestmark = pytest.mark.usefixtures("vgpu_fresh_memory")

ROWS, FEATURES = 40, 1000


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(8, FEATURES, bias=False), nn.Linear(FEATURES, 2 * FEATURES, bias=False)

    def forward(self, x):
        return self.head(self.body(x))


def traced(wrap, gpus) -> MemoryTrace:
    net = wrap(Net().cuda())
    with trace_memory(net, gpus) as memory:
        memory.mark("weights")
        out = net(torch.zeros(ROWS, 8))
        memory.mark("outputs")
        out.sum().backward()
        memory.mark("backward")
    return memory


def blocks(*counts: int) -> int:
    """Bytes of tensors of so many floats, each in whole blocks of 512."""
    return sum(-(-4 * count // 512) * 512 for count in counts)


def test_samples_are_what_the_tensors_take() -> None:
    with vgpu.virtual_gpus(2) as gpus:
        memory = traced(lambda net: nn.DataParallel(net, gpus), gpus)
    weights, half = blocks(8 * FEATURES, 2 * FEATURES**2), ROWS // 2
    assert memory.held("weights") == [weights, 0]
    after_body = blocks(half * 8, half * FEATURES)
    assert memory.held("forward body") == [weights + after_body, weights + after_body]
    after_head = after_body + blocks(half * 2 * FEATURES)
    assert memory.held("forward head") == [weights + after_head, weights + after_head]
    # Kept for backward: both inputs, and the head's weight. The body's is not: nobody wants the gradient of x.
    kept = weights - blocks(8 * FEATURES) + after_body
    assert memory.held("outputs") == [weights + after_body + blocks(ROWS * 2 * FEATURES), kept]
    assert memory.held("backward")[0] == 2 * weights + blocks(ROWS * 2 * FEATURES)
    assert memory.held("backward")[1] == 0
    assert memory.stages == ["weights", "forward body", "forward head", "outputs", "backward head", "backward"]
    for gpu, peak in zip(gpus, memory.peaks, strict=True):
        assert peak == max(sample.peak for sample in memory.of(gpu).values()) >= memory.of(gpu)["outputs"].held


def test_a_trace_is_the_same_every_time() -> None:
    """Replicas race; what is recorded of them does not."""
    with vgpu.virtual_gpus(4) as gpus:
        figures = {
            memory_timeline(traced(lambda net: nn.DataParallel(net, gpus), gpus), "A step").markup for _ in range(5)
        }
    assert len(figures) == 1


def test_a_device_that_is_not_called_has_marks_only() -> None:
    with vgpu.virtual_gpus(2) as gpus:
        memory = traced(lambda net: BalancedDataParallel(net, gpus, first=0), gpus)
        assert list(memory.of(gpus[0])) == ["weights", "outputs", "backward"]
        assert list(memory.of(gpus[1])) == memory.stages
        with pytest.raises(KeyError):
            memory.held("forward body")


def test_hooks_are_gone_afterwards() -> None:
    with vgpu.virtual_gpus(1) as gpus:
        net = Net().cuda()
        with trace_memory(net, gpus) as memory:
            pass
        net(torch.zeros(1, 8, device="cuda"))
        assert memory.samples == [] and not net.body._forward_hooks and not net.body._forward_pre_hooks


def test_what_has_no_memory_to_count_is_named() -> None:
    with pytest.raises(ValueError, match="devices must be GPUs"), trace_memory(Net(), [torch.device("cpu")]):
        pass
    with pytest.raises(ValueError, match="no samples"):
        memory_timeline(MemoryTrace([]), "Nothing")


def test_figure_tells_peaks_and_limit() -> None:
    with vgpu.virtual_gpus(2) as gpus:
        memory = traced(lambda net: nn.DataParallel(net, gpus), gpus)
    figure = memory_timeline(memory, "A step", limit=20_000_000)
    for gpu, peak in zip(gpus, memory.peaks, strict=True):
        assert f"{gpu}: peak {megabytes(peak)}" in figure.description
    assert "The limit is 20.0 MB" in figure.description and "dashed: 20.0 MB" in figure.markup
    assert megabytes(1_000_001) == "1.1 MB"
