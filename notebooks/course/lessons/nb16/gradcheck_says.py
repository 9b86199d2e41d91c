"""The verdict of `torch.autograd.gradcheck`, in one of three sentences."""

from collections.abc import Callable

from torch import Tensor
from torch.autograd import gradcheck
from torch.autograd.gradcheck import GradcheckError

RIGHT, WRONG, UNSTEADY = "the gradient is right", "the gradient is wrong", "two runs of backward differ"


def gradcheck_says(function: Callable[..., Tensor], inputs: tuple[Tensor, ...]) -> str:
    """Of `function(*inputs)`, in float64: `RIGHT`, `WRONG`, or `UNSTEADY` where backward gives two results."""
    try:
        gradcheck(function, inputs)
    except GradcheckError as error:
        return UNSTEADY if "not reentrant" in str(error) else WRONG
    return RIGHT
