"""PReLU out of two ReLUs, for runtimes without it (TensorRT 5 was one).

    PReLU(x) = relu(x) - a * relu(-x)

One of the two terms is always zero, so the values are equal bit for bit. The gradient at x = 0 is not: PReLU passes
`a` there, and the two ReLUs pass 0.
"""

import copy

import torch
from torch import Tensor, nn


class TwoReluPReLU(nn.Module):
    """PReLU with the same parameter `weight`, (1,) or (C,), and so the same state dict."""

    def __init__(self, weight: nn.Parameter) -> None:
        super().__init__()
        self.weight = weight

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, ...) to the same shape."""
        slope = self.weight.view(-1, *[1] * (x.dim() - 2))  # along dimension 1, where the channels are
        return torch.relu(x) - slope * torch.relu(-x)


def rewrite_prelu(model: nn.Module) -> nn.Module:
    """A copy of `model` with every `nn.PReLU` as two ReLUs. A PReLU used in two places stays one module."""
    shell = nn.Sequential(copy.deepcopy(model))
    made: dict[nn.Module, TwoReluPReLU] = {}
    for name, module in list(shell.named_modules(remove_duplicate=False)):
        if isinstance(module, nn.PReLU):
            if module not in made:
                made[module] = TwoReluPReLU(module.weight).train(module.training)
            shell.set_submodule(name, made[module])
    return shell[0]
