"""Where a command computes: real GPUs, virtual ones in their place, or the CPU."""

import os
import sys

from .console import say


def provide_gpus(gpus: int) -> None:
    """Virtual GPUs where there are not enough real ones, and one line that says so."""
    import torch

    real = torch.cuda.device_count()
    if gpus == 0 or (gpus <= real and not _real_gpus_are_left_alone()):
        return
    try:
        import vgpu
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"--gpus {gpus}: this machine has {real} real GPUs, and virtual ones need the package vgpu. "
            "Install it from the repository of frcnn_lite: pip install ./packages/vgpu"
        ) from error
    # Silent where it hides real GPUs, which the line below says. The variable of a cluster's scheduler means those.
    vgpu.start_if_changed(gpus, ignored=os.environ.get("CUDA_VISIBLE_DEVICES"))
    say(
        f"{gpus} virtual GPUs ({real} real here{', hidden meanwhile' if real else ''}): values as on GPUs, computed on "
        "the CPU; times mean nothing"
    )


def fast_device() -> str:
    """Where to compute what needs one device in each process: a GPU where there are some, else the CPU."""
    import torch

    virtual = "vgpu.switch" in sys.modules and sys.modules["vgpu"].is_enabled()
    return "cuda" if torch.cuda.is_available() and (virtual or not _real_gpus_are_left_alone()) else "cpu"


def _real_gpus_are_left_alone() -> bool:
    """Whether results are to be the same on every machine, as in the notebooks while their outputs are stored."""
    return os.environ.get("FRCNN_LITE_DEVICES") == "virtual"
