import torch
from torch.utils.data import Sampler


class Balanced(Sampler):
    def __init__(self, labels, size):
        counts = torch.bincount(torch.tensor(labels))
        self.weights = (1.0 / counts)[torch.tensor(labels)]
        self.size = size

    def __iter__(self):
        yield from torch.multinomial(self.weights, self.size, replacement=True).tolist()

    def __len__(self):
        return self.size
