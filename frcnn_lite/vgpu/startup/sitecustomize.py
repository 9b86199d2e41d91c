"""Virtual GPUs for the Python programs that a virtual program starts: torchrun workers, subprocesses, servers.

`python -m frcnn_lite.vgpu` puts this folder on PYTHONPATH and the number of GPUs into FRCNN_LITE_VGPUS. Nothing happens
until the program imports torch, so that programs without torch pay nothing.
"""

import contextlib
import importlib.util
import os
import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent


class _AfterTorch:
    """An import hook that waits for torch, lets it load, and switches virtual GPUs on."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> object:
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
    with contextlib.suppress(ValueError):
        if importlib.util.find_spec("frcnn_lite") is None:
            sys.path.append(str(_HERE.parents[2]))
    from frcnn_lite.vgpu import memory, switch

    capacity = memory.parse_bytes(os.environ.get("FRCNN_LITE_VGPUS_MEMORY"))
    switch.start(switch.check_gpus(None), ignored=None, capacity=capacity)


def _import_hidden_sitecustomize() -> None:
    """Run the sitecustomize of the environment, which this one hides."""
    sys.path[:] = [p for p in sys.path if Path(p).resolve() != _HERE]
    own = sys.modules.pop("sitecustomize")
    with contextlib.suppress(ImportError):
        import sitecustomize  # noqa: F401
    sys.modules.setdefault("sitecustomize", own)  # without another, the import that runs this wants it back


# A child of multiprocessing is told by its parent (processes.py); told twice, it would start in the middle of itself.
if os.environ.get("FRCNN_LITE_VGPUS") and "--multiprocessing-fork" not in sys.orig_argv:
    sys.meta_path.insert(0, _AfterTorch())  # type: ignore[arg-type]
_import_hidden_sitecustomize()
