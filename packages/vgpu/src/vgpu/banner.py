"""One line that says which machine a program has."""

from __future__ import annotations

from vgpu import devices, host, memory, profiles


def machine() -> str:
    """How many GPUs there are, of which kind and size, and where the size comes from if nobody has chosen it."""
    gpus, size = devices.total(), memory.capacity()
    text = f"{gpus} virtual GPU{'s' * (gpus != 1)}, {_gib(size)}{' each' * (gpus != 1)}"
    if profiles.chosen() is not None:
        return f"{text}, {profiles.current().name}"
    if size == memory.share(gpus):
        return f"{text}: a share of this machine's {_gib(host.total())}"
    return text


def _gib(nbytes: int) -> str:
    """Bytes as a person reads them."""
    return f"{nbytes / (1 << 30):.3g} GiB" if nbytes >= 1 << 30 else f"{nbytes / (1 << 20):.4g} MiB"
