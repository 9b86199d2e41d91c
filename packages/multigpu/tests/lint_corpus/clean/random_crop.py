import torch
from torch import nn


class RandomCrop(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, image):
        height, width = image.shape[-2:]
        for _ in range(10):
            area = height * width * torch.empty(1).uniform_(*self.scale).item()
            top = torch.randint(0, height, size=(1,)).item()
            if area < (height - top) * width:
                return image[..., top:, : int(area / (height - top))]
        return image
