"""The lines that say which machine a program has."""

from __future__ import annotations

import os
import sys

import torch

from vgpu.base import variables
from vgpu.machine import devices, host, memory, profiles
from vgpu.starting import inherit


def machine() -> str:
    """How many GPUs there are, of which kind and size, and where the size comes from if nobody has chosen it."""
    gpus, size = devices.total(), memory.capacity()
    text = f"{gpus} virtual GPU{'s' * (gpus != 1)}, {_gib(size)}{' each' * (gpus != 1)}"
    if profiles.chosen() is not None:
        return f"{text}, {profiles.current().name}"
    if size == memory.share(gpus):
        return f"{text}: a share of this machine's {_gib(host.total())}"
    return text


def say_what_is_hidden() -> None:
    """One line on stderr where this machine has real GPUs; the variable keeps every process below this one quiet."""
    if variables.choice(inherit.QUIET, "0", "1") == "1" or os.environ.get("LOCAL_RANK", "0") != "0":
        return
    real = torch.cuda.device_count()
    if real:
        os.environ[inherit.QUIET] = "1"
        hidden = "real GPU of this machine is" if real == 1 else "real GPUs of this machine are"
        print(f"vgpu: {real} {hidden} hidden while virtual ones are on", file=sys.stderr)


def _gib(nbytes: int) -> str:
    """Bytes as a person reads them."""
    return f"{nbytes / (1 << 30):.3g} GiB" if nbytes >= 1 << 30 else f"{nbytes / (1 << 20):.4g} MiB"
