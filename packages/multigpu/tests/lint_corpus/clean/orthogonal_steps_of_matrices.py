"""Steps of the whole matrix, and steps that treat each number by itself, for which a shard is enough."""

import torch


def orthogonal(matrix):
    for _ in range(5):
        matrix = 1.5 * matrix - 0.5 * matrix @ matrix.T @ matrix
    return matrix


class Orthogonal(torch.optim.Optimizer):
    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for weight in group["params"]:
                whole = orthogonal(weight.grad.full_tensor())
                rows = whole.chunk(self.ranks)[self.rank]
                weight.to_local().add_(rows, alpha=-group["lr"])


class Signs(torch.optim.Optimizer):
    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for weight in group["params"]:
                weight.to_local().add_(weight.grad.to_local().sign(), alpha=-group["lr"])
