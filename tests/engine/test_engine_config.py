import json
from dataclasses import replace

import pytest
import torch

from frcnn_lite.detection import FasterRCNNConfig
from frcnn_lite.engine import TrainConfig


def test_json_and_back():
    config = TrainConfig(gpus=2, steps=7, lr=0.01, model=FasterRCNNConfig(anchor_sizes=(10.0, 20.0)))
    assert TrainConfig.from_json(config.to_json()) == config


def test_weights_are_averaged_over_a_sixth_of_a_run_of_any_length():
    assert [TrainConfig(steps=steps).ema for steps in (1, 11, 12, 600)] == pytest.approx([0, 0, 0.5, 0.99])
    weights = torch.tensor(TrainConfig(steps=3000).ema, dtype=torch.float64) ** torch.arange(3000)
    assert weights.sum() / 3000 == pytest.approx(1 / 6, rel=0.01), "as many steps have a say"
    assert TrainConfig(averaging=0.0).ema == 0 and TrainConfig(steps=10**9).ema < 1


def test_a_field_of_another_version_is_named():
    values = json.loads(TrainConfig().to_json())
    with pytest.raises(ValueError, match="momentum"):
        TrainConfig.from_json(json.dumps({**values, "momentum": 0.9}))
    with pytest.raises(ValueError, match="JSON object"):
        TrainConfig.from_json("[1, 2]")


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"gpus": -1}, ValueError, "`gpus` must be at least 0, got -1"),
        ({"gpus": 99}, ValueError, "`gpus` must be at most `batch_size`, got gpus=99 with batch_size=8"),
        ({"gpus": True}, TypeError, "`gpus` must be an int"),
        ({"steps": 1.5}, TypeError, "`steps` must be an int, got 1.5"),
        ({"batch_size": 0}, ValueError, "`batch_size` must be at least 1"),
        ({"lr": float("nan")}, ValueError, "`lr` must be a finite number"),
        ({"lr": "fast"}, TypeError, "`lr` must be a number, got 'fast'"),
        ({"averaging": 1.5}, ValueError, "`averaging` must be a fraction of the steps, at most 1, got 1.5"),
        ({"evaluate_every": 5, "test_images": 0}, ValueError, "`test_images` must be at least 1 with evaluate_every=5"),
        ({"schedule": "poly"}, ValueError, "`schedule` must be one of"),
    ],
)
def test_bad_values_are_named(changes, error, words):
    with pytest.raises(error, match=words):
        replace(TrainConfig(), **changes)
