"""Put a model where it shall run: the CPU, one GPU, several through `nn.DataParallel`, or one device for each rank."""

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from frcnn_lite.parallel import choose_device, rank_and_size


def main_device(gpus: int) -> torch.device:
    """The device that holds the parameters: the CPU for `gpus=0`, else cuda:0, or this rank's GPU.

    Raises ValueError when `gpus` is negative, more than this process sees, or not the number of ranks.
    """
    present, ranks = torch.cuda.device_count(), rank_and_size()[1]
    if gpus and ranks > 1 and gpus != ranks:
        raise ValueError(f"`gpus` must be {ranks} with {ranks} ranks, one GPU for each, or 0 for the CPU; got {gpus}")
    if gpus and ranks > 1:
        return choose_device("cuda")
    if gpus < 0 or gpus > present:
        raise ValueError(f"`gpus` must be between 0 and {present}, the number of GPUs here, got {gpus}")
    return torch.device("cuda", 0) if gpus else torch.device("cpu")


def spread(model: nn.Module, gpus: int) -> nn.Module:
    """`model` on its main device, wrapped in PyTorch's own `DistributedDataParallel` where there are ranks, and in
    `nn.DataParallel` for two GPUs or more of one process."""
    device = main_device(gpus)
    model.to(device)
    if rank_and_size()[1] > 1:
        # Its buffers are constants, so that nothing is lost by not sending rank 0's before every forward.
        ids = [device] if device.type == "cuda" else None
        return DistributedDataParallel(model, device_ids=ids, broadcast_buffers=False, gradient_as_bucket_view=True)
    return nn.DataParallel(model, device_ids=list(range(gpus))) if gpus > 1 else model
