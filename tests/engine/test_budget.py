import pytest
import torch

from frcnn_lite.engine import TrainConfig, steps_in
from frcnn_lite.engine import budget as module

CONFIG = TrainConfig(batch_size=2, image_size=64, train_images=10)


def test_steps_fill_the_time_that_is_left(monkeypatch):
    """With a clock on which each step takes half a second: 15 trial steps cost 7.5 s of 60, the rest holds 105."""
    now = iter(range(1000))
    monkeypatch.setattr(module.time, "perf_counter", lambda: next(now) * 0.5)
    # The clock is read at the begin, twice a step, and at the end; between two steps half a second passes too.
    assert steps_in(1.0, CONFIG) == (60 - 0.5 * (2 * 15 + 1)) // 0.5


def test_at_least_one_step_and_no_trace_on_the_global_generator():
    state = torch.get_rng_state()
    assert steps_in(1e-9, CONFIG) == 1
    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize("minutes", [0, -1, float("nan"), float("inf")])
def test_minutes_must_be_positive(minutes):
    with pytest.raises(ValueError, match="minutes must be a positive number"):
        steps_in(minutes, CONFIG)
