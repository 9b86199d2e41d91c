"""Which digits are in a picture: ten yes-or-no answers, and a net for them that was trained before.

    cd notebooks && python -m course.lessons.nb26.digit_answers     # writes checkpoints/digit_answers.pt anew

The eyes are fixed: fifty templates of digits in three sizes slide over the picture, and their best matches in a 3 x 3
grid are the features. The learner is the network of the post, with its loops.
"""

from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course.kit import post_002
from course.kit.files import CHECKPOINTS
from frcnn_lite.data import DigitScenes, collate, load_glyphs

FILE = CHECKPOINTS / "digit_answers.pt"
SIZES = (3, 2, 3, 2)  # how many of the ten digits read each group
CONFIG = post_002.ClassHeadConfig(SIZES, group_channels=32, class_channels=16)


def digit_pictures(split: Literal["train", "test"], count: int) -> tuple[Tensor, Tensor]:
    """Grey pictures (count, 1, 32, 32) with one or two digits, and which digits they are, (count, 10) of 0 and 1."""
    scenes = DigitScenes(split, count, seed=0, size=64, digits=(1, 2))
    batch = collate([scenes[i] for i in range(count)])
    slots = batch.labels.masked_fill(batch.labels < 0, 10)
    present = torch.zeros(count, 11).scatter_(1, slots, 1)[:, :10]
    grey = (batch.images * torch.tensor([0.299, 0.587, 0.114]).view(3, 1, 1)).sum(dim=1, keepdim=True)
    return F.avg_pool2d(grey, 2), present


def features(images: Tensor) -> Tensor:
    """How well each template in each size matches in each part of a picture: (count, 150, 3, 3)."""
    glyphs = load_glyphs("train")
    ink, digit = torch.tensor(glyphs.fields), torch.tensor(glyphs.labels)
    picks = [ink[digit == d][:: int((digit == d).sum()) // 5][:5] for d in range(10)]
    templates = torch.cat(picks).unsqueeze(1)
    return torch.cat([torch.cat([_match(part, templates, s) for s in (12, 16, 21)], 1) for part in images.split(100)])


def _match(images: Tensor, templates: Tensor, side: int) -> Tensor:
    """Normalised cross-correlation, in which brightness drops out."""
    t = F.interpolate(templates, size=side, mode="bilinear", antialias=True, align_corners=False)
    t = t - t.mean(dim=(2, 3), keepdim=True)
    box = torch.ones(1, 1, side, side, device=images.device)
    mean = F.conv2d(images, box) / side**2
    energy = F.conv2d(images**2, box) - side**2 * mean**2
    response = F.conv2d(images, t / t.norm(dim=(2, 3), keepdim=True)) / energy.clamp_min(1e-3).sqrt()
    return F.adaptive_max_pool2d(response.abs(), 3)


def make_net() -> nn.Sequential:
    """Features, then one Linear a class in a loop."""
    return nn.Sequential(post_002.SerialGroupFeatures(150, 4, 32), post_002.SerialClassHead(CONFIG))


def trained_net(file: Path = FILE) -> tuple[nn.Module, Tensor, Tensor]:
    """The net as it was trained, and 300 pictures that it has not seen: what its head gets, and the right answers."""
    kept = torch.load(file, weights_only=True)
    net = make_net().eval()
    net.load_state_dict({name: tensor.float() for name, tensor in kept["net"].items()})
    images, present = digit_pictures("test", 300)
    with torch.no_grad():
        pooled = net[0]((features(images) - kept["mean"].float()) / kept["std"].float())
    return net[1], pooled, present


def main() -> None:
    """Train for 200 steps, and write the weights as float16."""
    torch.manual_seed(0)
    images, present = digit_pictures("train", 1280)
    x = features(images)
    mean, std = x.mean(dim=(0, 2, 3), keepdim=True), x.std(dim=(0, 2, 3), keepdim=True)
    x, net, steps = (x - mean) / std, make_net(), 200
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=steps)
    for rows in torch.randint(len(x), (steps, 64)):
        loss = F.binary_cross_entropy_with_logits(net(x[rows]), present[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    half = {name: t.half() if t.is_floating_point() else t for name, t in net.state_dict().items()}
    torch.save({"net": half, "mean": mean.half(), "std": std.half()}, FILE)


if __name__ == "__main__":
    main()
