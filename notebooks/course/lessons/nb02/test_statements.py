"""Numbers and statements in the prose of notebook 02 that no output shows, computed and run again."""

import random
import threading

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
    assert says(
        "02",
        "the dict in which Python keeps the attributes of an object, is a copy; the values in it are the originals",
    )
    assert says("02", "Weights and buffers are the exception, and so are the submodules that hold them.") and says(
        "02", "Only on the first GPU"
    )
    assert not says("02", "That one sentence predicts")


def test_gather_joins_as_torch_does():
    with vgpu.virtual_gpus(2):
        exercise = find_exercise("02.gather")
        for case in exercise.cases(random.Random(0)):
            assert exercise.agree(case.call(exercise.reference), torch_parallel.gather(*case.args))


def test_a_new_thread_starts_on_gpu_0_and_records_gradients():
    found = []
    with vgpu.virtual_gpus(2), torch.cuda.device(1), torch.no_grad():
        thread = threading.Thread(
            target=lambda: found.append((torch.cuda.current_device(), torch.is_grad_enabled())),
        )
        thread.start()
        thread.join()
    assert found == [(0, True)]
    assert says("02", "two things are set first: the replica's own GPU, and whether gradients are recorded")
    assert says("04", "a new thread starts with `cuda:0`")
