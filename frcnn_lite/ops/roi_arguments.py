"""What RoI pooling and RoIAlign ask of their arguments."""

import torch
from torch import Tensor


def check_roi_arguments(features: Tensor, rois: Tensor, output_size: int | tuple[int, int]) -> tuple[int, int]:
    """(ph, pw), if shapes and dtypes are as the operators need them; raises ValueError otherwise."""
    ph, pw = (output_size, output_size) if isinstance(output_size, int) else output_size
    if features.dim() != 4 or not features.is_floating_point():
        raise ValueError(f"features must be (N, C, H, W) floating, got {_describe(features)}")
    if rois.dim() != 2 or rois.shape[1] != 5 or rois.dtype not in (torch.float32, torch.float64):
        raise ValueError(f"rois must be (R, 5) float32 or float64, got {_describe(rois)}")
    if ph < 1 or pw < 1:
        raise ValueError(f"output_size must be positive, got {output_size}")
    return ph, pw


def _describe(tensor: Tensor) -> str:
    return f"{tuple(tensor.shape)} {tensor.dtype}"


def check_images(images: Tensor, count: int) -> None:
    """Image indices (R,) lie in the batch: kernels read memory at them, so a wrong one must never get there.

    Raises ValueError on the CPU. On a GPU, where reading the answer back would wait for the device, it is an assertion
    there.
    """
    inside = ((images >= 0) & (images < count)).all()
    if images.device.type != "cpu":
        torch._assert_async(inside)
    elif not inside:
        outside = images[(images < 0) | (images >= count)][0].item()
        raise ValueError(
            f"rois[:, 0] must be an image of this batch, 0 to {count - 1}, got {outside}; "
            "on a replica, images are counted from the first of its own chunk"
        )


def in_format(tensor: Tensor, channels_last: bool) -> Tensor:
    """The tensor in channels-last or in contiguous memory; gradients come in the format of what they belong to."""
    return tensor.contiguous(memory_format=torch.channels_last if channels_last else torch.contiguous_format)
