"""A machine with one real GPU, made up: `PYTHONPATH=packages/vgpu/tests/one_gpu` shows one to every Python it reaches.

PyTorch then says that there is one GPU, and any use of it raises. So what should run on the CPU or on virtual GPUs can
be tried on a machine without a GPU, and whatever goes to a real one by itself is found.
"""

import os
import sys
from importlib.machinery import ModuleSpec, PathFinder


def make_up(torch) -> None:
    """Put the answers of a driver with one GPU where PyTorch asks a driver; vgpu replaces the same names."""

    def count() -> int:
        return int(os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0] == "0")

    def refuse() -> None:
        raise RuntimeError("this GPU is made up: only virtual GPUs and the CPU compute here")

    torch.version.cuda = torch.version.cuda or "13.2"  # of a build for the CPU it is None
    torch.cuda._cudart = object()  # which a build for the CPU lacks, too
    torch.cuda._device_count_nvml = count
    torch._C._cuda_getDeviceCount = count
    torch._C._cuda_init = refuse
    torch._C._accelerator_getAccelerator = lambda: torch.device("cuda")
    torch._C._get_accelerator = lambda check=None: torch.device("cuda" if count() or not check else "cpu")


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
