import dataclasses
import json

import pytest

from frcnn_lite.detection import FasterRCNNConfig


def test_survives_json() -> None:
    config = FasterRCNNConfig(num_classes=20, widths=(8, 16), blocks=(1, 0))
    assert FasterRCNNConfig.from_dict(json.loads(json.dumps(dataclasses.asdict(config)))) == config


def test_an_unknown_field_is_named() -> None:
    with pytest.raises(ValueError, match=r"unknown fields \['colour'\]"):
        FasterRCNNConfig.from_dict({"colour": 1})


@pytest.mark.parametrize(
    ("field", "value", "error", "message"),
    [
        ("num_classes", 0, ValueError, "`num_classes` must be at least 1, got 0"),
        ("proposals", 2.5, TypeError, "`proposals` must be an int, got 2.5"),
        ("roi_samples", True, TypeError, "`roi_samples` must be an int, got True"),
        ("rpn_positive_fraction", 1.5, ValueError, "`rpn_positive_fraction` must be between 0 and 1, got 1.5"),
        ("anchor_sizes", (), ValueError, r"`anchor_sizes` must be positive numbers, got \(\)"),
        ("anchor_ratios", (1.0, -2.0), ValueError, "`anchor_ratios` must be positive numbers"),
        ("roi_delta_weights", (1.0, 1.0), ValueError, "`roi_delta_weights` must be four numbers"),
        ("blocks", (1,), ValueError, "`blocks` must be as long as widths"),
        ("widths", (8, 16, 20), ValueError, "`widths` must be multiples of group_width=8"),
        ("roi_channels", 20, ValueError, "`roi_channels` must be multiples of group_width=8, got 20"),
        ("pixel_std", 0.0, ValueError, "`pixel_std` must be positive, got 0.0"),
        ("rpn_negative_iou", 0.9, ValueError, "`rpn_negative_iou` must be at most rpn_positive_iou=0.6, got 0.9"),
    ],
)
def test_wrong_values_are_named(field: str, value: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        FasterRCNNConfig.from_dict({field: value})
