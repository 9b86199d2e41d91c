"""The detector's training step on replicas, torch's and ours: gradients of one device, short last batch included."""

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import vgpu
from frcnn_lite.data import DigitScenes, collate
from frcnn_lite.detection import FasterRCNN, FasterRCNNConfig
from frcnn_lite.parallel import data_parallel, reduce_loss

BATCHES = range(5), range(5, 7)  # five images: uneven on 2, 3 and 4 devices; then two, fewer than 3 or 4 devices
Runner = Callable[[nn.Module, tuple[Tensor, ...], list[torch.device]], tuple]


def by_torch(model: nn.Module, arguments: tuple[Tensor, ...], devices: list[torch.device]) -> tuple:
    return nn.DataParallel(model, devices)(*arguments)


RUNNERS: dict[str, Runner] = {"nn.DataParallel": by_torch, "data_parallel": data_parallel}


def batch(images: range, dtype: torch.dtype) -> tuple[Tensor, ...]:
    """Images, boxes, labels and a seed for each image."""
    scenes = DigitScenes("train", length=7)
    own = collate([scenes[k] for k in images])
    return own.images.to(dtype), own.boxes.to(dtype), own.labels, torch.tensor([*images])


def train(model: nn.Module, run: Callable[[tuple[Tensor, ...]], tuple], dtype: torch.dtype) -> list[list[Tensor]]:
    """One step for each batch; the gradients of each, on the CPU."""
    optimizer, gradients = torch.optim.SGD(model.parameters(), lr=1e-4), []
    for images in BATCHES:
        optimizer.zero_grad()
        sum(reduce_loss(*run(batch(images, dtype))).values()).backward()
        gradients.append([parameter.grad.cpu() for parameter in model.parameters()])
        optimizer.step()
    return gradients


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
@pytest.mark.parametrize("devices", [2, 3, 4])
@pytest.mark.parametrize("runner", RUNNERS)
def test_each_step_has_the_gradients_of_one_device(runner, devices, dtype, tolerance) -> None:
    torch.manual_seed(0)
    start = FasterRCNN(FasterRCNNConfig(widths=(8, 8, 16), roi_channels=8, head_width=32)).to(dtype)
    for parameter in start.parameters():  # residual blocks start at zero, where half of the gradients vanish
        parameter.data += 0.05
    one = copy.deepcopy(start)
    expected = train(one, lambda arguments: one(*arguments), dtype)
    with vgpu.virtual_gpus(devices) as gpus:
        many = copy.deepcopy(start).cuda()
        found = train(many, lambda arguments: RUNNERS[runner](many, tuple(x.cuda() for x in arguments), gpus), dtype)
    for step, (got, want) in enumerate(zip(found, expected, strict=True)):
        # The second step starts from weights that differ in their last bits.
        allowed = tolerance * (1 if step == 0 else 100)
        for mine, its in zip(got, want, strict=True):
            assert (mine - its).abs().max() <= allowed * its.abs().max(), f"step {step}"
