import math

import numpy as np
import torch

ANCHOR_SCALES = (8, 16, 32)
MEAN = np.array([102.9, 115.9, 122.7], dtype=np.float32)
EPS = 1e-6


def clip(deltas):
    return deltas.clamp(max=math.log(1000.0 / 16) + EPS)


def normalize(images):
    return images - torch.as_tensor(MEAN, device=images.device)[None, :, None, None]
