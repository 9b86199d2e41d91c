"""Torchvision's calling form: a list of pictures, each of its own size, and a list of targets.

Pictures of one size go through the detector together, and none is padded: padding would change the statistics of
GroupNorm, and what is found in a picture would depend on the others in the list.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import pad
from torch.nn.utils.rnn import pad_sequence

from frcnn_lite.detection.checks import check_corners, check_labels
from frcnn_lite.detection.postprocess import Detections

Target = Mapping[str, Tensor]


def detect_in_list(model: nn.Module, images: Sequence[Tensor]) -> list[dict[str, Tensor]]:
    """The objects that `model` finds in each picture: "boxes" (n, 4), "labels" (n,) and "scores" (n,), best first.

    Args:
        images: (3, H, W) floats in 0..1, each of its own size.

    Raises:
        ValueError: there is no picture, or one has a different form.
    """
    found: dict[int, dict[str, Tensor]] = {}
    for rows in _rows_by_size(images):
        detections: Detections = model(torch.stack([images[row] for row in rows]))
        for row, boxes, scores, labels, valid in zip(rows, *detections, strict=True):
            found[row] = {"boxes": boxes[valid], "labels": labels[valid], "scores": scores[valid]}
    return [found[row] for row in range(len(images))]


def losses_of_list(
    model: nn.Module, images: Sequence[Tensor], targets: Sequence[Target], num_classes: int
) -> dict[str, Tensor]:
    """The losses of all pictures together, by name, as 0-d tensors. Add them up to call `backward()`.

    Samples are drawn from torch's global generator. On ranks of DDP a mean of these losses is not the loss of all
    pictures; the batched form gives sums and counts, from which `reduce_loss_over_ranks` makes it.

    Args:
        images: (3, H, W) floats in 0..1, each of its own size.
        targets: for each picture a dict of "boxes" (n, 4) float `xyxy` pixels and "labels" (n,) int64 from 0 on.

    Raises:
        ValueError: a picture or a target has a different form, or a label is not one of `num_classes`.
    """
    if len(targets) != len(images):
        raise ValueError(f"`targets` must be as many as `images`, got {len(targets)} and {len(images)}")
    for row, target in enumerate(targets):
        _check_target(row, target, num_classes)
    seeds = torch.randint(2**31, (len(images),))
    parts = []
    for rows in _rows_by_size(images):
        # One row more than the longest has, so that there is one where no picture has a box
        boxes = pad(pad_sequence([targets[row]["boxes"] for row in rows], batch_first=True), (0, 0, 0, 1))
        labels = pad_sequence([targets[row]["labels"] for row in rows], batch_first=True, padding_value=-1)
        together = torch.stack([images[row] for row in rows])
        parts.append(model(together, boxes, pad(labels, (0, 1), value=-1), seeds[rows].to(together.device)))
    sums, counts = (
        {name: torch.cat([part[name] for part in kind]).sum() for name in kind[0]}
        for kind in ([part.sums for part in parts], [part.counts for part in parts])
    )
    return {name: total / counts[name].clamp(min=1) for name, total in sums.items()}


def _rows_by_size(images: Sequence[Tensor]) -> list[list[int]]:
    """The places of the pictures in their list, those of one size together."""
    if not images:
        raise ValueError("`images` must hold at least one picture, got none")
    by_size: dict[torch.Size, list[int]] = {}
    for row, image in enumerate(images):
        if not isinstance(image, Tensor) or image.dim() != 3:
            got = f"{tuple(image.shape)}" if isinstance(image, Tensor) else type(image).__name__
            raise ValueError(f"`images` must hold (3, H, W) tensors, got {got} at place {row}")
        by_size.setdefault(image.shape, []).append(row)
    return list(by_size.values())


def _check_target(row: int, target: Target, num_classes: int) -> None:
    if not isinstance(target, Mapping) or not {"boxes", "labels"} <= target.keys():
        raise ValueError(f'`targets` must hold dicts with "boxes" and "labels", got something else at place {row}')
    boxes, labels = target["boxes"], target["labels"]
    if labels.dim() != 1 or boxes.shape != (len(labels), 4):
        shapes = f"{tuple(boxes.shape)} and {tuple(labels.shape)}"
        raise ValueError(f"`targets` must hold boxes (n, 4) and labels (n,), got {shapes} at place {row}")
    if torch.is_floating_point(labels) or not torch.is_floating_point(boxes):
        kinds = f"{boxes.dtype} and {labels.dtype}"
        raise ValueError(f"`targets` must hold float boxes and int64 labels, got {kinds} at place {row}")
    if not boxes.isfinite().all():
        raise ValueError(f"boxes of `targets` must be finite, got {boxes.tolist()} at place {row}")
    try:
        check_labels(labels.cpu().numpy(), num_classes)
        check_corners(boxes.detach().cpu().numpy())
    except ValueError as error:
        raise ValueError(f"`targets` at place {row}: {error}") from None
