"""A statement in the prose of notebook 06 that no output shows, run again."""

from types import SimpleNamespace

import pytest
import torch
from told import cell, says
from torch import nn
from torch.utils.checkpoint import checkpoint

import vgpu
from course.kit.step_trace import trace_step


@pytest.mark.parametrize(("recompute", "highest"), [(False, "backward ends"), (True, "optimizer steps")])
def test_with_recomputation_the_peak_is_in_the_step_of_adam(recompute, highest):
    with vgpu.virtual_gpus(1) as gpus:
        names = {"nn": nn, "torch": torch, "checkpoint": checkpoint, "trace_step": trace_step, "gpus": gpus}
        names |= dict.fromkeys(("with_limit", "memory_timeline"), lambda *_, **__: None)
        names["learn"] = SimpleNamespace(reveal=lambda *_: None)
        for part in ("class Blocks", "def second_step"):
            exec(compile(cell("06", part), "06", "exec"), names)
        samples = names["second_step"](names["Blocks"](recompute).cuda(), names["rows"].cuda()).samples
    assert max(samples, key=lambda sample: sample.peak).stage == highest
    backward, adam = (
        next(s.peak for s in samples if s.stage == stage) for stage in ("backward ends", "optimizer steps")
    )
    assert not recompute or adam == pytest.approx(backward, rel=0.001)
    assert says("06", "And now Adam's step is as high as backward")
