"""Numbers and statements in the prose of notebook 02 that no output shows, computed and run again."""

import copy
import random
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from told import says
from torch import nn
from torch.nn import parallel as torch_parallel

import vgpu
from course.kit.learn.by_key import find_exercise


def test_the_two_rules_of_a_replica():
    class Probe(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.kept, self.calls = nn.Linear(3, 1), [], 0
            self.register_buffer("count", torch.zeros(2))

    with vgpu.virtual_gpus(3):
        net = Probe().cuda()
        for gpu, replica in enumerate(torch_parallel.replicate(net, [0, 1, 2])):
            assert replica.kept is net.kept and vars(replica) is not vars(net)
            assert not list(replica.parameters()) and not isinstance(replica.fc.weight, nn.Parameter)
            for mine, its in ((replica.fc.weight, net.fc.weight), (replica.count, net.count)):
                assert mine.get_device() == gpu
                assert (mine.data_ptr() == its.data_ptr()) == (gpu == 0)
    assert says("02", "only weights, buffers and the modules that hold them are its own")
    assert says("02", "The weights of a replica are results of a copy and no `Parameter`s")


def test_gather_joins_as_torch_does():
    with vgpu.virtual_gpus(2):
        exercise = find_exercise("02.gather")
        for case in exercise.cases(random.Random(0)):
            assert exercise.agree(case.call(exercise.reference), torch_parallel.gather(*case.args))


def test_the_table_of_what_gather_takes():
    with vgpu.virtual_gpus(2), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        losses = torch_parallel.gather([torch.tensor(1.0).cuda(k) for k in (0, 1)], 0)
        assert losses.tolist() == [1.0, 1.0] and any("scalars" in str(each.message) for each in warned)
        rows = [torch.ones(2, 3).cuda(k) for k in (0, 1)]
        assert torch_parallel.gather([{"y": y} for y in rows], 0)["y"].shape == (4, 3)
        assert torch_parallel.gather([(y, y) for y in rows], 0)[1].shape == (4, 3)
        assert torch_parallel.gather([None, None], 0) is None
        for other in (1.0, np.ones(3)):
            with pytest.raises(TypeError):
                torch_parallel.gather([other, other], 0)
    for row in (
        "| a loss without a dimension | a row of losses, and a warning |",
        "| a number, an array | an error |",
    ):
        assert says("02", row)


def test_a_new_thread_starts_on_gpu_0():
    with vgpu.virtual_gpus(2), torch.cuda.device(1), ThreadPoolExecutor(1) as pool:
        assert pool.submit(torch.cuda.current_device).result() == 0
    assert says("02", "a new thread begins with `cuda:0`") and says("04", "a new thread starts with `cuda:0`")


def test_what_the_replicas_of_a_probe_raise():
    class AsksItself(nn.Linear):
        def forward(self, x):
            return super().forward(x.to(next(self.parameters()).device))

    with vgpu.virtual_gpus(4):
        with pytest.raises(StopIteration, match="Caught StopIteration in replica 0 on device 0"):
            nn.DataParallel(AsksItself(3, 1).cuda(), [0, 1])(torch.ones(4, 3))
        norm, x = nn.BatchNorm1d(3, momentum=1.0).cuda(), torch.arange(30.0).view(10, 3).cuda()
        nn.DataParallel(norm, [0, 1])(x)
        torch.testing.assert_close(norm.running_mean, x[:5].mean(0))
        with pytest.raises(ValueError, match="Expected more than 1 value per channel when training"):
            nn.DataParallel(norm)(x)  # 3, 3, 3 and 1 rows
    assert says("02", '"Caught StopIteration in replica 0 on device 0"')
    assert says("02", 'a GPU with a single row raises "Expected more than 1 value per channel when training"')
    assert says("02", "those that stay are of the first GPU's rows")


def test_what_is_copied_outside_of_autograd_trains_nothing():
    with vgpu.virtual_gpus(2):
        net = nn.Linear(3, 1).cuda()
        copies = [copy.deepcopy(net).to(f"cuda:{k}") for k in (0, 1)]
        outputs = torch_parallel.parallel_apply(copies, [torch.ones(2, 3).cuda(k) for k in (0, 1)], devices=[0, 1])
        torch_parallel.gather(outputs, 0).sum().backward()
        assert net.weight.grad is None
        outputs = torch_parallel.replicate(net, [0, 1])[1](torch.ones(2, 3).cuda(1)).data
        with pytest.raises(RuntimeError, match="element 0 of tensors does not require grad"):
            outputs.sum().backward()
        (outputs.sum().cuda(0) + net.weight.square().sum()).backward()
        torch.testing.assert_close(net.weight.grad, 2 * net.weight.detach())
    assert says("02", "`backward` leaves the gradients there, and the weights that the optimizer holds get none")
    assert says("02", "the gradient is that of the second part alone")


def test_the_prefix_of_a_file_is_one_word():
    with vgpu.virtual_gpus(2):
        state = nn.DataParallel(nn.Linear(3, 1).cuda(), [0, 1]).state_dict()
        assert [name.removeprefix("module.") for name in state] == ["weight", "bias"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            net = nn.DataParallel(nn.Linear(3, 1).cuda(), [0, 1], output_device=-1)
            assert net(torch.ones(4, 3)).device.type == "cpu"
    assert says("02", "*today* the only way to the CPU is `-1`")
