import math

import pytest
from torch import nn

from frcnn_lite.engine import TrainConfig
from frcnn_lite.engine.trainer import build_optimizer


def rates(**changes):
    config = TrainConfig(lr=0.4, **changes)
    optimizer, scheduler = build_optimizer(nn.Linear(2, 2), config)
    taken = []
    for _ in range(config.steps):
        taken.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return taken


def test_warm_up_then_cosine():
    taken = rates(steps=100, warmup_steps=20)
    assert taken[0] == pytest.approx(0.04) and taken[10] == pytest.approx(0.22) and taken[20] == pytest.approx(0.4)
    for step in (20, 50, 99):
        assert taken[step] == pytest.approx(0.2 * (1 + math.cos(math.pi * (step - 20) / 80)))


def test_constant_schedule():
    assert rates(steps=30, warmup_steps=10, schedule="constant")[10:] == pytest.approx([0.4] * 20)


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_a_short_run_shortens_its_warm_up(steps):
    assert max(rates(steps=steps, warmup_steps=50)) == pytest.approx(0.4)


def test_weight_decay_leaves_biases_and_norms_alone():
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.GroupNorm(2, 8))
    optimizer, _ = build_optimizer(model, TrainConfig())
    decayed, free = optimizer.param_groups
    assert [p.dim() for p in decayed["params"]] == [4] and decayed["weight_decay"] > 0
    assert [p.dim() for p in free["params"]] == [1, 1, 1] and free["weight_decay"] == 0
