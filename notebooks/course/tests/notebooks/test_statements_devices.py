"""What the prose of notebooks 04 and 05 says and no output of theirs shows: run here, and held word for word."""

import threading

import pytest
import torch
from test_statements_dataparallel import says
from torch import nn
from torch.nn import parallel as torch_parallel

import vgpu
from course.lessons.nb04.puzzles.same_on_two_gpus import _RIGHT, _WRONG, same_on_two_gpus


@pytest.fixture(autouse=True)
def two_gpus():
    with vgpu.virtual_gpus(2):
        yield


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


def test_04_the_table_of_what_follows():
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


def test_04_a_new_tensor_on_self_device_meets_the_same_fate():
    class Net(nn.Linear):
        device = torch.device("cuda:0")

        def forward(self, x):
            return super().forward(x) + torch.zeros(1, device=self.device)

    with pytest.raises(RuntimeError, match="same device"):
        nn.DataParallel(Net(3, 1).cuda(), [0, 1])(torch.ones(4, 3))
    assert says("04", "The same happens with `torch.zeros(3, device=self.device)`.")


def test_04_the_first_of_the_parameters_of_a_replica():
    class Net(nn.Linear):
        def forward(self, x):
            return super().forward(x.to(next(self.parameters()).device))

    with pytest.raises(StopIteration):
        nn.DataParallel(Net(3, 1).cuda(), [0, 1])(torch.ones(4, 3))
    assert says("04", "so it lists none, and the line raises `StopIteration`")


def test_04_the_modules_of_the_first_exercise_are_what_its_text_says():
    x = torch.rand(4, 3, device="cuda")
    for kind in _RIGHT:
        same_on_two_gpus(kind([2.0, 3.0, 4.0]), x)
    for kind in _WRONG:
        assert kind([2.0, 3.0, 4.0])(x).shape == x.shape  # on one GPU
        with pytest.raises((RuntimeError, AssertionError)):
            same_on_two_gpus(kind([2.0, 3.0, 4.0]), x)
    assert (len(_RIGHT), len(_WRONG)) == (5, 7)
    assert says("04", "against five kinds of right modules and seven kinds of wrong ones")


def test_04_one_key_is_read_as_the_last_one_wrote_it():
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
    assert says("04", "all replicas write to it, and each reads what was written last before its turn")
    assert says("04", "The features of any other replica, on a different GPU.")


def test_04_batch_norm_keeps_the_statistics_of_the_first_gpu():
    norm, x = nn.BatchNorm1d(3, momentum=1.0).cuda(), torch.arange(30.0).view(10, 3).cuda()
    nn.DataParallel(norm, [0, 1])(x)
    torch.testing.assert_close(norm.running_mean, x[:5].mean(0))
    assert says("04", "The running statistics of BatchNorm are such buffers: they see the rows of the first GPU.")


def test_04_anchors_that_forward_moves_are_right():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.anchors = torch.ones(3).cuda()

        def forward(self, x):
            return x + self.anchors.to(x.device)

    x = torch.rand(4, 3).cuda()
    assert torch.equal(nn.DataParallel(Net(), [0, 1])(x), x + 1)
    assert says("04", "It is right: `forward` moves the anchors to the GPU of its input in each call.")


def test_05_a_replica_cannot_load_the_weights_of_its_model():
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


def test_05_fewer_lists_than_replicas():
    replicas, inputs = torch_parallel.replicate(nn.Linear(3, 1).cuda(), [0, 1]), [[torch.ones(1, 3).cuda()]]
    with pytest.raises(AssertionError):
        torch_parallel.parallel_apply(replicas, inputs, devices=[0, 1])
    with pytest.raises(AssertionError):
        torch_parallel.parallel_apply(replicas[: len(inputs)], inputs, devices=[0, 1])
    assert len(torch_parallel.parallel_apply(replicas[: len(inputs)], inputs, devices=[0, 1][: len(inputs)])) == 1
    assert says("05", "It raises an `AssertionError`, because there are two modules and one list of arguments.")
    assert says("05", "Today the devices have to be cut as well: `devices=device_ids[:len(inputs)]`.")


def test_05_a_resnet_50_has_161_parameters():
    from torchvision.models import resnet50

    with torch.device("meta"):
        assert len(list(resnet50().parameters())) == 161
    assert says("05", "(a ResNet-50 has 161 parameters)")


def test_05_the_first_replica_is_a_view_and_the_second_a_copy():
    model = nn.Linear(3, 1).cuda()
    first, second = torch_parallel.replicate(model, [0, 1])
    assert first.weight.data_ptr() == model.weight.data_ptr() != second.weight.data_ptr()
    assert says("05", "its weights are *views* of the model's own")
