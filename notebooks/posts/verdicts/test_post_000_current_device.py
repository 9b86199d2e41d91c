"""Post 000, Faster R-CNN on several GPUs (about 2017): its lines on the current device and on running by hand, run."""

import copy
import runpy
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import parallel as torch_parallel
from torch.nn.parallel import replicate
from verdict import verdict

import vgpu

POSTS = Path(__file__).resolve().parents[1]
THREADS, LOOP = "04_whose_gpu_is_it", "05_a_loop_of_ones_own"


@pytest.fixture(autouse=True)
def four_gpus():
    with vgpu.virtual_gpus(4):
        yield


class Net(nn.Module):
    """Four parameters; takes an array and brings it to the current device, as the post's network does."""

    def __init__(self):
        super().__init__()
        self.hidden, self.score = nn.Linear(3, 4), nn.Linear(4, 1)
        self.calls = []

    def forward(self, x):
        self.calls.append(self.score.weight.get_device())
        return self.score(self.hidden(torch.as_tensor(x).cuda())).squeeze(1)


ARRAY = np.ones((2, 3), dtype=np.float32)


def device_of_worker(x):
    """The device that the post's worker makes current: that of the first tensor found in its input."""
    while not isinstance(x, torch.Tensor):
        x = x[0]
    with torch.cuda.device_of(x):
        return torch.cuda.current_device()


def in_a_thread(function, *args):
    """Result of `function`, or what it raised, in a new thread."""
    results = []

    def work():
        try:
            results.append(function(*args))
        except Exception as error:
            results.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return results[0]


@verdict(
    "000",
    "Faster R-CNN changes, parallel_apply",
    claim="parallel_apply takes the device from the input; here inputs come from the CPU, so it cannot.",
    ruling="right",
    because="With CPU tensors the worker stayed on device 0, with arrays the search for a Variable died in the thread. "
    "Today the answer is `devices=`, added in July 2017.",
)
def test_cpu_inputs_name_no_device():
    assert in_a_thread(device_of_worker, [torch.ones(2, 3).cuda(1)]) == 1
    assert in_a_thread(device_of_worker, [torch.ones(2, 3)]) == 0
    assert isinstance(in_a_thread(device_of_worker, [ARRAY]), IndexError)
    net = Net().cuda()
    with pytest.raises(RuntimeError, match="same device"):
        torch_parallel.parallel_apply(replicate(net, [0, 1]), [[ARRAY]] * 2)
    outputs = torch_parallel.parallel_apply(replicate(net, [0, 1]), [[ARRAY]] * 2, devices=[0, 1])
    assert [y.get_device() for y in outputs] == [0, 1]


@verdict(
    "000",
    "Faster R-CNN changes, `for param in module.parameters()`",
    claim="The worker takes its device from the module's parameters and runs the forward there.",
    ruling="incomplete",
    because="The idea was right then: until torch 1.4 a replica listed its parameters. As printed the "
    "forward stands inside the loop and runs once for each of them. Since torch 1.5 a replica lists "
    "none, and it never runs.",
)
def test_the_fix_runs_once_for_each_parameter_or_never():
    def fixed_worker(module):
        for param in module.parameters():
            with torch.cuda.device(param.get_device()):
                module(ARRAY)

    net = Net().cuda()
    full_copy = copy.deepcopy(net).cuda(1)
    fixed_worker(full_copy)
    assert full_copy.calls == [1, 1, 1, 1]
    for replica in replicate(net, [0, 1]):
        fixed_worker(replica)
    assert net.calls == []


@verdict(
    "000",
    "manual loop, `input.append`",
    claim="The argument list is im_info, gt_boxes, gt_ishard, dontcare_areas.",
    ruling="typo",
    because="A line is lost in the listing: forward begins with `im_data`. As printed every argument arrives "
    "as the one before it.",
)
def test_the_list_of_arguments_lacks_the_first():
    class Signature(nn.Module):
        def forward(self, im_data, im_info, gt_boxes=None, gt_ishard=None, dontcare_areas=None):
            return {"im_data": im_data, "im_info": im_info, "gt_boxes": gt_boxes, "dontcare_areas": dontcare_areas}

    names = ["im_info", "gt_boxes", "gt_ishard", "dontcare_areas"]
    inputs = [[torch.full((1,), float(k)) for k in range(len(names))]] * 2
    for seen in torch_parallel.parallel_apply([Signature(), Signature()], inputs, devices=[0, 1]):
        assert seen == {"im_data": 0, "im_info": 1, "gt_boxes": 2, "dontcare_areas": None}


@verdict(
    "000",
    "manual loop, one blob for each GPU",
    claim="parallel_apply takes a list with one argument list for each module.",
    ruling="right",
    because="Nothing is scattered: each replica gets its own list, whatever is in it.",
    notebook=LOOP,
    words="nothing is scattered",
)
def test_each_replica_gets_its_own_list():
    inputs = [["a", [1]], ["b", [1, 2]]]
    assert torch_parallel.parallel_apply([Echo(), Echo()], inputs, devices=[0, 1]) == [("a", [1]), ("b", [1, 2])]


class Echo(nn.Module):
    def forward(self, *args):
        return args


