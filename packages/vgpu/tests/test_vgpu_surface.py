"""Every public name of torch.cuda and torch.accelerator works or says that it is not simulated."""

import inspect
import types

import pytest
import torch

pytestmark = [
    pytest.mark.usefixtures("gpus"),
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning"),
]

# Arguments for the functions that need some. All others are called without any.
ARGUMENTS = {
    "StreamContext": lambda: (torch.cuda.Stream(),),
    "can_device_access_peer": lambda: (0, 1),
    "device": lambda: (1,),
    "device_index": lambda: (1,),
    "device_of": lambda: (torch.ones(1, device="cuda"),),
    "manual_seed": lambda: (1,),
    "manual_seed_all": lambda: (1,),
    "set_device": lambda: (1,),
    "set_device_idx": lambda: (1,),
    "set_device_index": lambda: (1,),
    "set_per_process_memory_fraction": lambda: (1.0,),
    "set_rng_state": lambda: (torch.cuda.get_rng_state(),),
    "set_rng_state_all": lambda: (torch.cuda.get_rng_state_all(),),
    "set_stream": lambda: (torch.cuda.Stream(),),
    "set_sync_debug_mode": lambda: (0,),
    "stream": lambda: (torch.cuda.Stream(),),
    "FloatTensor": lambda: (2,),
}
# Names a module imported from elsewhere, which are not its own.
FOREIGN = ("typing", "collections", "functools", "contextlib", "enum", "abc", "threading", "typing_extensions")


def names(module: types.ModuleType) -> list[str]:
    found = []
    for name in dir(module):
        value = getattr(module, name)
        foreign = getattr(value, "__module__", "").partition(".")[0] in FOREIGN or name == "classproperty"
        error = isinstance(value, type) and issubclass(value, BaseException)
        if not (name.startswith("_") or inspect.ismodule(value) or foreign or error or not callable(value)):
            found.append(name)
    return found


@pytest.mark.parametrize(
    ("module", "name"),
    [pytest.param(m, n, id=f"{m.__name__}.{n}") for m in (torch.cuda, torch.accelerator) for n in names(m)],
)
def test_name_works_or_says_that_it_is_not_simulated(module, name):
    torch.ones(1, device="cuda")
    arguments = ARGUMENTS[name]() if name in ARGUMENTS else ()
    try:
        getattr(module, name)(*arguments)
    except NotImplementedError as error:
        assert str(error) == f"{module.__name__}.{name} is not simulated by virtual GPUs"


def test_what_a_program_asks_first():
    assert torch.cuda.is_available() and torch.accelerator.is_available()
    assert torch.cuda.device_count() == torch.accelerator.device_count() == 4
    assert torch.cuda.get_device_name(1) == "Virtual GPU (CPU)"
    assert torch.accelerator.current_accelerator() == torch.device("cuda")
    assert not torch.cuda.is_current_stream_capturing()
    assert torch.cuda.get_allocator_backend() == "native"
    torch.accelerator.set_device_index(2)
    assert torch.cuda.current_device() == torch.accelerator.current_device_index() == 2
    torch.cuda.set_device(0)
    torch._C._cuda_clearCublasWorkspaces()  # PyTorch's own tests call it, and a build without CUDA lacks it
    with torch.cuda.nvtx.range("a mark for a profiler"):
        torch.cuda.synchronize(3)


def test_instances_can_still_be_asked_for():
    assert not isinstance(3, torch.cuda.CUDAGraph)
    with pytest.raises(NotImplementedError, match=r"torch\.cuda\.CUDAGraph is not simulated by virtual GPUs"):
        torch.cuda.CUDAGraph()
