"""Return `x` on GPU number `k`, wherever it is."""

from collections.abc import Sequence
from random import Random

import torch
from torch import Tensor

from course.kit.learn.exercise import Case, Fresh
from course.kit.learn.puzzle import also, wrong
from course.lessons.nb00.cases import same_tensor

hints = (
    "`x.to(...)` takes a device.",
    "A device can be written as a name, `'cuda:1'`, or made from parts: `torch.device('cuda', 1)`.",
    "`return x.to(torch.device('cuda', k))`",
)


def on_gpu(x: Tensor, k: int) -> Tensor:
    """`x` on GPU number k: itself where it is there already, or else a copy."""
    return x.to(torch.device("cuda", k))


def cases(random: Random) -> Sequence[Case]:
    """Whole numbers, and two that are trained: their gradient has to find the way back."""
    places = [("cpu", 0), ("cpu", 1), ("cuda:1", 0), ("cuda:1", 1)]
    whole = [Fresh((torch.arange(random.randint(1, 5), device=place), k)) for place, k in places]
    trained = [
        Fresh((torch.ones(random.randint(1, 5), device=place, requires_grad=True), k)) for place, k in places[1:3]
    ]
    return [*whole, *trained]


agree = same_tensor


@wrong
def current_device(x, k):
    """this is what a function gives that sends everything to the *current* GPU, GPU 0 unless someone changed it, and
    does not ask `k`.

    Source: as in pytorch/pytorch issue 6933, 2018
    """
    return x.cuda()


@also(current_device)
def _(x, k):
    return x.to("cuda:0")


@wrong
def not_in_place(x, k):
    """this is `x` as it was. `x.to(...)` does not move `x`, it returns a new tensor: return that one, or write `x =
    x.to(...)`.
    """
    return x


@wrong
def cuts_the_graph(x, k):
    """this is what comes out when the numbers go to the GPU by a way that autograd does not know, such as `.data`,
    `.detach()` or `.tolist()`: nothing before this line would be trained any more.
    """
    return x.detach().to(k)
