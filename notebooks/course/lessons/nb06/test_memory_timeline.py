"""The figure of the memory of a step, on virtual GPUs."""

import re

import pytest
import torch
from torch import nn

import vgpu
from course.kit.figures.palette import GPU_COLOURS, KIND_COLOURS
from course.kit.memory_kinds import KINDS
from course.kit.step_trace import Trace, trace_step
from course.lessons.nb06.memory_timeline import megabytes, memory_timeline

pytestmark = pytest.mark.usefixtures("vgpu_fresh_memory")
COLOURS = dict(zip(KINDS, KIND_COLOURS, strict=True))


def one_step(gpus, rows=40) -> Trace:
    net = nn.DataParallel(nn.Sequential(nn.Linear(8, 1000), nn.Linear(1000, 2000)).cuda(), gpus)
    with trace_step(net, gpus) as step:
        step.mark("weights")
        net(torch.zeros(rows, 8)).sum().backward()
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
    assert "The limit is 20.0 MB" in figure.description and "dashed: the limit, 20.0 MB" in figure.markup
    assert megabytes(1_000_001) == "1.1 MB"


def test_bars_are_stacked_by_kind() -> None:
    """The heights of one colour are in proportion to the bytes of one kind, and no colour is that of a GPU."""
    with vgpu.virtual_gpus(2) as gpus:
        step = one_step(gpus)
    markup = memory_timeline(step, "A step").markup
    for kind, colour in COLOURS.items():
        drawn = re.findall(rf'height="([\d.]+)" fill="{colour}" stroke="#ffffff"', markup)
        sizes = [step.samples_of(gpu)[stage].kinds[kind] for gpu in gpus for stage in step.samples_of(gpu)]
        wanted = [132 * size / max(step.peaks) for size in sizes if size]
        assert sorted(map(float, drawn)) == pytest.approx(sorted(wanted), abs=0.01), kind
        assert (f">{kind}<" in markup) == bool(wanted)
    assert not any(colour in markup for colour in GPU_COLOURS)
    assert len({*KIND_COLOURS, *GPU_COLOURS}) == len(KIND_COLOURS) + len(GPU_COLOURS)


def test_gpus_that_hold_the_same_share_a_lane() -> None:
    with vgpu.virtual_gpus(4) as gpus:
        assert re.findall(r">(cuda:[^<]{1,9})<", memory_timeline(one_step(gpus), "A step").markup) == [
            "cuda:0",
            "cuda:1 to 3",
        ]
        uneven = memory_timeline(one_step(gpus, rows=39), "A step")
        assert re.findall(r">(cuda:[^<]{1,9})<", uneven.markup) == ["cuda:0", "cuda:1 to 2", "cuda:3"]
        assert "cuda:3: peak" in uneven.description
