import math
from dataclasses import dataclass

from torch import Tensor, nn


@dataclass
class Levels:
    first: int
    last: int


def levels_of(features: list[Tensor], size: int) -> Levels:
    scales = [feature.shape[-1] / size for feature in features]
    return Levels(round(-math.log2(scales[0])), round(-math.log2(scales[-1])))


class Pooler(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.size = size

    def forward(self, features):
        self.levels = levels_of(features, self.size)
        return features[self.levels.first :]
