import pytest
import torch
from torch import nn

from frcnn_lite.recipes.param_groups import param_groups


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3))
        self.backbone2 = nn.Linear(4, 4)
        self.head = nn.Linear(4, 2)


def by_name(groups):
    return {group["name"]: (group["lr"], len(group["params"])) for group in groups}


def test_every_parameter_is_in_exactly_one_group():
    model = Net()
    groups = param_groups(model, {"backbone": 0.1, "backbone2": 1.0, "head": 2.0}, lr=0.5)
    assert {group["name"]: group["lr"] for group in groups} == {"backbone": 0.05, "backbone2": 0.5, "head": 1.0}
    given = [parameter for group in groups for parameter in group["params"]]
    assert len(given) == len(set(given)) and set(given) == set(model.parameters())


def test_a_pattern_is_a_whole_name_and_no_beginning_of_one():
    groups = param_groups(Net(), {"backbone": 0.1, "backbone2": 1.0, "head": 1.0}, lr=1.0)
    assert by_name(groups) == {"backbone": (0.1, 4), "backbone2": (1.0, 2), "head": (1.0, 2)}


def test_wildcards_and_single_parameters():
    groups = param_groups(Net(), {"backbone.?.weight": 0.1, "*.bias": 0.0, "head.weight": 2.0}, lr=1.0, rest=1.0)
    assert by_name(groups) == {"backbone.?.weight": (0.1, 2), "*.bias": (0, 4), "head.weight": (2, 1), "rest": (1, 1)}


def test_an_empty_rest_makes_no_group():
    assert "rest" not in by_name(param_groups(Net(), {"*": 1.0}, lr=1.0, rest=1.0))


def test_everything_wrong_is_named_at_once():
    with pytest.raises(ValueError, match="exactly one group") as caught:
        param_groups(Net(), {"backbone": 1.0, "*.bias": 1.0, "neck": 1.0}, lr=1.0)
    message = str(caught.value)
    assert "pattern 'neck' matches no parameter" in message
    assert "backbone.0.bias is matched by ['backbone', '*.bias']" in message
    assert "head.weight is matched by no pattern" in message
    assert "backbone.0.weight" not in message


def test_a_shared_parameter_is_known_by_all_its_names():
    net = Net()
    net.head.weight = nn.Parameter(torch.zeros(4, 4))
    net.backbone2.weight = net.head.weight
    with pytest.raises(ValueError, match=r"backbone2.weight = head.weight is matched by \['backbone2', 'head'\]"):
        param_groups(net, {"backbone": 1.0, "backbone2": 1.0, "head": 1.0}, lr=1.0)
    groups = param_groups(net, {"backbone": 1.0, "backbone2": 1.0, "head.bias": 1.0}, lr=1.0)
    assert by_name(groups)["backbone2"] == (1.0, 2)


@pytest.mark.parametrize(
    ("multipliers", "lr", "words"),
    [
        ({}, 1.0, "`multipliers` is empty"),
        ({"*": -1.0}, 1.0, r"`multipliers\['\*'\]` must be a finite number"),
        ({"*": 1.0}, float("nan"), "`lr` must be a finite number"),
        ({"rest": 1.0}, 1.0, "rest=..."),
    ],
)
def test_bad_numbers(multipliers, lr, words):
    with pytest.raises(ValueError, match=words):
        param_groups(Net(), multipliers, lr=lr)


def test_not_a_module():
    with pytest.raises(TypeError, match=r"torch\.nn\.Module, got list"):
        param_groups([], {"*": 1.0}, lr=1.0)


def test_the_groups_train_at_their_own_rates():
    net = Net()
    before = {name: parameter.detach().clone() for name, parameter in net.named_parameters()}
    optimizer = torch.optim.SGD(param_groups(net, {"backbone": 0.0, "backbone2": 0.5, "head": 1.0}, lr=0.1))
    for parameter in net.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    moved = {name: (before[name] - parameter).max().item() for name, parameter in net.named_parameters()}
    assert moved["backbone.0.weight"] == 0
    assert moved["backbone2.weight"] == pytest.approx(0.05) and moved["head.bias"] == pytest.approx(0.1)
