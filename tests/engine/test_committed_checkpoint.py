from pathlib import Path

from frcnn_lite.detection import FasterRCNNConfig
from frcnn_lite.engine import Pictures, TrainConfig, evaluate, load_weights

FILE = Path(__file__).resolve().parents[2] / "notebooks" / "checkpoints" / "digits.pt"


def test_it_is_small_and_finds_digits_it_never_saw():
    assert FILE.stat().st_size < 3_000_000
    found = evaluate(load_weights(FILE), Pictures().held_out(TrainConfig(), length=60))
    assert found.AP50 > 0.9 and found.AP > 0.6


def test_it_is_of_the_detector_as_it_stands():
    """The default but for how it reads and places regions, which notebooks explain by Fast R-CNN's RoI pooling.

    Any other change of the default model leaves this file behind: train it anew, as the README beside it says.
    """
    plain = {"roi_op": "pool", "class_specific_boxes": False, "voting_iou": 1.0}
    assert load_weights(FILE).config == FasterRCNNConfig(**plain)
