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
    vgpu.enable(gpus, force=True)  # a machine with one GPU asked for two: virtual ones take the place of all
    say(f"{gpus} virtual GPUs ({real} real here): values as on GPUs, computed on the CPU; times mean nothing")


def fast_device() -> str:
    """One device for work that needs no more than one."""
    import torch

    return "cuda:0" if torch.cuda.is_available() else "cpu"
