"""Every public name of torch.cuda and torch.accelerator works or says that it is not simulated."""

import importlib
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
    "ExternalStream": lambda: (1,),
    "get_stream_from_external": lambda: (1,),
    "graph": lambda: (torch.cuda.CUDAGraph(),),
    "make_graphed_callables": lambda: (torch.sin, (torch.ones(1, device="cuda"),)),
    "list_gpu_processes": lambda: (1,),
    "check_error": lambda: (0,),
    "device": lambda: (1,),
    "use_mem_pool": lambda: (torch.cuda.MemPool(),),
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
    "set_stream": lambda: (torch.cuda.current_stream(),),
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


def test_the_allocator_names_a_device_that_it_does_not_know():
    torch.cuda.init()  # before that there are no figures at all
    for ask in (torch.cuda.memory_allocated, torch.cuda.reset_peak_memory_stats, torch.cuda.memory_stats):
        with pytest.raises(RuntimeError, match="Invalid device argument \x07: did you call init"):
            ask(7)


def test_pinned_memory_is_the_hosts():
    for make in (
        lambda: torch.zeros(2, device="cuda", pin_memory=True),
        lambda: torch.ones(1, device="cuda").new_zeros(2, pin_memory=True),
    ):
        with pytest.raises(RuntimeError, match="Only dense CPU tensors can be pinned"):
            make()
    assert torch.ones(1, device="cuda").new_zeros(2, device="cpu").device.type == "cpu"


def test_cudnn_is_there_and_recurrent_modules_do_without_it():
    assert torch.backends.cudnn.is_acceptable(torch.ones(1, device="cuda"))
    assert not torch.backends.cudnn.is_acceptable(torch.ones(1))
    assert not torch.backends.cudnn.is_acceptable(torch.ones(1, device="cuda").bfloat16())
    module = torch.nn.LSTM(2, 3).to("cuda:1")
    module.flatten_parameters()
    assert module(torch.ones(1, 1, 2, device="cuda:1"))[0].device == torch.device("cuda:1")


def test_what_the_runtime_and_the_driver_are_asked_for():
    kept = torch.ones(1, device="cuda:1")
    runtime = torch.cuda.cudart()
    torch.cuda.check_error(runtime.cudaProfilerStart())
    with torch.cuda.profiler.profile():
        assert runtime.cudaMemGetInfo(1) == torch.cuda.mem_get_info(1)
    with pytest.raises(torch.cuda.CudaError, match="3"):
        torch.cuda.check_error(3)
    with pytest.raises(NotImplementedError, match="cudaHostRegister"):
        runtime.cudaHostRegister(0, 0, 0)
    assert torch.cuda.list_gpu_processes(0).splitlines()[0] == "GPU:0"
    assert "uses        2.000 MB GPU memory" in torch.cuda.list_gpu_processes(1)
    assert torch.cuda.device_memory_used(1) == torch.cuda.memory_reserved(1) > kept.nbytes


def test_properties_print_as_pytorchs_own():
    shown = repr(torch.cuda.get_device_properties(1))
    assert shown.startswith("_CudaDeviceProperties(name='Virtual GPU (CPU)', major=8, minor=0, total_memory=")
    assert "pci_bus_id=2, pci_device_id=0, pci_domain_id=0, L2_cache_size=0MB)" in shown


def test_streams_of_other_libraries_and_events_of_a_device():
    assert torch.cuda.ExternalStream(0) == torch.cuda.default_stream()
    other = torch.cuda.ExternalStream(5, device="cuda:1")
    assert other.cuda_stream == 5 and other.device == torch.device("cuda:1")
    with torch.cuda.stream(other):
        assert torch.cuda.current_stream() == other
    assert torch.Event("cuda").device == torch.device("cuda") and torch.cuda.Event().device is None


def test_instances_can_still_be_asked_for():
    assert not isinstance(3, torch.cuda.CUDAPluggableAllocator)
    refused = r"torch\.cuda\.CUDAPluggableAllocator is not simulated by virtual GPUs"
    with pytest.raises(NotImplementedError, match=refused):
        torch.cuda.CUDAPluggableAllocator()


def test_every_build_of_pytorch_says_that_it_has_cuda():
    assert int(torch.version.cuda.split(".")[0]) >= 12 and torch.backends.cuda.is_built()
    trees = importlib.import_module("torch._inductor.cudagraph_trees")  # takes names that builds without CUDA lack
    assert callable(trees.AllocatorState)
