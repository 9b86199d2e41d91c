import pytest
import torch

from frcnn_lite.engine import TrainConfig, averaging_decay, steps_in_epochs, steps_in_minutes
from frcnn_lite.engine import budget as module

CONFIG = TrainConfig(batch_size=2, image_size=64, train_images=10)


def test_steps_fill_the_time_that_is_left(monkeypatch):
    """With a clock on which each step takes half a second: 15 trial steps cost 7.5 s of 60, the rest holds 105."""
    now = iter(range(1000))
    monkeypatch.setattr(module.time, "perf_counter", lambda: next(now) * 0.5)
    # The clock is read at the begin, twice a step, and at the end; between two steps half a second passes too.
    assert steps_in_minutes(1.0, CONFIG) == (60 - 0.5 * (2 * 15 + 1)) // 0.5


def test_at_least_one_step_and_no_trace_on_the_global_generator():
    state = torch.get_rng_state()
    assert steps_in_minutes(1e-9, CONFIG) == 1
    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize("minutes", [0, -1, float("nan"), float("inf")])
def test_minutes_must_be_positive(minutes):
    with pytest.raises(ValueError, match="minutes must be a positive number"):
        steps_in_minutes(minutes, CONFIG)


def test_epochs_are_rounded_up_to_whole_steps():
    assert steps_in_epochs(1, CONFIG) == 5 and steps_in_epochs(0.5, CONFIG) == 3 and steps_in_epochs(3, CONFIG) == 15
    with pytest.raises(ValueError, match="epochs must be a positive number, got -1"):
        steps_in_epochs(-1, CONFIG)


def test_weights_are_averaged_over_a_sixth_of_a_run_of_any_length():
    assert [averaging_decay(steps) for steps in (1, 11, 12, 600)] == [0, 0, 0.5, 0.99]
    weights = torch.tensor(averaging_decay(3000), dtype=torch.float64) ** torch.arange(3000)
    assert weights.sum() / 3000 == pytest.approx(1 / 6, rel=0.01), "as many steps have a say"
    assert TrainConfig(steps=1, ema=averaging_decay(1)).ema == 0 and TrainConfig(ema=averaging_decay(10**9)).ema < 1
