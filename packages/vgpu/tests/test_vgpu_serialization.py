"""Files: written as on a GPU, read back to any device."""

import copy
import io
import pickle
import subprocess
import sys

import pytest
import torch

import vgpu


def saved(value: object) -> io.BytesIO:
    buffer = io.BytesIO()
    torch.save(value, buffer)
    buffer.seek(0)
    return buffer


@pytest.mark.parametrize(
    ("map_location", "device"),
    [
        (None, "cuda:1"),
        ("cpu", "cpu"),
        ("cuda:2", "cuda:2"),
        (torch.device("cuda:3"), "cuda:3"),
        ({"cuda:1": "cuda:0"}, "cuda:0"),
        (lambda storage, location: storage, "cpu"),
        (lambda storage, location: storage.cuda(2), "cuda:2"),
    ],
)
@pytest.mark.parametrize("weights_only", [True, False])
def test_map_location(gpus, map_location, device, weights_only):
    state = torch.nn.Linear(2, 3).cuda(1).state_dict()
    loaded = torch.load(saved(state), map_location=map_location, weights_only=weights_only)
    assert loaded["weight"].device == torch.device(device)
    assert torch.equal(loaded["weight"].cpu(), state["weight"].cpu())


def test_parameters_views_and_whole_modules(gpus):
    parameter = torch.nn.Parameter(torch.ones(2, device="cuda:1"))
    again = torch.load(saved(parameter), weights_only=True)
    assert isinstance(again, torch.nn.Parameter) and again.device == parameter.device and again.requires_grad
    x = torch.arange(6.0, device="cuda:2")
    first, second = torch.load(saved([x, x[2:4]]))
    first[2] = 9
    assert second.tolist() == [9, 3]
    module = torch.load(saved(torch.nn.Linear(2, 2).cuda(3)), weights_only=False)
    assert module(torch.ones(1, 2, device="cuda:3")).device == torch.device("cuda:3")


@pytest.mark.parametrize("again", [lambda x: torch.load(saved(x)), lambda x: pickle.loads(pickle.dumps(x)), copy.copy])
@pytest.mark.parametrize("make", [torch.nn.Parameter, torch.Tensor.detach])
def test_what_a_program_put_on_a_tensor_goes_along(gpus, make, again):
    x = make(torch.ones(2, device="cuda:1"))
    x.tensor_model_parallel = True
    found = again(x)
    assert (found.tensor_model_parallel, found.device, type(found)) == (True, x.device, type(x))
    assert isinstance(found, torch.nn.Parameter) == isinstance(x, torch.nn.Parameter) and found.tolist() == [1, 1]


def test_a_device_that_does_not_exist(gpus):
    file = saved(torch.ones(1, device="cuda:3"))
    vgpu.enable(2)
    with pytest.raises(RuntimeError, match=r"CUDA device 3 but torch.cuda.device_count\(\) is 2.*map_location"):
        torch.load(file)


def test_a_checkpoint_loads_where_there_are_no_gpus(gpus, tmp_path):
    path = tmp_path / "checkpoint.pt"
    torch.save({"weight": torch.ones(2, device="cuda:1")}, path)
    program = (
        "import sys, torch; t = torch.load(sys.argv[1], map_location='cpu', weights_only=True)['weight'];"
        "assert type(t) is torch.Tensor and t.tolist() == [1, 1]"
    )
    subprocess.run([sys.executable, "-c", program, str(path)], check=True, timeout=600)


def test_cpu_checkpoints_stay_cpu_checkpoints(gpus):
    assert torch.load(saved(torch.ones(2))).device.type == "cpu"
    assert torch.load(saved(torch.ones(2)), map_location="cuda:1").device == torch.device("cuda:1")
