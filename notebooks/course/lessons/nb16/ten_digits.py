"""Ten digits as feature maps, a region for each, and which of their gradients a pooling gets wrong."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course.kit import figures
from course.kit.attempt import last_line

DIGITS = torch.tensor(figures.cast()).unsqueeze(1)  # (10, 1, 8, 8): the digits 0 to 9
WHOLE = torch.tensor([[0.0, 0, 0, 7, 7]])  # number of the picture in the batch, then x1 y1 x2 y2: all of it
ROIS = torch.cat([torch.arange(10.0)[:, None], WHOLE[:, 1:].expand(10, 4)], dim=1)
HALVES = ROIS % torch.tensor([5, 10, 10, 10, 10])  # noqa: FL007 scattered with the digits; two replicas count from 0


class Layer(nn.Module):
    """An autograd Function as a layer, for what wants a module."""

    def __init__(self, function: type[torch.autograd.Function]) -> None:
        super().__init__()
        self.function = function

    def forward(self, features: Tensor, rois: Tensor) -> Tensor:
        return self.function.apply(features, rois)


def wrong_digits(run: Callable[[Tensor], Tensor]) -> list[int]:
    """The digits whose gradient is wrong after `run(digits)`, on the first GPU, and a backward of the sum."""
    leaf = DIGITS.clone().requires_grad_()
    (right,) = torch.autograd.grad(F.adaptive_max_pool2d(leaf, 2).sum(), leaf)  # by torch's own operation
    pictures = DIGITS.cuda(0).requires_grad_()  # noqa: FL004 the notebook says where
    run(pictures).sum().backward()
    assert pictures.grad is not None
    found = pictures.grad.cpu()
    return [k for k in range(10) if not torch.equal(found[k], right[k])]


def ends(run: Callable[[Tensor], Tensor]) -> str:
    """How many gradients are wrong, or what the error says."""
    try:
        return f"{len(wrong_digits(run))} of 10 gradients are wrong"
    except RuntimeError as error:
        return last_line(error).partition(", but")[0]
