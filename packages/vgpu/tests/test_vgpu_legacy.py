"""`x.new`, `x.type` and `torch.cuda.FloatTensor`; integers as devices; compiled functions."""

import subprocess
import sys
import warnings

import pytest
import torch

import vgpu

ONE = torch.device("cuda:1")


@pytest.mark.parametrize(
    ("arguments", "shape"),
    [((), (0,)), ((2,), (2,)), ((2, 3), (2, 3)), ((torch.Size([2, 1]),), (2, 1)), (([1, 2],), (2,))],
)
def test_new_stays_where_the_tensor_is(gpus, arguments, shape):
    made = torch.ones(3, dtype=torch.float64, device=ONE).new(*arguments)
    assert made.device == ONE and made.shape == shape and made.dtype is torch.float64


def test_new_refuses_another_kind_of_device(gpus):
    assert torch.ones(1).new(2).device.type == "cpu"
    assert torch.ones(1, device=ONE).new(2, device="cuda:3").device == torch.device("cuda:3")
    for x, device in ((torch.ones(1), "cuda"), (torch.ones(1, device=ONE), "cpu")):
        with pytest.raises(RuntimeError, match=f"legacy constructor expects device type: {x.device.type} but"):
            x.new(2, device=device)


def test_types_of_torch_cuda(gpus):
    x = torch.cuda.FloatTensor([1.0, 2.0])
    assert x.device == torch.device("cuda:0") and x.tolist() == [1, 2]
    assert torch.cuda.LongTensor(2, 3).shape == (2, 3)
    assert isinstance(x, torch.cuda.FloatTensor) and not isinstance(x, torch.cuda.LongTensor)
    assert not isinstance(x.cpu(), torch.cuda.FloatTensor)
    assert x.type(torch.cuda.DoubleTensor).type() == "torch.cuda.DoubleTensor"
    assert x.type("torch.FloatTensor").type() == x.type(torch.FloatTensor).type() == "torch.FloatTensor"
    assert x.to(1).type(torch.float16).device == ONE


def test_types_of_the_cpu_have_no_tensors_of_gpus(gpus):
    x, host = torch.ones(2, device=ONE), torch.ones(2)
    assert isinstance(host, torch.FloatTensor) and not isinstance(host, (torch.DoubleTensor, torch.cuda.FloatTensor))
    assert isinstance(x, torch.cuda.FloatTensor) and not isinstance(x, (torch.FloatTensor, torch.cuda.HalfTensor))
    assert not isinstance(x.to_sparse(), torch.cuda.FloatTensor)
    assert torch.FloatTensor([1, 2]).tolist() == [1, 2] and torch.LongTensor(2, 3).shape == (2, 3)
    assert repr(torch.FloatTensor) == "<class 'torch.FloatTensor'>" and torch.FloatTensor.dtype is torch.float32
    assert torch.FloatTensor | None and torch.cuda.LongTensor | None  # as annotations have them


def test_a_type_is_the_same_before_and_after():
    before = torch.FloatTensor
    with vgpu.virtual_gpus(2):
        assert torch.FloatTensor == before and before == torch.FloatTensor and {before: 1}[torch.FloatTensor] == 1
        meanwhile = torch.FloatTensor
        assert torch.ones(1).double().type(before).type() == "torch.FloatTensor"
    assert torch.FloatTensor is before and isinstance(torch.ones(1), meanwhile)


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda: torch.cuda.LongTensor(size=(2, 3)), (2, 3)),
        (lambda: torch.cuda.FloatTensor(data=[1.0, 2.0]), (2,)),
        (lambda: torch.cuda.FloatTensor(other=torch.cuda.FloatTensor(2)), (2,)),
        (lambda: torch.cuda.FloatTensor(2, device="cuda:0"), (2,)),
        (lambda: torch.ones(1, device="cuda:0").new(size=(4,)), (4,)),
        (lambda: torch.cuda.FloatTensor(torch.ones(5, device="cuda:0").storage()), (5,)),
    ],
)
@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_a_type_takes_its_arguments_by_name_too(gpus, make, shape):
    assert make().shape == shape and make().device == torch.device("cuda:0")


