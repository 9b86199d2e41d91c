import io
import math
import warnings

import pytest
import torch
from torch import nn

import frcnn_lite.recipes.schedules as schedules

RATES = {"backbone": 0.01, "head": 0.1}
SCHEDULES = {
    "constant": lambda optimizer: schedules.constant(optimizer, warmup_steps=4),
    "milestones": lambda optimizer: schedules.milestones(optimizer, [8, 12], gamma=0.2, warmup_steps=4),
    "poly": lambda optimizer: schedules.poly(optimizer, 16, warmup_steps=4),
    "poly, no warm-up": lambda optimizer: schedules.poly(optimizer, 16),
    "cosine": lambda optimizer: schedules.cosine(optimizer, 16, warmup_steps=4),
    "cosine, no warm-up": lambda optimizer: schedules.cosine(optimizer, 16),
}
every_schedule = pytest.mark.parametrize("build", SCHEDULES.values(), ids=SCHEDULES)


def head(build, steps=20):
    return [rate / RATES["head"] for rate in schedules.preview(build, RATES, steps)["head"]]


def test_milestones_count_from_the_start_of_the_run():
    taken = head(SCHEDULES["milestones"])
    assert taken[:4] == pytest.approx([0.1, 0.325, 0.55, 0.775])
    assert taken[4:8] == pytest.approx([1.0] * 4)
    assert taken[8:12] == pytest.approx([0.2] * 4) and taken[12:] == pytest.approx([0.04] * 8)


def test_poly_stays_at_zero_after_its_last_step():
    taken = head(SCHEDULES["poly, no warm-up"])
    assert taken[:16] == pytest.approx([(1 - step / 16) ** 0.9 for step in range(16)])
    assert taken[16:] == [0.0] * 4


def test_cosine_stays_at_zero_after_its_last_step():
    taken = head(SCHEDULES["cosine"], 60)
    assert taken[4:16] == pytest.approx([(1 + math.cos(math.pi * step / 12)) / 2 for step in range(12)])
    assert taken[16:] == [0.0] * 44


@every_schedule
def test_groups_keep_their_ratio(build):
    taken = schedules.preview(build, RATES, 20)
    assert [10 * rate for rate in taken["backbone"]] == pytest.approx(taken["head"])


@every_schedule
def test_no_warning_of_torch(build):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        schedules.preview(build, RATES, 20)


def run(build, first, last, state=None):
    """Rates at steps first .. last - 1, and the state to go on from, through a file that holds no code."""
    groups = [{"params": [nn.Parameter(torch.ones(1))], "lr": rate} for rate in RATES.values()]
    optimizer = torch.optim.SGD(groups)
    scheduler = build(optimizer)
    if state is not None:
        state.seek(0)
        stored = torch.load(state, weights_only=True)
        optimizer.load_state_dict(stored["optimizer"])
        scheduler.load_state_dict(stored["scheduler"])
    taken = []
    for _ in range(first, last):
        taken.append([group["lr"] for group in optimizer.param_groups])
        optimizer.step()
        scheduler.step()
    file = io.BytesIO()
    torch.save({"optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict()}, file)
    return taken, file


@every_schedule
@pytest.mark.parametrize("stop", [0, 1, 3, 4, 5, 8, 15, 16, 18])
def test_a_resumed_schedule_goes_on_to_the_bit(build, stop):
    whole, _ = run(build, 0, 20)
    begun, state = run(build, 0, stop)
    rest, _ = run(build, stop, 20, state)
    assert begun + rest == whole


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda optimizer: schedules.poly(optimizer, 4, warmup_steps=4), "`total_steps` must be more than the 4 steps"),
        (lambda optimizer: schedules.cosine(optimizer, 0), "`total_steps` must be more than"),
        (lambda optimizer: schedules.milestones(optimizer, [8, 8]), "`drops` must increase"),
        (lambda optimizer: schedules.milestones(optimizer, [3], warmup_steps=4), "after the warm-up of 4 steps"),
        (lambda optimizer: schedules.constant(optimizer, warmup_steps=-1), "`warmup_steps` must be at least 0, got -1"),
    ],
)
def test_bad_numbers(build, words):
    with pytest.raises(ValueError, match=words):
        schedules.preview(build, RATES, 1)
