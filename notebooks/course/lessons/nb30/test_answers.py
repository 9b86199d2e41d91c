"""Answers to the exercises of notebook 30: right ones in an unusual form, and wrong ones that are nearly right."""

import copy

import torch
from answers import all_right, all_wrong

from course.lessons.nb30.puzzles.load import bare
from frcnn_lite.export.weights import load_weights_into


def on_a_copy(net, weights):
    copy.deepcopy(net).load_state_dict(bare(weights))
    net.load_state_dict(bare(weights))


def with_a_backup(net, weights):
    before = copy.deepcopy(net.state_dict())
    try:
        net.load_state_dict(bare(weights))
    except RuntimeError:
        net.load_state_dict(before)
        raise


def by_assertion(net, weights):
    given, own = bare(weights), net.state_dict()
    assert given.keys() == own.keys() and all(given[name].shape == own[name].shape for name in own)
    for name in own:
        own[name].copy_(given[name])


def in_strict_order(net, weights):
    given = bare(weights)
    if [(n, t.shape) for n, t in given.items()] != [(n, t.shape) for n, t in net.state_dict().items()]:
        raise ValueError
    net.load_state_dict(given)


def missing_alone(net, weights):
    given = bare(weights)
    if net.state_dict().keys() - given.keys():
        raise KeyError
    net.load_state_dict(given, strict=False)


def first_name_decides(net, weights):
    first = next(iter(weights))
    given = {name[7:]: tensor for name, tensor in weights.items()} if first.startswith("module.") else dict(weights)
    on_a_copy(net, given)


def library_as_oracle(load, make):
    for wrap in ("", "module."):
        for lost in (None, "head.bias", "submodule.running_var", "embed.weight"):
            weights = {wrap + n: t for n, t in make(1).state_dict().items() if n != lost}
            mine, its = make(0), make(0)
            ended = []
            for loader, net in ((load, mine), (load_weights_into, its)):
                try:
                    loader(net, weights)
                    ended.append(True)
                except Exception:
                    ended.append(False)
            assert ended[0] == ended[1]
            assert all(map(torch.equal, mine.state_dict().values(), its.state_dict().values()))


RIGHT = [
    ("30.load", on_a_copy),
    ("30.load", with_a_backup),
    ("30.load", by_assertion),
    ("30.load", in_strict_order),
    ("30.load", load_weights_into),
    ("30.load", first_name_decides),
    ("30.check_loader", library_as_oracle),
]
WRONG = [  # with the name of the mistake, None where it has none
    ("30.load", missing_alone, None),
    ("30.load", lambda net, weights: None, None),
    ("30.check_loader", lambda load, make: load(make(0), make(1).state_dict()), "returns its finding"),
]

test_right_in_an_unusual_form = all_right(RIGHT)
test_nearly_right_is_wrong = all_wrong(WRONG)