@pytest.mark.filterwarnings("ignore:torch.set_default_tensor_type")
def test_a_type_of_cuda_as_the_default(gpus):
    try:
        torch.set_default_tensor_type(torch.cuda.DoubleTensor)
        assert torch.zeros(1).type() == torch.tensor([1.0]).type() == "torch.cuda.DoubleTensor"
        torch.set_default_tensor_type("torch.cuda.FloatTensor")
        assert torch.zeros(1).type() == "torch.cuda.FloatTensor"
        with pytest.raises(TypeError, match="only floating-point types are supported as the default type"):
            torch.set_default_tensor_type(torch.cuda.LongTensor)
    finally:
        torch.set_default_tensor_type(torch.FloatTensor)
    assert torch.zeros(1).type() == "torch.FloatTensor"


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.zeros(1, device=1),
        lambda: torch.randint(3, (2,), device=1),
        lambda: torch.full((2,), 3, device=1),
        lambda: torch.zeros_like(torch.ones(1), device=1),
        lambda: torch.ones(1).new_full((2,), 1.0, device=1),
        lambda: torch.nn.Linear(1, 1, device=1).weight,
        lambda: torch.tensor([1], device=1),
        lambda: torch.empty(0, device=torch.device(1)),
    ],
)
def test_an_integer_names_a_gpu(gpus, make):
    assert make().device == ONE


def test_compiled_functions_run_eagerly_and_say_so_once():
    program = """
import warnings, torch
before = torch.compile(lambda x: x * 2)
import vgpu
vgpu.enable(2, force=True)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    module = torch.nn.Linear(2, 2).cuda(1)
    module.compile()
    after = torch.compile(torch.nn.Linear(2, 2).cuda(1))
x = torch.ones(2, 2, device="cuda:1")
assert before(x).device == module(x).device == after(x).device == x.device
assert [w for w in caught if "run eagerly" in str(w.message)].__len__() == 1, caught
assert all(k.startswith("_orig_mod.") for k in after.state_dict())
vgpu.disable()
from torch._dynamo import eval_frame
assert eval_frame._stance.stance == "default"
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=600)


def test_a_stance_that_a_program_chooses_compiles_nothing(gpus):
    """PyTorch's own TestCase sets one before each test."""
    x = torch.ones(2, 3, device=ONE)

    def total():
        return torch.compile(lambda x: x.t().sin().sum(), backend="aot_eager", fullgraph=True)(x).device

    assert total() == ONE
    with torch.compiler.set_stance("default"):
        assert total() == ONE
    torch.compiler.set_stance("fail_on_recompile")
    assert total() == ONE and torch.compiler.set_stance("default")(total)() == ONE
    torch.compiler.set_stance("default")


def test_generators_of_another_device_are_refused(gpus):
    host, gpu = torch.Generator(), torch.Generator("cuda:1")
    for draw in (
        lambda: torch.rand(2, device=ONE, generator=host),
        lambda: torch.ones(2, device=ONE).normal_(generator=host),
        lambda: torch.ones(3, device=ONE).multinomial(1, generator=host),
    ):
        with pytest.raises(RuntimeError, match="Expected a 'cuda' device type for generator but found 'cpu'"):
            draw()
    for draw in (
        lambda: torch.rand(2, generator=gpu),
        lambda: torch.ones(2).normal_(generator=gpu),
        lambda: torch.bernoulli(torch.ones(2), generator=gpu),
    ):
        with pytest.raises(RuntimeError, match="Expected a 'cpu' device type for generator but found 'cuda'"):
            draw()
    assert torch.rand(2, device=ONE, generator=gpu).device == ONE


def test_the_environment_gives_the_number(monkeypatch):
    monkeypatch.setenv("VGPUS", "3")
    with vgpu.virtual_gpus(force=True) as devices:
        assert len(devices) == torch.cuda.device_count() == 3
    monkeypatch.setenv("VGPUS", "many")
    with pytest.raises(ValueError, match="VGPUS must be a number from 1 to 64, it is 'many'"):
        vgpu.enable()
    monkeypatch.delenv("VGPUS")
    with pytest.raises(TypeError, match="gpus must be an int"), warnings.catch_warnings():
        vgpu.enable()
