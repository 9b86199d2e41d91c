"""Post 000, Faster R-CNN on several GPUs (about 2017): its lines on DataParallel itself and on losses, run."""

import inspect
import threading
import warnings

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn import parallel as torch_parallel
from verdict import verdict

import vgpu
from course.kit.step_trace import trace_step
from frcnn_lite import parallel

CALLS, LOSSES = "02_dataparallel_in_four_calls", "03_a_loss_is_a_sum_and_a_count"


@pytest.fixture(autouse=True)
def four_gpus():
    with vgpu.virtual_gpus(4), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Was asked to gather along dimension 0")
        yield


class Reports(nn.Module):
    """Returns its rows, and notes thread and current device of each call."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def forward(self, x):
        self.calls.append((x.get_device(), torch.cuda.current_device(), threading.current_thread()))
        return x


@verdict(
    "000",
    "native interface",
    claim="`data_parallel(module, inputs, device_ids, output_device, dim, module_kwargs)`.",
    ruling="right",
    because="The signature is the same today, default for default.",
    notebook=CALLS,
    words="def data_parallel(module, batch, devices)",
)
def test_signature():
    parameters = inspect.signature(torch_parallel.data_parallel).parameters
    defaults = {name: parameter.default for name, parameter in parameters.items()}
    given = {"device_ids": None, "output_device": None, "dim": 0, "module_kwargs": None}
    assert list(defaults) == ["module", "inputs", *given]
    assert {name: defaults[name] for name in given} == given


@verdict(
    "000",
    "native interface, docstring",
    claim="`output_device`: -1 stands for the CPU; the default is device_ids[0].",
    ruling="right",
    because='-1 still works and warns; the "cpu" that the warning recommends is refused by data_parallel, and taken by '
    "gather only.",
    notebook=CALLS,
    words='output_device="cpu"',
)
def test_minus_one_is_the_cpu():
    net, x = nn.Linear(3, 2).cuda(), torch.randn(4, 3)
    assert torch_parallel.data_parallel(net, x, [0, 1]).device == torch.device("cuda:0")
    with pytest.warns(FutureWarning, match="-1 to represent CPU"):
        assert torch_parallel.data_parallel(net, x, [0, 1], output_device=-1).device == torch.device("cpu")
    with pytest.raises(ValueError, match="non cpu device"):
        torch_parallel.data_parallel(net, x, [0, 1], output_device="cpu")
    assert torch_parallel.gather([torch.zeros(1).cuda(k) for k in (0, 1)], "cpu").device == torch.device("cpu")


@verdict(
    "000",
    "source reading",
    claim="Inside, three functions are called: replicate, parallel_apply, gather.",
    ruling="incomplete",
    because="A fourth comes first, scatter; with one device none of replicate, parallel_apply and gather is called.",
    notebook=CALLS,
    words="`scatter` cuts the batch, by the rules of notebook 01. `replicate` copies the model.",
)
def test_there_are_four_calls(monkeypatch):
    called = []
    for name in ("scatter", "replicate", "parallel_apply", "gather"):
        original = getattr(nn.DataParallel, name)
        monkeypatch.setattr(nn.DataParallel, name, lambda *args, name=name, f=original: called.append(name) or f(*args))
    nn.DataParallel(nn.Linear(3, 2).cuda(), [0, 1])(torch.randn(4, 3))
    assert called == ["scatter", "replicate", "parallel_apply", "gather"]
    called.clear()
    nn.DataParallel(nn.Linear(3, 2).cuda(), [0])(torch.randn(4, 3))
    assert called == ["scatter"]


@verdict(
    "000",
    "source reading, comment on replicate",
    claim="replicate divides the model evenly over N devices.",
    ruling="incomplete",
    because="Every device holds all parameters and buffers, copied for this step; what is divided is the batch. The "
    "Chinese can be read as a division and as a spread to each of the N; the comment in the manual loop, that the "
    "model is set to two GPUs, shows that its author knew.",
    notebook=CALLS,
    words="in *every* step",
)
def test_replicate_copies_all_to_each():
    net = nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4)).cuda()
    dp = nn.DataParallel(net)
    with trace_step(dp) as trace:
        dp(torch.randn(8, 8))
    whole = sum(t.numel() * t.element_size() for t in [*net.parameters(), *net.buffers()])
    held = [sum(t.nbytes for t in trace.held if t.device == torch.device("cuda", k)) for k in range(4)]
    assert held == [whole] * 4
    assert [trace.bytes_copied_to(torch.device("cuda", k)) for k in range(4)] == [0] + [whole] * 3


@verdict(
    "000",
    "source reading, `self.device_ids[:len(inputs)]`",
    claim="As many replicas are made as there are argument lists.",
    ruling="right",
    because="Nine rows on four devices make three chunks, and three replicas.",
)
def test_as_many_replicas_as_chunks(monkeypatch):
    devices = []
    original = nn.DataParallel.replicate
    monkeypatch.setattr(
        nn.DataParallel, "replicate", lambda self, module, ids: devices.append(list(ids)) or original(self, module, ids)
    )
    nn.DataParallel(nn.Linear(3, 2).cuda())(torch.randn(9, 3))
    assert devices == [[0, 1, 2]]


@verdict(
    "000",
    "source reading, comment on gather",
    claim="gather brings all outputs together.",
    ruling="right",
    because="On the output device, in the order of the devices, and with their gradients.",
    notebook=CALLS,
    words="`gather`** joins the outputs",
)
def test_gather_keeps_order_and_gradient():
    x = torch.arange(10.0, device="cuda:0", requires_grad=True)
    y = nn.DataParallel(nn.Identity(), output_device=2)(x)
    assert y.device == torch.device("cuda:2") and torch.equal(y.cpu(), torch.arange(10.0))
    (gradient,) = torch.autograd.grad((y * y).sum(), x)
    assert torch.equal(gradient, 2 * x)


@verdict(
    "000",
    "parallel_apply",
    claim="Three steps: prepare the arguments, start a thread for each module, join the results.",
    ruling="right",
    because="Each replica runs in a thread of its own, its device being current there.",
    notebook=CALLS,
    words="runs each replica on its chunk, in a *thread*",
)
def test_a_thread_for_each_replica():
    net = Reports()
    nn.DataParallel(net)(torch.zeros(8, 1))
    assert sorted(device for device, _, _ in net.calls) == [0, 1, 2, 3]
    assert all(device == current for device, current, _ in net.calls)
    assert len({thread for _, _, thread in net.calls} - {threading.main_thread()}) == 4


@verdict(
    "000",
    "parallel_apply, fast track",
    claim="A single module is called directly, without a thread.",
    ruling="right",
    because="Still so, on the caller's own thread.",
)
def test_one_module_runs_without_threads():
    net = Reports()
    torch_parallel.parallel_apply([net], [(torch.zeros(2, 1).cuda(1),)], devices=[1])
    assert net.calls == [(1, 1, threading.current_thread())]


@verdict(
    "000",
    "parallel_apply, `results[i]`",
    claim="Results are kept by number, under a lock, and returned in the order of the devices.",
    ruling="right",
    because="The replica that is last to finish is still the first in the list.",
    notebook=CALLS,
    words="is that of the GPUs and not that of arrival",
)
def test_results_come_in_order_of_the_devices():
    last_is_done = threading.Event()

    class Waits(nn.Module):
        def forward(self, x):
            if x.get_device() == 0:
                assert last_is_done.wait(timeout=30)
            elif x.get_device() == 3:
                last_is_done.set()
            return x

    rows = nn.DataParallel(Waits())(torch.arange(4.0))
    assert rows.tolist() == [0, 1, 2, 3]


@verdict(
    "000",
    "parallel_apply, `raise output`",
    claim="An exception in a worker is stored and raised in the caller's thread.",
    ruling="right then",
    because="Today it is wrapped, since what Python 2 raised had lost the worker's traceback; the message now carries "
    "it, with replica and device. Of several the first by number is raised, then and now.",
    notebook=CALLS,
    words="Caught ValueError in replica 0 on device 0",
)
def test_exceptions_carry_the_workers_traceback():
    class Breaks(nn.Module):
        def forward(self, x):
            raise ValueError(f"bad rows on {x.device}")

    with pytest.raises(ValueError) as caught:
        nn.DataParallel(Breaks())(torch.zeros(8, 1))
    message = str(caught.value)
    assert message.startswith("Caught ValueError in replica 0 on device 0.")
    assert "Original Traceback" in message and "bad rows on cuda:0" in message


@verdict(
    "000",
    "parallel_apply, `device_of(var_input)`",
    claim="The current device of a worker is that of the first Variable found in its input.",
    ruling="right then",
    because="Today it is the one in `devices`, which DataParallel passes; left out, it is the caller's current device, "
    "wherever the input lies.",
)
def test_the_device_of_a_worker_is_the_one_it_is_given():
    nets, inputs = [Reports(), Reports()], [(torch.zeros(1, 1).cuda(k),) for k in (3, 1)]
    torch_parallel.parallel_apply(nets, inputs, devices=[3, 1])
    torch_parallel.parallel_apply(nets, inputs)
    seen = [[(device, current) for device, current, _ in net.calls] for net in nets]
    assert seen == [[(3, 3), (3, 0)], [(1, 1), (1, 0)]]


class Loss(nn.Module):
    """The post's regression loss: a sum over foreground boxes, divided by their number on this device."""

    def forward(self, deltas, foreground):
        losses = F.smooth_l1_loss(deltas * foreground, foreground, reduction="none")
        return losses.sum() / (foreground.sum() + 1e-4)


