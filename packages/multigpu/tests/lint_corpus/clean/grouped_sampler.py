import math

import torch
from torch.utils.data import Sampler


class GroupedSampler(Sampler):
    def __init__(self, aspect, batch, seed=0):
        self.aspect, self.batch, self.seed, self.epoch = aspect, batch, seed, 0

    def __iter__(self):
        g = torch.Generator()
        g.manual_seed(self.seed + self.epoch)
        order = torch.randperm(len(self.aspect), generator=g).tolist()
        for i in range(0, len(order), self.batch):
            yield order[i : i + self.batch]

    def __len__(self):
        return math.ceil(len(self.aspect) / self.batch)
