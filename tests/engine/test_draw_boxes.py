import numpy as np
import torch
from PIL import Image

from frcnn_lite.engine import draw_boxes


def test_boxes_are_outlined_on_a_copy():
    image = Image.new("RGB", (40, 40))
    drawn = np.array(draw_boxes(image, torch.tensor([[10.0, 20.0, 30.0, 35.0]]), ["7"]))
    assert not np.array(image).any()
    assert drawn[20, 10].any() and drawn[34, 29].any() and not drawn[25:33, 12:28].any() and not drawn[36:].any()
