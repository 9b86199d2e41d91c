import torch
import torch.nn.functional as F

kernel = torch.ones(1, 1, 3, 3) / 9  # BUG FL007


def blur(x):
    return F.conv2d(x, kernel, padding=1)
