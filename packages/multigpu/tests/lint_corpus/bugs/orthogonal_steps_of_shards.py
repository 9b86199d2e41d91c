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
                rows = weight.grad.to_local()
                weight.to_local().add_(orthogonal(rows), alpha=-group["lr"])  # BUG FL027
