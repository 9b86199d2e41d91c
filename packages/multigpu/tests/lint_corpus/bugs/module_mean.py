import torch
from torch import nn

IMAGENET_MEAN = torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1)  # BUG FL007
IMAGENET_STD = torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1)  # BUG FL007


class Normalize(nn.Module):
    def forward(self, images):
        return (images - IMAGENET_MEAN) / IMAGENET_STD
