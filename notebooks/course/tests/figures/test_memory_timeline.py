"""The figure of the memory of a step, on virtual GPUs."""

import pytest
import torch
from torch import nn

import vgpu
from course.figures import megabytes, memory_timeline
from course.step_trace import Trace, trace_step

pytestmark = pytest.mark.usefixtures("vgpu_fresh_memory")


def one_step(gpus) -> Trace:
    net = nn.DataParallel(nn.Sequential(nn.Linear(8, 1000), nn.Linear(1000, 2000)).cuda(), gpus)
    with trace_step(net, gpus) as step:
        step.mark("weights")
        net(torch.zeros(40, 8)).sum().backward()
        step.mark("backward")
    return step


def test_a_figure_is_the_same_every_time() -> None:
    """Replicas race; what is recorded of them does not."""
    with vgpu.virtual_gpus(4) as gpus:
        figures = {memory_timeline(one_step(gpus), "A step").markup for _ in range(5)}
    assert len(figures) == 1


def test_nothing_to_draw_is_named() -> None:
    with pytest.raises(ValueError, match="no samples"):
        memory_timeline(Trace(), "Nothing")


def test_figure_tells_peaks_and_limit() -> None:
    with vgpu.virtual_gpus(2) as gpus:
        step = one_step(gpus)
    figure = memory_timeline(step, "A step", limit=20_000_000)
    for gpu, peak in zip(gpus, step.peaks, strict=True):
        assert f"{gpu}: peak {megabytes(peak)}" in figure.description
    assert "The limit is 20.0 MB" in figure.description and "dashed: 20.0 MB" in figure.markup
    assert megabytes(1_000_001) == "1.1 MB"
