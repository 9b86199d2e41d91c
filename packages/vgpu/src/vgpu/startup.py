"""Virtual GPUs for any Python program that runs with VGPUS=N, as soon as it imports torch.

An interpreter imports this file at start-up where the variable is set and one of two things tells it to: PYTHONPATH,
which `python -m vgpu` and `pytest --vgpus` leave to their children (inherit.py), or a file in site-packages, which only
`python -m vgpu autostart --install` adds (autostart.py). Programs that never import torch pay nothing.
"""

import importlib.util
import os
import sys

from vgpu import inherit


class _AfterTorch:
    """An import hook that waits for torch, lets it load, and switches virtual GPUs on."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> object:
        """Where torch is; once it is loaded, virtual GPUs are on. Other modules are left to other hooks."""
        if name != "torch":
            return None
        sys.meta_path.remove(self)  # type: ignore[arg-type]
        spec = importlib.util.find_spec("torch")
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def exec_module(module: object) -> None:
                load(module)  # type: ignore[arg-type]
                _enable()

            spec.loader.exec_module = exec_module  # type: ignore[method-assign, assignment]
        return spec


def _enable() -> None:
    import vgpu

    memory, profile = os.environ.get(inherit.MEMORY), os.environ.get(inherit.PROFILE)
    vgpu.enable(force=os.environ.get(inherit.FORCE) == "1", memory=memory, profile=profile)


# A child of multiprocessing is told by its parent (processes.py); told twice, it would start in the middle of itself.
if "torch" not in sys.modules and "--multiprocessing-fork" not in sys.orig_argv:
    sys.meta_path.insert(0, _AfterTorch())  # type: ignore[arg-type]