@verdict(
    "000",
    "manual loop, `output_device = [0]`",
    claim="A list with one device sets where the result goes.",
    ruling="typo",
    because="`0` was meant. The gather of 2017 entered the device that it was given (`torch/cuda/comm.py`), and a list "
    "cannot be entered, so the listing cannot have gathered as printed. Today a list counts as no device, which means "
    "the current one: [1] lands on cuda:0.",
    notebook=LOOP,
    words="gather(outputs, [1])",
)
def test_a_list_is_no_output_device():
    outputs = [torch.zeros(1).cuda(k) for k in (0, 1)]
    assert torch_parallel.gather(outputs, 0).get_device() == 0  # what was meant
    with pytest.raises(ValueError, match="specified index or an integer"):
        torch.cuda.set_device([0])  # as that gather did, before it made room for the result
    assert torch_parallel.gather(outputs, [1]).get_device() == 0
    with torch.cuda.device(3):
        assert torch_parallel.gather(outputs, [0]).get_device() == 3


@verdict(
    "000",
    "manual loop, `replicate` in each step",
    claim="The model is replicated inside the step.",
    ruling="right",
    because="Kept over a step of the optimizer, replica 0 has the new weights and the others the old ones; with "
    "gradients autograd refuses, since replica 0 is a view of what was changed.",
    notebook=LOOP,
    words="A replica lives for one step",
)
def test_replicas_are_for_one_step():
    net = nn.Linear(3, 1).cuda()
    with torch.no_grad():
        kept = replicate(net, [0, 1])
    trained = replicate(net, [0, 1])
    loss = sum(y.sum().cuda(0) for y in (replica(torch.ones(2, 3).cuda(k)) for k, replica in enumerate(trained)))
    loss.backward()
    torch.optim.SGD(net.parameters(), lr=0.1).step()
    assert torch.equal(kept[0].weight, net.weight)
    assert not torch.allclose(kept[1].weight.cpu(), net.weight.cpu())
    with pytest.raises(RuntimeError, match="modified inplace"):
        trained[0](torch.ones(2, 3).cuda(0))


@verdict(
    "000",
    "np_to_variable",
    claim="A bare `.cuda()` puts everything on GPU 0.",
    ruling="right",
    because="It did where the author met it: the workers of the `parallel_apply` that is quoted enter the device of "
    "their input, and these came from the CPU, so cuda:0 stayed current in both.",
)
def test_in_the_workers_of_2017_all_goes_to_gpu_0():
    quoted = runpy.run_path(str(POSTS / "000_parallel_apply.py"))["parallel_apply"]
    places = quoted([Bare(), Bare()], [[torch.from_numpy(ARRAY)]] * 2)
    assert places == ["cuda:0", "cuda:0"]


class Bare(nn.Module):
    """Says where a bare `.cuda()` puts its input."""

    def forward(self, x):
        return str(x.cuda().device)


@verdict(
    "000",
    "np_to_variable, after the change",
    claim="`.cuda(torch.cuda.current_device())` moves it from GPU 0 to the GPU in use.",
    ruling="wrong",
    because="It is the same line: a bare `.cuda()` means the current device, in every thread. What put everything on "
    "GPU 0 was the thread, which the changed worker of the guide repairs.",
)
def test_bare_cuda_is_the_current_device():
    def both():
        x = torch.from_numpy(ARRAY)
        return [str(x.cuda().device), str(x.cuda(torch.cuda.current_device()).device)]

    for gpu in range(4):
        with torch.cuda.device(gpu):
            assert both() == [f"cuda:{gpu}"] * 2
            assert in_a_thread(both) == ["cuda:0"] * 2


@verdict(
    "000",
    "layers that compute on the CPU",
    claim="After a computation on the CPU the current GPU id goes back to 0.",
    ruling="wrong",
    because="No computation changes it: set_device does, and a context that is entered or left. It belongs to the thread, and a new thread "
    "starts with 0.",
    notebook=THREADS,
    words="Work on the CPU changes nothing",
)
def test_the_current_device_belongs_to_the_thread():
    torch.cuda.set_device(2)
    try:
        np.sort(torch.ones(3, device="cuda").cpu().numpy())
        torch.ones(3) @ torch.ones(3)
        assert torch.cuda.current_device() == 2
        assert in_a_thread(torch.cuda.current_device) == 0
    finally:
        torch.cuda.set_device(0)


@verdict(
    "000",
    "proposal and target layers, `with torch.cuda.device(deviceid)`",
    claim="The device is asked of an input and entered before new tensors are made.",
    ruling="right",
    because="What is asked for is right in any thread and under any caller; `.to(x.device)` says the same in one word.",
    notebook=THREADS,
    words="*asked for* is right in all four",
)
def test_a_device_that_is_asked_for_is_right_anywhere():
    def layer(scores):
        boxes = scores.cpu().numpy() * 2
        with torch.cuda.device(scores.get_device()):
            entered = torch.from_numpy(boxes).cuda()
        return str(entered.device), str(torch.from_numpy(boxes).to(scores.device).device)

    scores = torch.ones(3).cuda(3)
    assert layer(scores) == in_a_thread(layer, scores) == ("cuda:3", "cuda:3")
