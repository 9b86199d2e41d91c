"""Faults that detectors have on several GPUs, each tried on two and on three ranks: this one has none of them.

The catalogue of failures tells them: validation-without-boxes, boxes-counted-per-rank, unused-parameters,
marked-ready-twice, batchnorm-few-pictures, aspect-ratio-groups, padding-counted, sampler-padding, no-objects-nan and
forked-process. Ranks are threads.
"""

import itertools
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

import vgpu
from frcnn_lite.data import Scene, collate
from frcnn_lite.detection import FasterRCNNConfig
from frcnn_lite.engine import build_model, evaluate
from frcnn_lite.engine.devices import main_device, spread
from frcnn_lite.engine.evaluate import judge
from frcnn_lite.engine.step_order import StepOrder
from frcnn_lite.parallel import any_rank, rank_and_size, reduce_loss_over_ranks, rows_of_rank

ROOT = Path(__file__).resolve().parents[2]
NARROW = FasterRCNNConfig(widths=(16, 16), blocks=(0, 1), roi_channels=8, group_width=4, head_width=32, num_classes=3)
PYRAMID = FasterRCNNConfig(
    backbone="resnet18", fpn=True, num_classes=3, head_width=32, anchor_sizes=(8.0, 16.0, 32.0, 48.0, 64.0)
)
# Of each picture. Rank 0 of two has the pictures 0, 2 and 4, and rank 0 of three has 0 and 3: it never has a box.
OBJECTS = (0, 3, 0, 0, 0, 1)


def scenes(objects=OBJECTS):
    draw = torch.Generator().manual_seed(0)
    found = []
    for number, count in enumerate(objects):
        corner = torch.rand(count, 2, generator=draw) * 24
        boxes = torch.cat([corner, corner + torch.rand(count, 2, generator=draw) * 20 + 6], dim=1)
        image = torch.randint(0, 256, (3, 48, 48), generator=draw, dtype=torch.uint8)
        found.append(Scene(image, boxes, torch.randint(0, 3, (count,), generator=draw), number))
    return found


def model(config):
    made = build_model(config, seed=0).double()
    for parameter in made.parameters():  # residual blocks start at zero, where half of the gradients vanish
        parameter.data += 0.05
    return made


def steps(config, gpus, count=2):
    """Losses and gradients of steps over all pictures, shared out where there are ranks; each pads its own share."""
    net = spread(model(config), gpus)
    device, pictures = main_device(gpus), scenes()
    mine = list(rows_of_rank(len(pictures)))
    batch = collate([pictures[row] for row in mine]).to(device)
    seen = []
    for step in range(count):
        net.zero_grad(set_to_none=True)
        parts = net(batch.images.double(), batch.boxes.double(), batch.labels, torch.tensor(mine, device=device) + step)
        own, losses = reduce_loss_over_ranks(parts.sums, parts.counts)
        sum(own.values()).backward()
        seen.append(
            {
                "boxes": int((batch.labels >= 0).sum()),
                "losses": {name: loss.item() for name, loss in losses.items()},
                "gradients": [None if p.grad is None else p.grad.cpu() for p in net.parameters()],
            }
        )
    return seen


@pytest.mark.parametrize(("ranks", "config"), [(2, NARROW), (3, NARROW), (2, PYRAMID)], ids=["2", "3", "2, pyramid"])
def test_a_rank_without_boxes_trains_like_one_process_with_all_pictures(ranks, config):
    """Every parameter of every head has a gradient, so DDP waits for none, and the heads of a pyramid, which run once a
    level, are sent once. A mean of the ranks' own means, or of padded rows, would be a different number."""
    expected = steps(config, gpus=0)
    with vgpu.virtual_gpus(ranks):
        found = vgpu.ranks(ranks)(steps)(config, ranks)
    boxes = [rank[0]["boxes"] for rank in found]
    assert boxes[0] == 0 and sum(boxes) == sum(OBJECTS)
    for rank in found:
        for step, alone in zip(rank, expected, strict=True):
            assert step["losses"] == pytest.approx(alone["losses"], rel=1e-9)
            for got, want in zip(step["gradients"], alone["gradients"], strict=True):
                assert (got - want).abs().max() <= 1e-8 * want.abs().max()


