"""Load `weights`, whose names may all begin with `module.`, into `net`; where not everything fits, raise, and leave
`net` as it was.
"""

from collections.abc import Mapping, Sequence
from random import Random

import torch
from torch import Tensor, nn

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import also, wrong
from course.lessons.nb30.cases import Load, make_net, same_load, wrapped

hints = (
    "Three steps: take the prefix off if *every* name has it; compare; and only then copy.",
    "Compare the two sets of names, and the shape of every tensor: `load_state_dict` looks at shapes while it copies.",
    "`if {n: t.shape for n, t in weights.items()} != {n: t.shape for n, t in net.state_dict().items()}: raise ...`",
)


def bare(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Without the prefix that all names share."""
    if all(name.startswith("module.") for name in weights):
        return {name.removeprefix("module."): tensor for name, tensor in weights.items()}
    return dict(weights)


def load(net: nn.Module, weights: Mapping[str, Tensor]) -> None:
    given, own = bare(weights), net.state_dict()
    if {name: tensor.shape for name, tensor in given.items()} != {name: tensor.shape for name, tensor in own.items()}:
        raise ValueError("nothing was loaded, because names or shapes differ")
    net.load_state_dict(given)


def cases(random: Random) -> Sequence[Case]:
    """A net and a file: whole, wrapped, with something missing, with something more, and with a shape that differs."""
    found = []
    for round_ in range(4):
        net, other = make_net(2 * round_, 5), make_net(2 * round_ + 1, 5).state_dict()
        lost = random.choice([name for name in other if name.startswith("head")])
        shorter = {name: tensor for name, tensor in other.items() if name != lost}
        parameters = {name: tensor for name, tensor in other.items() if name in dict(net.named_parameters())}
        files = [
            dict(other),
            wrapped(other),
            shorter,
            wrapped(shorter),
            parameters,
            {**other, "head.scale": torch.ones(3)},
            wrapped({**other, "module.bias": torch.ones(3)}),
            {**other, "head.bias": torch.ones(1)},  # `copy_` would spread it over all three
            wrapped(shorter) | {lost: other[lost]},  # no wrapper writes such names
        ]
        found += [Load((net, file)) for file in files]
    return found


agree = same_load


@wrong
def hides_what_is_missing(net, weights):
    """this is what a function gives that loads a file without a layer and raises nothing, as `strict=False` does,
    and `update`, which fills the file up with the net's own tensors. Then `<All keys matched successfully>` is true,
    and says nothing about the file.

    Source: post 004, an engineer's notes, 2021: model_dict.update(pretrained_dict)
    """
    net.load_state_dict(bare(weights), strict=False)


@also(hides_what_is_missing)
def strict_False_with_the_prefix(net, weights):
    net.load_state_dict(weights, strict=False)


@also(hides_what_is_missing)
def update(net, weights):
    own = net.state_dict()
    own.update(bare(weights))
    net.load_state_dict(own)


@wrong
def copies_before_it_compares(net, weights):
    """this is what a function gives that copies what fits and raises afterwards, as `load_state_dict` does. Then the
    net is neither as it was nor as it was saved.
    """
    net.load_state_dict(bare(weights))


@also(copies_before_it_compares)
def fits_or_raises(net, weights):
    net.load_state_dict(weights)


@wrong
def shapes_are_not_compared(net, weights):
    """names are compared here, and shapes are not. `copy_` spreads a tensor of one number over the whole bias, and
    `load_state_dict` raises when the other tensors have been copied already.
    """
    given, own = bare(weights), net.state_dict()
    if given.keys() != own.keys():
        raise ValueError("names differ")
    net.load_state_dict(given)


@also(shapes_are_not_compared)
def copies_by_hand(net, weights):
    given, own = bare(weights), net.state_dict()
    if given.keys() != own.keys():
        raise ValueError("names differ")
    for name, tensor in own.items():
        tensor.copy_(given[name])


@wrong
def replaces_everywhere(net, weights):
    """`replace` cuts wherever it finds the word, also inside of `submodule.`, so a file that fits is refused. Take the
    prefix off at the front, `removeprefix`, and only if all names have it.

    Source: huggingface/transformers pull request 35698, 2025
    """
    load(net, {name.replace("module.", ""): tensor for name, tensor in weights.items()})


@also(replaces_everywhere)
def strips_letters(net, weights):
    load(net, {name.lstrip("module."): tensor for name, tensor in weights.items()})


@wrong
def some_have_the_prefix(net, weights):
    """this is what a function gives that takes the prefix off wherever a name has it. A wrapper puts it before every
    name, so a file in which only some have it was written by something else.
    """
    load(net, {name.removeprefix("module."): tensor for name, tensor in weights.items()})


@wrong
def parameters_alone(net, weights):
    """this is what a function gives that looks at parameters only. The running means and variances are buffers: they
    stay as they were, and a net in evaluation computes with them.
    """
    given, own = bare(weights), dict(net.named_parameters())
    if not given.keys() >= own.keys() or any(given[name].shape != own[name].shape for name in own):
        raise ValueError("names or shapes differ")
    with torch.no_grad():
        for name, tensor in own.items():
            tensor.copy_(given[name])
