"""Virtual GPUs: unmodified multi-GPU PyTorch programs on a machine that has none.

    with virtual_gpus(2):
        x = torch.ones(3, device="cuda:1")

Values are computed on the CPU; devices, errors, gradients and memory are accounted as on a machine with n GPUs.
Importing this package replaces nothing. docs/virtual-gpus.md says how it works and what it is not.
"""

from frcnn_lite.vgpu.switch import disable, enable, is_enabled, virtual_gpus

__all__ = ["disable", "enable", "is_enabled", "virtual_gpus"]
