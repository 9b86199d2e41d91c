"""Where a command computes: real GPUs, virtual ones in their place, or the CPU."""

import os

from .console import say


def provide_gpus(gpus: int) -> None:
    """Virtual GPUs where there are not enough real ones, and one line that says so."""
    import torch

    forced = os.environ.get("FRCNN_LITE_DEVICES") == "virtual"
    real = torch.cuda.device_count()
    if gpus == 0 or (gpus <= real and not forced):
        return
    try:
        import vgpu
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"--gpus {gpus}: this machine has {real} real GPUs, and virtual ones need the package vgpu. "
            "Install it from the repository of frcnn_lite: pip install ./packages/vgpu"
        ) from error
    # Silent where it hides real GPUs, which the line below says. The variable of a cluster's scheduler means those.
    vgpu.start_if_changed(vgpu.check_gpus(gpus), ignored=os.environ.get("CUDA_VISIBLE_DEVICES"))
    say(f"{gpus} virtual GPUs (real ones hidden: {real}): values as on GPUs, computed on the CPU; times mean nothing")


def fast_device() -> str:
    """Where each process computes alone: on a GPU, unless outputs are to be the same on every machine, or the CPU."""
    import torch

    forced = os.environ.get("FRCNN_LITE_DEVICES") == "virtual"
    return "cuda" if torch.cuda.is_available() and not forced else "cpu"
