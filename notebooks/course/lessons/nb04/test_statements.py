"""Numbers and statements in the prose of notebook 04 that no output shows, computed and run again."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from told import says
from torch import distributed, nn
from torch.distributed.fsdp import fully_shard
from torch.nn import parallel as torch_parallel
from torch.nn.parallel import DistributedDataParallel

import vgpu
from course.kit.ranks import ranks
from course.lessons.nb04.puzzles.same_on_two_gpus import _RIGHT, _WRONG, same_on_two_gpus
from frcnn_lite import parallel

pytestmark = pytest.mark.virtual_gpus(2)


def test_work_on_the_cpu_leaves_the_current_device():
    with vgpu.virtual_gpus(4), torch.cuda.device(2):
        np.sort(torch.ones(3, device="cuda").cpu().numpy())
        assert torch.cuda.current_device() == 2
    assert says("04", "if `cuda:2` is current, it still is after a computation in NumPy")


class KeepsSelf(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 1)
        self.run = lambda x: self.fc(x)

    def forward(self, x):
        return self.run(x)


def test_a_lambda_made_in_init_keeps_the_original_and_a_method_does_not():
    class Method(KeepsSelf):
        def forward(self, x):
            return self.run_layer(x)

        def run_layer(self, x):
            return self.fc(x)

    with pytest.raises(RuntimeError, match="same device"):
        nn.DataParallel(KeepsSelf().cuda(), [0, 1])(torch.ones(4, 3))
    assert len(nn.DataParallel(Method().cuda(), [0, 1])(torch.ones(4, 3))) == 4
    assert [found.name for found in parallel.check_devices(KeepsSelf().cuda())] == ["run"]
    assert says("04", "It keeps the `self` of the original, so the second replica calls a layer on `cuda:0`.")
    assert says("04", "`parallel.check_devices(module)` of this project lists what a module holds")


def test_backward_finds_its_device_by_itself():
    current = {}

    class Noted(nn.Linear):
        def forward(self, x):
            y, home = super().forward(x), x.get_device()
            y.register_hook(lambda gradient: current.update({home: torch.cuda.current_device()}))
            return y

    nn.DataParallel(Noted(3, 1).cuda(), [0, 1])(torch.ones(4, 3)).sum().backward()
    assert current == {0: 0, 1: 1}
    assert says("04", "autograd has a thread for each GPU and sets its current device")


def test_an_attribute_that_forward_assigns_is_lost_and_a_dict_is_shared():
    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.losses, self.loss = {}, None

        def forward(self, x):
            self.losses[str(x.device)] = self.loss = x.sum()
            return x

    with vgpu.virtual_gpus(2):
        net = Both()
        nn.DataParallel(net, [0, 1])(torch.ones(4, 3))
    assert net.loss is None and sorted(net.losses) == ["cuda:0", "cuda:1"]
    assert says("04", "an attribute that `forward` *assigns*, such as `self.loss = ...`, is lost")


class Holder(nn.Module):
    """A tensor held in each of the ways of the table, and a forward that says where the replica finds them."""

    def __init__(self):
        super().__init__()
        self.parameter = nn.Parameter(torch.ones(3))
        self.register_buffer("buffer", torch.ones(3))
        self.register_buffer("unsaved", torch.ones(3), persistent=False)
        self.plain, self.listed = torch.ones(3), [torch.ones(3)]

    def places(self):
        found = (self.parameter, self.buffer, self.unsaved, self.plain, self.listed[0])
        return [str(x.device) for x in found]


def test_the_table_of_what_follows():
    holder = Holder().cuda()
    assert holder.places() == ["cuda:0"] * 3 + ["cpu"] * 2
    assert list(holder.state_dict()) == ["parameter", "buffer"]
    holder.plain, holder.listed = holder.plain.cuda(), [holder.listed[0].cuda()]
    _, second = torch_parallel.replicate(holder, [0, 1])
    assert second.places() == ["cuda:1"] * 3 + ["cuda:0"] * 2 and second.plain is holder.plain
    for row in (
        "| parameter | yes | yes | yes |",
        "| buffer | yes | yes | yes |",
        "| buffer with `persistent=False` | yes | yes | no |",
        "| plain tensor, also in a list or dict | no | no | no |",
    ):
        assert says("04", row)


def test_a_new_tensor_on_self_device_meets_the_same_fate():
    class Net(nn.Linear):
        device = torch.device("cuda:0")

        def forward(self, x):
            return super().forward(x) + torch.zeros(1, device=self.device)

    with pytest.raises(RuntimeError, match="same device"):
        nn.DataParallel(Net(3, 1).cuda(), [0, 1])(torch.ones(4, 3))
    assert says("04", "The same happens with `torch.zeros(3, device=self.device)`.")


def test_the_first_of_the_parameters_of_a_replica():
    class Net(nn.Linear):
        def forward(self, x):
            return super().forward(x.to(next(self.parameters()).device))

    with pytest.raises(StopIteration):
        nn.DataParallel(Net(3, 1).cuda(), [0, 1])(torch.ones(4, 3))
    assert says("04", "so it lists none, and the line raises `StopIteration`")


def test_the_modules_of_the_first_exercise_are_right_and_wrong():
    x = torch.rand(4, 3, device="cuda")
    for kind in _RIGHT:
        same_on_two_gpus(kind([2.0, 3.0, 4.0]), x)
    for kind in _WRONG:
        assert kind([2.0, 3.0, 4.0])(x).shape == x.shape  # on one GPU
        with pytest.raises((RuntimeError, AssertionError)):
            same_on_two_gpus(kind([2.0, 3.0, 4.0]), x)


def test_one_key_is_read_as_the_last_one_wrote_it():
    class Remembers(nn.Module):
        def __init__(self):
            super().__init__()
            self.cache, self.all_written = {}, threading.Barrier(4)

        def forward(self, x):
            self.cache["features"] = x
            self.all_written.wait(timeout=30)
            return torch.tensor([self.cache["features"] is x], device=x.device)

    with vgpu.virtual_gpus(4):
        own = nn.DataParallel(Remembers())(torch.zeros(4, 1).cuda())
    assert own.sum() == 1
    assert says("04", "each reads what was written last before its turn")
    assert says("04", "The features of any other replica, on a different GPU")


def test_batch_norm_keeps_the_statistics_of_the_first_gpu():
    norm, x = nn.BatchNorm1d(3, momentum=1.0).cuda(), torch.arange(30.0).view(10, 3).cuda()
    nn.DataParallel(norm, [0, 1])(x)
    torch.testing.assert_close(norm.running_mean, x[:5].mean(0))
    assert says("04", "The running statistics of BatchNorm are such buffers: they see the rows of the first GPU.")


def test_anchors_that_forward_moves_are_right():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.anchors = torch.ones(3).cuda()

        def forward(self, x):
            return x + self.anchors.to(x.device)

    x = torch.rand(4, 3).cuda()
    assert torch.equal(nn.DataParallel(Net(), [0, 1])(x), x + 1)
    assert says("04", "It is right: `forward` moves the anchors to the GPU of its input in each call.")


class Whose(nn.Module):
    """What the last table of the notebook speaks of, noted in `forward`; `mine` is a number of each rank."""

    def __init__(self, mine):
        super().__init__()
        self.score = nn.Linear(4, 4)
        self.run = lambda x: self.score(x)
        self.plain = torch.full((3,), float(mine), device="cuda")
        self.register_buffer("mean", torch.full((3,), float(mine)))
        self.calls, self.seen = 0, []

    def forward(self, x):
        self.calls += 1
        self.seen.append(len(x))
        self.bare = torch.ones(1).cuda().get_device()
        self.first = next(self.parameters()).device
        return self.run(x)


def on_the_device_of_rank_0(net):
    try:
        net(torch.ones(2, 4, device="cuda:0"))
    except RuntimeError as error:
        return "same device" in str(error)
    return False


def whose(wrap):
    rank = distributed.get_rank()
    net = Whose(rank).cuda()
    wrapped = wrap(net)
    net.mean.fill_(rank)  # DDP has sent the buffers of rank 0 once, when it was made
    wrapped(torch.ones(3 + rank, 4, device="cuda")).sum().backward()
    with ThreadPoolExecutor(1) as pool:
        thread = pool.submit(lambda: torch.ones(1).cuda().get_device()).result()
    places = {net.bare, net.first.index, net.plain.get_device(), net.mean.get_device()}
    is_wrong = on_the_device_of_rank_0(nn.Linear(4, 4).cuda())
    return places, thread, net.plain[0].item(), net.mean.tolist(), net.calls, net.seen, is_wrong


@pytest.mark.parametrize(
    ("wrap", "buffers"), [(DistributedDataParallel, [0.0, 0.0]), (fully_shard, [0.0, 1.0])], ids=["DDP", "FSDP2"]
)
def test_the_table_of_what_survives_without_replicas(wrap, buffers):
    for rank, found in enumerate(ranks(2)(whose)(wrap)):
        assert found == ({rank}, 0, rank, [buffers[rank]] * 3, 1, [3 + rank], rank != 0)
    for row in (
        "| a stored `cuda:0` | wrong on all GPUs but one | wrong on all ranks but one | as DDP |",
        "| a bare `.cuda()` in `forward` | the replica's GPU | the rank's GPU, after `set_device` | as DDP |",
        "| a bare `.cuda()` in a new thread | `cuda:0` | `cuda:0`, on every rank | as DDP |",
        "| a plain tensor that `__init__` makes by `.cuda()` | stays on `cuda:0` "
        "| on the rank's GPU, and each rank has its own | as DDP |",
        "| a buffer | copied from GPU 0 in each call | rank 0's is sent to all before a training step "
        "| each rank has its own, whole |",
        "| an attribute that `forward` assigns | lost | each rank has its own | as DDP |",
        "| a list that `forward` changes | one for all | each rank has its own | as DDP |",
        "| a lambda that keeps `self` | the layer on `cuda:0` | right | right |",
        "| `next(self.parameters()).device` | raises | right | right |",
    ):
        assert says("04", row)


def test_the_table_under_data_parallel():
    net = Whose(0).cuda()
    net.run = net.score.forward  # the lambda and the first of the parameters have tests of their own
    first, second = torch_parallel.replicate(net, [0, 1])
    assert second.plain is first.plain is net.plain and second.seen is net.seen
    assert first.mean.data_ptr() == net.mean.data_ptr() and second.mean.get_device() == 1
    second.calls += 1
    assert net.calls == 0


def test_to_empty_leaves_a_plain_tensor_behind():
    with torch.device("meta"):
        net = nn.BatchNorm1d(3)
        net.plain = torch.ones(3)
    net.to_empty(device="cuda")
    assert net.weight.is_cuda and net.running_mean.is_cuda and net.plain.is_meta
    assert says("04", "gives a buffer its place and leaves a plain tensor behind")


def test_a_thread_of_rank_3_begins_with_the_first_gpu():
    with vgpu.virtual_gpus(4), torch.cuda.device(3), ThreadPoolExecutor(1) as pool:
        assert pool.submit(torch.cuda.current_device).result() == 0
    assert says("04", "`set_device` was called in the main thread, and a new thread begins with `cuda:0`")
