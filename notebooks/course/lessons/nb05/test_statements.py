"""Numbers and statements in the prose of notebook 05 that no output shows, computed and run again."""

import pytest
import torch
from told import says
from torch import nn
from torch.nn import parallel as torch_parallel

pytestmark = pytest.mark.virtual_gpus(2)


def test_a_replica_cannot_load_the_weights_of_its_model():
    model = nn.Linear(3, 1).cuda()
    replicas = torch_parallel.replicate(model, [0, 1])
    assert not replicas[1].state_dict()
    with pytest.raises(RuntimeError, match="Unexpected key"):
        replicas[1].load_state_dict(model.state_dict())
    replicas[1].weight = model.weight.detach().cuda(1)
    outputs = torch_parallel.parallel_apply(replicas, [[torch.ones(1, 3).cuda(k)] for k in (0, 1)], devices=[0, 1])
    torch_parallel.gather(outputs, 0).sum().backward()
    assert model.weight.grad.tolist() == [[1.0, 1.0, 1.0]]  # of replica 0 alone
    assert says("05", "`load_state_dict` complains of unexpected keys")
    assert says("05", "no gradient would arrive there from replica 1")


def test_fewer_lists_than_replicas():
    replicas, inputs = torch_parallel.replicate(nn.Linear(3, 1).cuda(), [0, 1]), [[torch.ones(1, 3).cuda()]]
    with pytest.raises(AssertionError):
        torch_parallel.parallel_apply(replicas, inputs, devices=[0, 1])
    with pytest.raises(AssertionError):
        torch_parallel.parallel_apply(replicas[: len(inputs)], inputs, devices=[0, 1])
    assert len(torch_parallel.parallel_apply(replicas[: len(inputs)], inputs, devices=[0, 1][: len(inputs)])) == 1
    assert says("05", "It raises an `AssertionError`, because there are two modules and one list of arguments.")
    assert says("05", "Today the devices have to be cut as well: `devices=device_ids[:len(inputs)]`.")


def test_a_resnet_50_has_161_parameters():
    from torchvision.models import resnet50

    with torch.device("meta"):
        assert len(list(resnet50().parameters())) == 161
    assert says("05", "(a ResNet-50 has 161 parameters)")


def test_the_first_replica_is_a_view_and_the_second_a_copy():
    model = nn.Linear(3, 1).cuda()
    first, second = torch_parallel.replicate(model, [0, 1])
    assert first.weight.data_ptr() == model.weight.data_ptr() != second.weight.data_ptr()
    assert says("05", "its weights are *views* of the model's own")
