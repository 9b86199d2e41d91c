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
    assert says("05", "`replicas[:len(inputs)]` and `devices=[0, 1][:len(inputs)]`")


def test_the_first_replica_is_a_view_and_the_second_a_copy():
    model = nn.Linear(3, 1).cuda()
    first, second = torch_parallel.replicate(model, [0, 1])
    assert first.weight.data_ptr() == model.weight.data_ptr() != second.weight.data_ptr()
    assert says("05", "its weights are *views* of the model's own")


def test_autograd_does_not_see_weights_that_change_through_data():
    """Both replicas are kept, and the loop runs: replica 0 follows the model, and replica 1 does not."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).cuda()
    replicas = torch_parallel.replicate(model, [0, 1])
    old = replicas[1][0].weight.clone()
    for _ in range(3):
        outputs = torch_parallel.parallel_apply(replicas, [[torch.ones(1, 3).cuda(k)] for k in (0, 1)], devices=[0, 1])
        torch_parallel.gather(outputs, 0).sum().backward()
        for weight in model.parameters():
            weight.data -= 0.1 * weight.grad
            weight.grad = None
    assert torch.equal(replicas[0][0].weight, model[0].weight)
    assert torch.equal(replicas[1][0].weight, old)
    assert not torch.allclose(old.cpu(), model[0].weight.cpu())
    assert says("05", "because autograd does not see that change")


def test_a_list_is_no_device_for_gather():
    outputs = [torch.zeros(1).cuda(k) for k in (0, 1)]
    assert torch_parallel.gather(outputs, [1]).get_device() == 0
    with torch.cuda.device(1):
        assert torch_parallel.gather(outputs, [0]).get_device() == 1
    assert says("05", "`gather(outputs, [1])` puts the result on the current device")
