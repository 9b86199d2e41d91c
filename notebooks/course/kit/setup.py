"""The first cell of every notebook: devices, seeds, and outputs that read the same on every machine.

gpus = course.kit.setup.setup(gpus=2)
"""

from __future__ import annotations

import os
import random
import sys
import warnings

import torch

import vgpu

_CHOICES = ("", "real", "virtual")

# Raised by PyTorch itself, on machines without a GPU or driver at first; they say nothing about the notebook.
_WARNINGS = (
    "CUDA initialization",
    "Can't initialize NVML",
    "User provided device_type of 'cuda', but CUDA is not available",
    "'pin_memory' argument is set as true but no accelerator is found",
    "Failed to initialize NumPy",
    # of torch 2.11, whose profiler and exporter mean themselves
    "Warning: Profiler clears events at the end of each cycle",
    r"`isinstance\(treespec, LeafSpec\)` is deprecated",
)


def setup(gpus: int = 2, seed: int = 0) -> list[torch.device]:
    """Prepare a notebook and print one line that says on which devices it runs.

    Real GPUs are taken where the machine has that many, virtual ones otherwise. The environment variable
    FRCNN_LITE_DEVICES decides instead: `virtual` forces virtual GPUs, `real` demands real ones.
    Calling it again, or late, is safe: tensors that exist stay usable on the devices that remain.

    Args:
        gpus: how many devices the notebook needs, 1 to 64.
        seed: for `random`, NumPy and PyTorch, on all devices.

    Returns:
        the devices, `[cuda:0, ...]`.

    Raises:
        TypeError, ValueError: for a bad `gpus` or a bad FRCNN_LITE_DEVICES.
        RuntimeError: if real GPUs are demanded and there are too few.
    """
    vgpu.check_gpus(gpus)
    choice = os.environ.get("FRCNN_LITE_DEVICES", "")
    if choice not in _CHOICES:
        raise ValueError(f"FRCNN_LITE_DEVICES must be 'virtual' or 'real', or not set; it is {choice!r}")
    os.environ["VGPUS_QUIET"] = "1"  # the line below says on what a notebook runs; stderr would become an output
    for message in _WARNINGS:
        warnings.filterwarnings("ignore", message=message)
    print(_choose_devices(gpus, choice))
    _seed_all(seed)
    _figure_defaults()
    return [torch.device("cuda", k) for k in range(gpus)]


def _choose_devices(gpus: int, choice: str) -> str:
    """Switch to real or virtual devices; return the banner."""
    before = torch.cuda.device_count() if vgpu.is_enabled() else 0
    real = 0
    if choice != "virtual" and not before:
        real = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if choice == "real" and real < gpus:
        found = "virtual GPUs are on: restart the kernel" if before else f"this machine has {real}"
        raise RuntimeError(
            f"FRCNN_LITE_DEVICES=real, but {gpus} real GPUs are needed and {found}. "
            "Unset it to run the notebook on virtual GPUs."
        )
    if real >= gpus:
        return f"{gpus} real {_plural(gpus)}: {_names(gpus)}."
    # The variable was set for real GPUs, by a cluster's scheduler say; the notebook asks for `gpus` devices.
    vgpu.start_if_changed(gpus, ignored=os.environ.get("CUDA_VISIBLE_DEVICES"))
    changed = f" (before this call: {before})" if before not in (0, gpus) else ""
    why = f" This machine has {real} real." if real else ""
    return (
        f"{gpus} virtual {_plural(gpus)}{changed}: {_names(gpus)}.{why} "
        "Devices, results and errors as on real ones; computed on the CPU, so times mean nothing."
    )


def _plural(gpus: int) -> str:
    return "GPU" if gpus == 1 else "GPUs"


def _names(gpus: int) -> str:
    return ", ".join(f"cuda:{k}" for k in range(gpus)) if gpus <= 4 else f"cuda:0 to cuda:{gpus - 1}"


def _seed_all(seed: int) -> None:
    import numpy as np

    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def _figure_defaults() -> None:
    """Make matplotlib's figures SVG whose text is a function of the data alone: no dates, no random identifiers."""
    try:
        import matplotlib
    except ImportError:
        return
    matplotlib.rcParams.update({"svg.hashsalt": "frcnn_lite", "svg.fonttype": "none"})
    if "IPython" in sys.modules and sys.modules["IPython"].get_ipython() is not None:
        from matplotlib_inline.backend_inline import set_matplotlib_formats

        set_matplotlib_formats("svg", metadata={"Date": None})
