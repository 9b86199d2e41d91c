"""A machine with one real GPU, made up: `PYTHONPATH=packages/vgpu/tests/one_gpu` shows one to every Python it reaches.

PyTorch then says that there is one GPU, and nothing can be computed on it. So what should run on the CPU or on virtual
GPUs can be tried on a machine without a GPU, and whatever goes to a real one by itself is found, because it raises.
"""

import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import SimpleNamespace

PROPERTIES = {"name": "made up", "major": 9, "minor": 0, "multi_processor_count": 132, "total_memory": 80 << 30}


def make_up(torch) -> None:
    """Put the answers of a driver with one GPU where PyTorch asks a driver; vgpu replaces the same names."""

    def count() -> int:
        return int(os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0] == "0")

    torch.gpu_is_made_up = True  # for tests of what asks the driver by itself
    torch.version.cuda = torch.version.cuda or "13.2"  # of a build for the CPU it is None
    torch._C._cuda_getDeviceCount = torch.cuda._device_count_nvml = count
    torch._C._cuda_init = lambda: None
    torch._C._cuda_getDevice = torch._C._accelerator_getDeviceIndex = lambda: 0
    torch._C._accelerator_getAccelerator = lambda: torch.device("cuda")
    torch._C._get_accelerator = lambda check=None: torch.device("cuda" if count() or not check else "cpu")
    # Optimizers ask for it in each step, those of the CPU, too.
    torch._C._accelerator_getStream = lambda ordinal: SimpleNamespace(is_capturing=lambda: False)
    torch._C._accelerator_synchronizeDevice = lambda ordinal: None
    torch.cuda._cudart = object()  # which a build for the CPU lacks
    torch.cuda._queued_calls.clear()  # questions about what the GPU can do
    torch.cuda._get_device_properties = lambda ordinal: SimpleNamespace(**PROPERTIES)
    torch.cuda.default_generators = (torch.Generator(),)  # torch.export keeps its state


class AfterTorch:
    """An import hook behind those of vgpu, so that the real GPU is there before the virtual ones are."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name != "torch":
            return None
        spec = PathFinder.find_spec(name)
        if spec is not None and spec.submodule_search_locations:  # not a module that a test has put in its place
            load = spec.loader.exec_module

            def exec_module(module) -> None:
                load(module)
                make_up(module)

            spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(sys.meta_path.index(PathFinder), AfterTorch)
