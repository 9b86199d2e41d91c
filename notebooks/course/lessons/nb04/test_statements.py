"""Numbers and statements in the prose of notebook 04 that no output shows, computed and run again."""

import functools
import threading
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from told import cell, says
from torch import nn
from torch.nn import parallel as torch_parallel

import vgpu
from course.kit import figures
from course.lessons.nb04.puzzles.same_on_two_gpus import _RIGHT, _WRONG, same_on_two_gpus

pytestmark = pytest.mark.virtual_gpus(2)


def test_two_workers_are_inside_at_once(monkeypatch):
    """The cells are run with a log that keeps the order: nobody leaves before both have done their work inside."""
    order, lock = [], threading.Lock()

    class Ordered(figures.DeviceLog):
        def note(self, name, event, home=None):
            with lock:
                order.append((name, event))
            super().note(name, event, home)

    monkeypatch.setattr(figures, "DeviceLog", Ordered)
    cells = compile(cell("04", "def work(name, device)") + "\n" + cell("04", "target=work"), "04", "exec")
    with vgpu.virtual_gpus(4):
        for _ in range(20):
            order.clear()
            names = {"figures": figures, "torch": torch, "threading": threading, "np": np}
            exec(cells, {**names, "learn": SimpleNamespace(reveal=lambda key, outcome: None)})
            workers = [event for name, event in order if name.startswith("worker")]
            assert workers[-2:] == ["after with"] * 2 and workers.count("inside with") == 2
    assert says("04", "Two workers are inside their `with` at once")


def test_work_on_the_cpu_leaves_the_current_device():
    with vgpu.virtual_gpus(4), torch.cuda.device(2):
        np.sort(torch.ones(3, device="cuda").cpu().numpy())
        assert torch.cuda.current_device() == 2
    assert says("04", "if `cuda:2` is current, it still is after a computation in NumPy")


def test_a_partial_made_in_init_keeps_the_original():
    def run_layer(layer, x):
        return layer(x)

    class Kept(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(3, 1)
            self.run = functools.partial(run_layer, self.fc)

        def forward(self, x):
            return self.run(x)

    class Handed(Kept):
        def forward(self, x):
            return run_layer(self.fc, x)

    with vgpu.virtual_gpus(2):
        with pytest.raises(RuntimeError, match="same device"):
            nn.DataParallel(Kept().cuda(), [0, 1])(torch.ones(4, 3))
        assert len(nn.DataParallel(Handed().cuda(), [0, 1])(torch.ones(4, 3))) == 4
    assert says("04", "a plain function to which `forward` hands `self.fc` *in each call*")


def test_the_error_shows_the_lambda_and_comes_out_of_the_layer():
    class KeepsSelf(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(3, 1)
            self.run = lambda x: self.fc(x)

        def forward(self, x):
            return self.run(x)

    with vgpu.virtual_gpus(2), pytest.raises(RuntimeError) as caught:
        nn.DataParallel(KeepsSelf().cuda(), [0, 1])(torch.ones(4, 3))
    lines = str(caught.value).splitlines()
    kept = next(k for k, line in enumerate(lines) if "in <lambda>" in line)
    layer = next(k for k, line in enumerate(lines) if "linear.py" in line)
    assert 0 < kept < layer < len(lines)
    assert says("04", "the error comes out of the layer; the lambda is one line in the middle of a long traceback")


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
    assert says("04", "An attribute that `forward` *assigns*, such as `self.loss = ...`, is not shared but lost")


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


def test_the_modules_of_the_first_exercise_are_what_its_text_says():
    x = torch.rand(4, 3, device="cuda")
    for kind in _RIGHT:
        same_on_two_gpus(kind([2.0, 3.0, 4.0]), x)
    for kind in _WRONG:
        assert kind([2.0, 3.0, 4.0])(x).shape == x.shape  # on one GPU
        with pytest.raises((RuntimeError, AssertionError)):
            same_on_two_gpus(kind([2.0, 3.0, 4.0]), x)
    assert (len(_RIGHT), len(_WRONG)) == (5, 7)
    assert says("04", "against five kinds of right modules and seven kinds of wrong ones")


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
    assert says("04", "all replicas write to it, and each reads what was written last before its turn")
    assert says("04", "The features of any other replica, on a different GPU.")


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
