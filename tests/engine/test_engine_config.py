import json
from dataclasses import replace

import pytest

from frcnn_lite.detection import FasterRCNNConfig
from frcnn_lite.engine import TrainConfig


def test_json_and_back():
    config = TrainConfig(gpus=2, steps=7, lr=0.01, model=FasterRCNNConfig(anchor_sizes=(10.0, 20.0)))
    assert TrainConfig.from_json(config.to_json()) == config


def test_a_field_of_another_version_is_named():
    values = json.loads(TrainConfig().to_json())
    with pytest.raises(ValueError, match="momentum"):
        TrainConfig.from_json(json.dumps({**values, "momentum": 0.9}))
    with pytest.raises(ValueError, match="JSON object"):
        TrainConfig.from_json("[1, 2]")


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"gpus": -1}, ValueError, "gpus must be at least 0, got -1"),
        ({"gpus": 99}, ValueError, "gpus must be at most batch_size, got gpus=99 with batch_size=8"),
        ({"gpus": True}, TypeError, "gpus must be an int"),
        ({"steps": 1.5}, TypeError, "steps must be an int, got 1.5"),
        ({"batch_size": 0}, ValueError, "batch_size must be at least 1"),
        ({"lr": float("nan")}, ValueError, "lr must be a finite number"),
        ({"lr": "fast"}, TypeError, "lr must be a number, got 'fast'"),
        ({"ema": 1.0}, ValueError, "ema must be below 1, got 1.0"),
        ({"evaluate_every": 5, "test_images": 0}, ValueError, "evaluate_every=5 needs test_images of at least 1"),
        ({"schedule": "poly"}, ValueError, "schedule must be one of"),
    ],
)
def test_bad_values_are_named(changes, error, words):
    with pytest.raises(error, match=words):
        replace(TrainConfig(), **changes)
