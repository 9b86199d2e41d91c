"""A detector's answer as a panel says which detections are right."""

import numpy as np
import torch

from course.kit import figures
from course.lessons.nb12.found_panel import found_panel

IMAGE = np.full((3, 64, 64), 200, dtype=np.uint8)
BOXES = torch.tensor([[4.0, 4, 24, 24], [40, 40, 60, 60]])


def test_detections_are_right_or_wrong():
    found = (BOXES, torch.tensor([0.9, 0.8]), torch.tensor([3, 7]))
    panel = found_panel(IMAGE, found, (BOXES, torch.tensor([3, 4])), "trained")
    assert panel.caption == "trained\n1 right, 1 wrong, 1 missed"
    assert panel.tags == {"right": ["3"], "wrong": ["7"]}
    assert {kind: len(boxes) for kind, boxes in panel.boxes.items()} == {"true box": 2, "right": 1, "wrong": 1}
    assert "1 boxes marked wrong (7)" in figures.panels([panel], "Found").description
