"""Statements in the prose of notebook 26 that no output shows, run again."""

import torch
from told import says
from torch import nn

from frcnn_lite import layers


def test_the_index_that_goes_round_is_right_for_groups_of_one():
    right = [sizes for sizes in ((1, 1, 1, 1), (1, 1, 0, 0), (2, 1, 0, 0), (3, 2, 3, 2)) if is_right(sizes)]
    assert right == [(1, 1, 1, 1), (1, 1, 0, 0)]
    assert says("26", "With (1, 1, 1, 1), or with fewer classes than that")


def is_right(sizes):
    return layers.class_to_group(sizes).tolist() == [c % 4 for c in range(sum(sizes))]


def test_a_bias_with_as_many_classes_as_outputs_is_added_transposed():
    assert (torch.zeros(2, 4, 4) + torch.arange(16.0).view(4, 4)).shape == (2, 4, 4)
    assert says("26", "with as many classes as outputs it would be added transposed, without an error")


def test_the_index_is_not_in_the_state_dict():
    assert set(layers.GroupLinear(2, (1, 2), 3, 4).state_dict()) == {"weight", "bias"}
    assert says("26", "so it is not in the state dict")


def test_what_backward_keeps():
    sizes, kept = (7,) * 8 + (6,) * 4, {}
    for kind in (layers.GroupLinear, layers.FastGroupLinear):
        layer, found = kind(12, sizes, 512, 64), {}
        x = torch.randn(32, 12, 512, requires_grad=True)

        def keep(tensor, layer=layer, found=found):
            storage = tensor.untyped_storage()
            if storage.data_ptr() != layer.weight.untyped_storage().data_ptr() and tensor.is_floating_point():
                found[storage.data_ptr()] = storage.nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            out = layer(x)  # while this lives, so do the storages
        kept[kind.__name__], _ = sum(found.values()), out
    assert kept["GroupLinear"] * 12 == kept["FastGroupLinear"] * 80
    assert says("26", "backward keeps that: 80 / 12 times as much as the input")


def test_a_rule_for_whole_tensors_is_not_the_same_for_a_stack():
    single, stacked = [torch.full((2,), g) for g in (0.1, 10.0)], torch.tensor([[0.1, 0.1], [10.0, 10.0]])
    by_tensor = torch.stack([g / max(1.0, g.norm().item()) for g in single])
    assert not torch.allclose(by_tensor, stacked / max(1.0, stacked.norm().item()))
    assert says("26", "clipping by the norm of each parameter")


def test_size_1_of_a_linear_is_the_fan_in():
    assert nn.Linear(7, 3).weight.size(1) == 7
    assert says("26", "`nn.Linear` keeps (out, in), where size 1 happens to be the fan-in.")
