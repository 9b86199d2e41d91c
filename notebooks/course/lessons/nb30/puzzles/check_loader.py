"""A test of `load(net, weights)`: it raises an AssertionError unless `load` does what exercise 30.1 asks for. `make`
makes a net with numbers of its own for each `seed`.
"""

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

import torch
from torch import Tensor, nn

from course.kit.learn.exercise import Case, Program, Trial
from course.kit.learn.puzzle import also, wrong
from course.lessons.nb30.cases import make_net, wrapped
from course.lessons.nb30.puzzles import load as loaders

hints = (
    "Three files: one that fits, the same with `module.` before every name, and one that lacks a tensor.",
    "The net has to have other numbers than the file, or nobody sees what was copied: `make(0)`, `make(1)`.",
    "For the third file: `load` has to raise, and `net.state_dict()` has to be what it was, cloned before the call.",
)

Loader = Callable[[nn.Module, Mapping[str, Tensor]], Any]


def check_loader(load: Loader, make: Callable[[int], nn.Module]) -> None:
    weights = make(1).state_dict()
    for file in (weights, wrapped(weights)):
        load(net := make(0), file)
        _assert_equal(net.state_dict(), weights)
    for lost in weights:
        net = make(0)
        before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
        try:
            load(net, {name: tensor for name, tensor in weights.items() if name != lost})
        except Exception:
            _assert_equal(net.state_dict(), before)
        else:
            raise AssertionError(f"a file without {lost} was loaded")


def _assert_equal(given: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> None:
    for name, tensor in expected.items():
        assert torch.equal(given[name], tensor), f"{name} differs"


def _on_a_copy(net, weights):
    loaders.load(make_net(7, net.head.in_features), weights)
    net.load_state_dict(loaders.bare(weights))


def _without_the_prefix(net, weights):
    if weights.keys() != net.state_dict().keys():
        raise KeyError("names differ")
    net.load_state_dict(weights)


def _compares_alone(net, weights):
    loaders.load(make_net(7, net.head.in_features), weights)


def cases(random: Random) -> Sequence[Case]:
    """Two right loaders and seven wrong ones."""
    programs = [
        Program("a loader that compares first", loaders.load),
        Program("a loader that tries a copy first", _on_a_copy),
        Program("a loader that uses `update`", loaders.update),
        Program("a loader with `strict=False`", loaders.hides_what_is_missing),
        Program("a loader that copies what fits, and then raises", loaders.copies_before_it_compares),
        Program("a loader that looks at parameters only", loaders.parameters_alone),
        Program("a loader that replaces `module.` everywhere", loaders.replaces_everywhere),
        Program("a loader that knows no prefix", _without_the_prefix),
        Program("a loader that compares and copies nothing", _compares_alone),
    ]
    return [Trial((program, make_net)) for program in [*programs, *random.sample(programs, len(programs))]]


@wrong
def a_file_that_fits(load: Loader, make: Any) -> None:
    """this is how a test ends that tries only files that fit. `update` and `strict=False` are right for those: what
    they hide is what a file lacks.
    """
    weights = make(1).state_dict()
    for file in (weights, wrapped(weights)):
        load(net := make(0), file)
        _assert_equal(net.state_dict(), weights)


@wrong
def the_error_alone(load: Loader, make: Any) -> None:
    """this is how a test ends that asks for the error, and does not look at the net afterwards. `load_state_dict`
    raises when it has copied whatever fits.
    """
    a_file_that_fits(load, make)
    try:
        load(make(0), {"embed.weight": make(1).state_dict()["embed.weight"]})
    except Exception:
        return
    raise AssertionError("a file without most layers was loaded")


@wrong
def looks_at_parameters(load: Loader, make: Any) -> None:
    """this is how a test ends that compares parameters. The running statistics are buffers, which only `state_dict()`
    and `buffers()` have, so a loader that leaves them out passes.
    """
    weights = make(1).state_dict()
    for file in (weights, wrapped(weights)):
        load(net := make(0), file)
        _assert_equal(dict(net.named_parameters()), dict(make(1).named_parameters()))
    net = make(0)
    try:
        load(net, {name: tensor for name, tensor in weights.items() if not name.startswith("head")})
    except Exception:
        _assert_equal(dict(net.named_parameters()), dict(make(0).named_parameters()))
    else:
        raise AssertionError("a file without the last layer was loaded")


@wrong
def no_prefix(load: Loader, make: Any) -> None:
    """this is how a test ends that tries no file of `DataParallel` or DDP. A loader that does not know the prefix, or
    that cuts it out of `submodule.` as well, passes.
    """
    weights = make(1).state_dict()
    load(net := make(0), weights)
    _assert_equal(net.state_dict(), weights)
    _refuses(load, make, weights)


@wrong
def the_same_numbers(load: Loader, make: Any) -> None:
    """this is how a test ends whose net and file have equal numbers. Whether `load` copies anything makes no difference
    then, so one that copies nothing passes. Take two seeds.
    """
    weights = make(0).state_dict()
    for file in (weights, wrapped(weights)):
        load(net := make(0), file)
        _assert_equal(net.state_dict(), weights)
    _refuses(load, make, weights)


@also(the_same_numbers)
def the_same_numbers_and_a_better_look(load: Loader, make: Any) -> None:
    weights = make(0).state_dict()
    for file in (weights, wrapped(weights)):
        load(net := make(0), file)
        _assert_equal(net.state_dict(), weights)
    _refuses(load, make, make(1).state_dict())


def _refuses(load: Loader, make: Any, weights: Mapping[str, Tensor]) -> None:
    net = make(0)
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    try:
        load(net, {name: tensor for name, tensor in weights.items() if not name.startswith("head")})
    except Exception:
        _assert_equal(net.state_dict(), before)
    else:
        raise AssertionError("a file without the last layer was loaded")


@wrong
def returns_its_finding(load: Loader, make: Any) -> bool:
    """this is how a test ends that no loader fails: one that returns a comparison, and one that looks at nothing but
    whether `load` raises for a file that fits bare.
    """
    weights = make(1).state_dict()
    load(net := make(0), weights)
    return torch.equal(net.state_dict()["head.bias"], weights["head.bias"])
