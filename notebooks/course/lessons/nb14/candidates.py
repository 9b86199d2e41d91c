"""What the region proposal network of a trained detector sends to suppression, and what a new score is learnt from."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from course.kit.files import CHECKPOINTS
from frcnn_lite import data, engine, ops
from frcnn_lite.data import Scene
from frcnn_lite.detection import FasterRCNN

Scenes = Sequence[Scene] | data.DigitScenes

AT_ONCE = 50
"""Pictures that go through the network together."""


def digit_detector() -> FasterRCNN:
    """The detector of digits that trained for five minutes, on the CPU."""
    return engine.load_weights(CHECKPOINTS / "digits.pt")


@torch.no_grad()
def best_boxes(detector: FasterRCNN, scenes: Scenes, count: int) -> tuple[Tensor, Tensor]:
    """The anchors of each picture with the best scores, moved onto objects: boxes (B, count, 4), scores (B, count).

    Best first. Corners are whole pixels, so that every machine draws and counts the same.
    """
    boxes, scores = [], []
    for some in _groups(scenes):
        rpn = detector.rpn(detector.backbone(data.collate(some).images).rpn)
        order = rpn.logits.argsort(dim=1, descending=True, stable=True)[:, :count]
        deltas = rpn.deltas.gather(1, order[:, :, None].expand(-1, -1, 4))
        moved = ops.decode_boxes(deltas, rpn.anchors[order], detector.rpn.delta_weights)
        boxes.append(ops.clip_boxes(moved, 128, 128).round())
        scores.append(rpn.logits.gather(1, order))
    return torch.cat(boxes), torch.cat(scores)


def _groups(scenes: Scenes) -> Iterator[list[Scene]]:
    for start in range(0, len(scenes), AT_ONCE):
        yield [scenes[k] for k in range(start, min(start + AT_ONCE, len(scenes)))]


@torch.no_grad()
def names_of(detector: FasterRCNN, scene: Scene, k: int) -> list[tuple[int, float, float]]:
    """What the whole detector, NMS included, says of the object number k of a picture: label, score and the overlap
    with the first of them, for each result with a score above 0.3 that overlaps the object by more than 0.6."""
    boxes, scores, labels, _ = (field[0] for field in detector(data.collate([scene]).images))
    on = (ops.box_iou(scene.boxes[k : k + 1], boxes)[0] > 0.6) & (scores > 0.3)
    overlaps = ops.box_iou(boxes[on][:1], boxes[on])[0]
    return list(zip(labels[on].tolist(), scores[on].tolist(), overlaps.tolist(), strict=True))


class Lessons(NamedTuple):
    """Pictures as the region proposal network sees them: its `maps` (B, C, h, w), and how much each of its N boxes
    overlaps each digit: `overlaps[b]` (digits, N)."""

    maps: Tensor
    overlaps: list[Tensor]


@torch.no_grad()
def lessons(detector: FasterRCNN, scenes: Scenes) -> Lessons:
    maps: list[Tensor] = []
    overlaps: list[Tensor] = []
    for some in _groups(scenes):
        features = detector.backbone(data.collate(some).images).rpn
        rpn = detector.rpn(features)
        moved = ops.decode_boxes(rpn.deltas, rpn.anchors.expand_as(rpn.deltas), detector.rpn.delta_weights)
        maps += features[0]
        overlaps += [ops.box_iou(scene.boxes, own) for scene, own in zip(some, moved, strict=True)]
    return Lessons(torch.stack(maps), overlaps)


class ScoreHead(nn.Module):
    """Two convolutions: a score for each box, that is, for each anchor of each cell. Maps (B, C, h, w) to (B, N)."""

    def __init__(self, channels: int, anchors: int) -> None:
        super().__init__()
        self.hidden, self.score = nn.Conv2d(channels, 64, 3, padding=1), nn.Conv2d(64, anchors, 1)
        nn.init.constant_(self.score.bias, -3.0)  # type: ignore[arg-type]  # few boxes hold an object

    def forward(self, maps: Tensor) -> Tensor:
        return self.score(torch.relu(self.hidden(maps))).permute(0, 2, 3, 1).flatten(1)


def learn_scores(school: Lessons, rule: Callable[[Tensor, Tensor], Tensor], steps: int = 40) -> ScoreHead:
    """A score head that learns from `rule(overlaps (digits, N), says (N,))`, the targets (N,) of a picture.

    `says` is what the head says today of each box, between 0 and 1. The same start and the same order of pictures for
    every rule.
    """
    torch.manual_seed(0)
    head = ScoreHead(channels=school.maps.shape[1], anchors=school.overlaps[0].shape[1] // school.maps[0, 0].numel())
    optimizer = torch.optim.Adam(head.parameters(), 3e-3)
    for _ in range(steps):
        chosen = torch.randperm(len(school.maps))[:16].tolist()
        logits = head(school.maps[chosen])
        pairs = zip(chosen, logits.detach().sigmoid(), strict=True)
        targets = torch.stack([rule(school.overlaps[k], says) for k, says in pairs])
        loss = binary_cross_entropy_with_logits(logits, targets, reduction="sum") / targets.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return head


@torch.no_grad()
def boxes_on_digits(head: ScoreHead, exam: Lessons) -> tuple[int, int]:
    """Without suppression, over all pictures: on how many digits there is a box with a score above one half, and how
    many such boxes are on digits. A box is on a digit where they overlap by more than a half.
    """
    pairs = zip(exam.overlaps, head(exam.maps) > 0, strict=True)
    on = [(overlaps > 0.5) & says for overlaps, says in pairs]
    return sum(int(o.any(dim=1).sum()) for o in on), sum(int(o.sum()) for o in on)
