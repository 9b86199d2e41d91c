"""A copy of `tensors`, the weights and buffers of a model by their names, for each of `devices`: a list of dicts, with
the tensors on that device. A gradient finds its way back from every copy to the weight that it was made of.
"""

from collections.abc import Mapping, Sequence
from random import Random

import torch
from torch import Tensor

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import also, wrong
from course.lessons.nb02.cases import same_outputs, same_values

hints = (
    "One dict for each device, with the same names in it.",
    "`tensor.to(device)` is a copy that autograd records, so `backward` brings the gradient back.",
    "`[{name: tensor.to(device) for name, tensor in tensors.items()} for device in devices]`",
)

Tensors = Mapping[str, Tensor]


def replicate(tensors: Tensors, devices: Sequence[torch.device]) -> list[dict[str, Tensor]]:
    return [{name: tensor.to(device) for name, tensor in tensors.items()} for device in devices]


def cases(random: Random) -> Sequence[Case]:
    """Weights that are trained, some that are not, and a buffer, on one of the GPUs."""
    made = torch.Generator().manual_seed(random.randrange(2**31))
    cases = []
    for count in (2, 1, *(random.randint(2, 5) for _ in range(4))):
        home = torch.device("cuda", random.randrange(2))
        tensors = {name: torch.rand(random.randint(1, 5), 3, generator=made).to(home) for name in ("weight", "mean")}
        tensors["weight"].requires_grad_()
        cases.append(Case((tensors, [torch.device("cuda", k % 2) for k in range(count)])))
    return cases


agree = same_outputs


def _cuts_the_graph(cases: Sequence[Case], given: Sequence[list[Tensors]]) -> bool:
    return all(same_values(copies, case.call(replicate)) for case, copies in zip(cases, given, strict=True))


@wrong(recognise=_cuts_the_graph)
def cuts_the_graph(tensors: Tensors, devices: Sequence[torch.device]) -> list[dict[str, Tensor]]:
    """the copies are right, and no gradient finds its way back from them to the weights, as after `deepcopy`, `detach`
    or `.data`: the model would not learn.

    Source: a copied model beside the trained one: EPFL-LCN/pub-illing2021-neurips issue 3, 2023
    """
    with torch.no_grad():
        return replicate(tensors, devices)


@wrong
def all_on_the_first(tensors: Tensors, devices: Sequence[torch.device]) -> list[dict[str, Tensor]]:
    """this is what comes of copies that stay on one GPU: all replicas would use the same."""
    return [dict(tensors) for _ in devices]


@also(all_on_the_first)
def on_the_first_of_them(tensors, devices):
    return replicate(tensors, [devices[0]] * len(devices))


@wrong
def a_list_for_each_name(tensors: Tensors, devices: Sequence[torch.device]) -> dict[str, list[Tensor]]:
    """this is a list of copies for each name. A replica wants a dict of its own: one for each device."""
    return {name: [tensor.to(device) for device in devices] for name, tensor in tensors.items()}
