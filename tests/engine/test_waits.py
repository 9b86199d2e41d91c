"""How often a training step waits for the device, counted where virtual GPUs follow `set_sync_debug_mode`."""

import warnings
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import vgpu
from frcnn_lite.data import DigitScenes, collate, send
from frcnn_lite.detection import FasterRCNNConfig
from frcnn_lite.detection.box_head import SAMPLING_RATIO, BoxHead, align_on_levels
from frcnn_lite.engine import TrainConfig, Trainer
from frcnn_lite.ops import nms_mask

NMS, LOSSES = "nms.py", "trainer.py"
PYRAMID = FasterRCNNConfig(backbone="resnet18", fpn=True, anchor_sizes=(8.0, 16.0, 32.0, 64.0, 96.0))
NARROW = FasterRCNNConfig(widths=(16, 16, 16), roi_channels=8, group_width=4, head_width=32)
CONFIG = TrainConfig(steps=20, batch_size=2, image_size=64, gpus=1, warmup_steps=0, model=NARROW)


def batch():
    scenes = DigitScenes("train", 2, size=64)
    return collate([scenes[index] for index in range(2)])


def waits(function, *args):
    """The files from which it waits for the device."""
    torch.cuda.set_sync_debug_mode(1)
    try:
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            function(*args)
    finally:
        torch.cuda.set_sync_debug_mode(0)
    return [Path(one.filename).name for one in heard if "synchronizing" in str(one.message)]


@pytest.fixture(autouse=True)
def two_gpus(request):
    if "real" in request.node.name:
        yield
        return
    with warnings.catch_warnings(), vgpu.virtual_gpus(2):
        warnings.filterwarnings("ignore", "Synchronization debug mode")
        yield


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, [NMS, LOSSES]),
        ({"flip": 0.5, "zoom": 0.25, "light": 0.2}, [NMS, LOSSES]),
        ({"gpus": 2}, [NMS, NMS, LOSSES]),  # once a replica, and each waits for its own GPU
        ({"amp": True}, [NMS, LOSSES, "grad_scaler.py"]),
        ({"model": PYRAMID}, [NMS, LOSSES]),
        ({"model": replace(PYRAMID, roi_op="pool")}, [NMS, LOSSES]),
    ],
    ids=["one GPU", "changed pictures", "two GPUs", "half precision", "pyramid", "pyramid, RoI pooling"],
)
def test_a_training_step_waits_once_and_then_for_its_losses(changes, expected):
    trainer, pictures = Trainer(replace(CONFIG, **changes)), batch()
    for _ in range(2):  # the average of the weights begins with the first, and goes on with the second
        trainer.take_step(pictures)
    assert waits(trainer.take_step, pictures) == expected


def test_long_chains_are_asked_about_again_and_settled_alike():
    """Boxes that overlap their neighbours alone: every round settles one more."""
    for length, asked in ((9, 0), (31, 1), (33, 2), (70, 3), (200, 4)):
        iou = torch.eye(length) + torch.diag(torch.ones(length - 1), 1) + torch.diag(torch.ones(length - 1), -1)
        scores = torch.arange(length, 0, -1.0)
        expected = nms_mask(iou[None], scores[None], 0.5)
        assert expected[0].tolist() == [index % 2 == 0 for index in range(length)]
        arguments = [iou[None].cuda(), scores[None].cuda(), 0.5]
        assert waits(nms_mask, *arguments) == [NMS] * asked
        assert torch.equal(nms_mask(*arguments).cpu(), expected)


def test_levels_of_a_pyramid_are_read_as_torchvision_reads_them():
    draw = torch.Generator().manual_seed(0)
    head = BoxHead(PYRAMID, 8, (4, 8, 16, 32))
    maps = tuple(torch.randn(2, 8, 256 // stride, 256 // stride, generator=draw) for stride in (4, 8, 16, 32))
    corner = torch.rand(2, 30, 2, generator=draw) * 200
    boxes = torch.cat([corner, corner + torch.rand(2, 30, 2, generator=draw) ** 3 * 800 + 2], dim=2)
    image = torch.arange(2.0).view(2, 1, 1).expand(-1, 30, 1)
    rois = torch.cat([image, boxes], dim=2).flatten(0, 1)
    level = head.pyramid.map_levels(list(boxes))
    assert len(level.unique()) == 4
    found = []
    for pool in (head.pool, lambda maps, rois: align_on_levels(maps, rois, level, 6, (4, 8, 16, 32))):
        leaves = tuple(one.clone().requires_grad_() for one in maps)
        pooled = pool(leaves, rois)
        pooled.mul(torch.randn(pooled.shape, generator=torch.Generator().manual_seed(1))).sum().backward()
        found.append([pooled.detach(), *(leaf.grad for leaf in leaves)])
    assert SAMPLING_RATIO == 2 and all(map(torch.equal, *found))


def test_what_is_sent_arrives_and_nobody_waits():
    numbers = torch.arange(6.0).view(2, 3).t()  # not contiguous
    arrived = send(numbers, torch.device("cuda", 1))
    assert torch.equal(arrived.cpu(), numbers) and arrived.device.index == 1
    assert waits(send, numbers, torch.device("cuda", 1)) == []
    assert send(numbers, torch.device("cpu")) is numbers and send(arrived, torch.device("cuda", 1)) is arrived


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no real GPU here")
@pytest.mark.parametrize("changes", [{}, {"model": PYRAMID}])
def test_a_step_on_a_real_gpu_waits_as_often(changes):
    trainer, pictures = Trainer(replace(CONFIG, **changes)), batch()
    for _ in range(2):
        trainer.take_step(pictures)
    assert waits(trainer.take_step, pictures) == [NMS, LOSSES]