class Parts(nn.Module):
    def forward(self, deltas, foreground):
        losses = F.smooth_l1_loss(deltas * foreground, foreground, reduction="none")
        return losses.sum(dim=1), foreground.sum(dim=1)


@verdict(
    "000",
    "forward",
    claim="forward is changed to return the loss, so that it can be gathered.",
    ruling="right",
    because="One 0-d loss from each replica is gathered into a vector, today with a warning, and its mean or sum can "
    "call backward.",
    notebook=LOSSES,
    words="vector of them and warns",
)
def test_losses_are_gathered_into_a_vector():
    deltas = torch.randn(4, 6, device="cuda:0", requires_grad=True)
    losses = nn.DataParallel(Loss())(deltas, torch.ones(4, 6))
    assert losses.shape == (4,)
    losses.sum().backward()
    assert deltas.grad is not None and deltas.grad.abs().sum(dim=1).gt(0).all()


@verdict(
    "000",
    "build_loss, twice",
    claim="The box loss is divided by `fg_cnt + 1e-4`, the foreground count that the replica sees.",
    ruling="incomplete",
    because="Then the loss depends on how images are spread over devices. Sums and counts, divided once by the count "
    "of all, do not; with one image on each device the post's loss is the mean of the images' own losses.",
    notebook=LOSSES,
    words="its mean counts as much as a mean of three rows",
)
def test_local_counts_depend_on_the_split():
    generator = torch.Generator().manual_seed(0)
    deltas = torch.randn(4, 6, generator=generator, dtype=torch.float64)
    foreground = (torch.arange(6) < torch.tensor([1, 6, 0, 3])[:, None]).double()
    local, whole = [], []
    for gpus in (1, 2, 4):
        local.append(nn.DataParallel(Loss(), list(range(gpus)))(deltas.cuda(), foreground).mean().item())
        whole.append(parallel.reduce_loss(*nn.DataParallel(Parts(), list(range(gpus)))(deltas, foreground)).item())
    assert whole[1:] == pytest.approx([whole[0]] * 2, rel=1e-10)
    assert abs(local[0] - local[2]) > 0.01 and abs(local[0] - local[1]) > 0.01
    images = [Loss()(d, f).item() for d, f in zip(deltas, foreground, strict=True)]
    assert local[2] == pytest.approx(sum(images) / 4, rel=1e-10)