def validate(objects):
    device = main_device(rank_and_size()[1])
    detector = model(NARROW).float().to(device)
    pictures = Pictures(objects)
    judged = [one.image_id for one in judge(detector, pictures, batch_size=2)]
    return judged, evaluate(detector, pictures, batch_size=2, progress=False)


class Pictures(torch.utils.data.Dataset):
    class_names = ("a", "b", "c")

    def __init__(self, objects):
        self.scenes = scenes(objects)

    def __len__(self):
        return len(self.scenes)

    def __getitem__(self, index):
        return self.scenes[index]


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("objects", [OBJECTS, (0, 2), (0, 0, 0, 0)], ids=["rank 0 has none", "few", "nobody has any"])
def test_validation_ends_and_judges_every_picture_once(ranks, objects):
    """Also on a rank whose pictures have no box, and on a rank that has no picture at all."""
    detector, pictures = model(NARROW).float(), Pictures(objects)
    expected = evaluate(detector, pictures, batch_size=2, progress=False)
    with vgpu.virtual_gpus(ranks):
        for judged, found in vgpu.ranks(ranks, timeout=30)(validate)(objects):
            assert judged == list(range(len(objects)))
            precisions = [found.AP50, found.AP]
            assert precisions == pytest.approx([expected.AP50, expected.AP], nan_ok=True)


def orders(images, batch_size):
    return list(StepOrder(images, batch_size, seed=3, first_step=0, last_step=9))


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize(("images", "batch_size"), [(7, 5), (5, 3), (20, 8)])
def test_ranks_take_as_many_steps_whatever_their_pictures_are_like(ranks, images, batch_size):
    """Batches are made of the whole list and then shared out; wide and tall pictures are scaled onto one canvas."""
    alone = orders(images, batch_size)
    with vgpu.virtual_gpus(ranks):
        found = vgpu.ranks(ranks, backend="gloo")(orders)(images, batch_size)
    assert {len(batches) for batches in found} == {len(alone)}
    for step, batch in enumerate(alone):
        shares = [batches[step] for batches in found]
        assert all(shares) and sorted(itertools.chain(*shares)) == sorted(batch)


@pytest.mark.parametrize("backbone", ["lite", "resnet18", "mobilenet_v3_large"])
@pytest.mark.parametrize("norm", ["group", "frozen"])
def test_no_layer_looks_at_other_pictures(backbone, norm):
    """BatchNorm over one or two pictures is none; nothing here has running statistics that a rank could own."""
    made = build_model(FasterRCNNConfig(backbone=backbone, norm=norm), seed=0)
    norms = nn.modules.batchnorm._NormBase
    assert [name for name, module in made.named_modules() if isinstance(module, norms)] == []


def stop(ranks_that_stop):
    return any_rank(rank_and_size()[0] in ranks_that_stop)


@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_stop_together(ranks):
    for stopping in ((), (ranks - 1,)):
        with vgpu.virtual_gpus(ranks):
            assert vgpu.ranks(ranks, backend="gloo")(stop)(stopping) == [bool(stopping)] * ranks


PROGRAM = """
import importlib, pkgutil, vgpu
vgpu.enable(2)
import torch, torchvision, frcnn_lite
asked = []
torch.cuda.is_available = lambda: asked.append(True)
for module in pkgutil.walk_packages(frcnn_lite.__path__, "frcnn_lite."):
    if not module.name.rpartition(".")[2].startswith("__") and ".kernels." not in module.name:
        importlib.import_module(module.name)
print(len(asked), torch.cuda.is_initialized())
"""


def test_no_module_asks_for_gpus_when_it_is_imported():
    """`torch.cuda.is_available()` reaches the driver, and a notebook launcher that forks the kernel then has children
    that cannot use their GPUs."""
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=ROOT, check=False)
    assert done.stdout == "0 False\n", done.stderr
