"""Put a model where it shall run: the CPU, one GPU, or several through `nn.DataParallel`."""

import torch
from torch import nn


def main_device(gpus: int) -> torch.device:
    """The device that holds the parameters: the CPU for `gpus=0`, else cuda:0.

    Raises ValueError when `gpus` is negative or more than this process sees.
    """
    present = torch.cuda.device_count()
    if gpus < 0 or gpus > present:
        raise ValueError(f"gpus must be between 0 and {present}, the number of GPUs here, got {gpus}")
    return torch.device("cuda", 0) if gpus else torch.device("cpu")


def spread(model: nn.Module, gpus: int) -> nn.Module:
    """`model`, moved to its main device and, for two GPUs or more, wrapped in PyTorch's own `nn.DataParallel`."""
    model.to(main_device(gpus))
    return nn.DataParallel(model, device_ids=list(range(gpus))) if gpus > 1 else model
