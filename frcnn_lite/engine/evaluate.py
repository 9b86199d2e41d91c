"""Judge a detector on a data set."""

from collections.abc import Iterator

import torch
from torch import Tensor
from tqdm.auto import tqdm

from frcnn_lite.data import DetectionDataset, Letterbox, LetterboxedScenes, Scene, collate
from frcnn_lite.detection import FasterRCNN
from frcnn_lite.engine.average_precision import AveragePrecision, Judged, average_precision
from frcnn_lite.parallel import is_main_rank, merge_rows, rows_of_rank


def evaluate(
    model: FasterRCNN,
    dataset: DetectionDataset,
    *,
    letterbox: Letterbox | None = None,
    batch_size: int = 8,
    progress: bool = False,
) -> AveragePrecision:
    """Judge `model`, on the device it is on, over all pictures of `dataset`. Leaves its training mode as it was.

    In a process group every rank calls this, and every rank gets the result for all pictures, each counted once.

    Args:
        letterbox: the canvas on which `model` is shown each picture, such as `Run.letterbox`; None where all pictures
            of `dataset` have one size, or are on a canvas already. Sizes of objects are those in the dataset.
        batch_size: pictures that go through the model together; the result does not depend on it.
        progress: show a bar on standard error, or in the notebook.

    Raises:
        ValueError: the data set has no picture.
    """
    dataset = LetterboxedScenes(dataset, letterbox) if letterbox else dataset
    judged = judge(model, dataset, batch_size=batch_size, progress=progress)
    return average_precision(judged, dataset.class_names)


@torch.no_grad()
def judge(model: FasterRCNN, dataset: DetectionDataset, *, batch_size: int = 8, progress: bool = False) -> list[Judged]:
    """The objects that `model` finds in each picture beside those that are there, on the CPU; ranks share the pictures.

    Args:
        batch_size, progress: as in `evaluate`.

    Raises:
        ValueError: the data set has no picture.
    """
    if len(dataset) == 0:
        raise ValueError("`dataset` must hold at least one picture, got none")
    device = next(model.parameters()).device
    was_training = model.training
    model.eval()
    try:
        rows = rows_of_rank(len(dataset))
        judged: list[Judged] = []
        silent = not (progress and is_main_rank())
        with tqdm(total=len(rows), disable=silent, desc="judge", unit="picture") as bar:
            for scenes in _groups(dataset, rows, batch_size):
                judged += _judge_batch(model, scenes, device)
                bar.update(len(scenes))
        return merge_rows(judged)
    finally:
        model.train(was_training)


def _judge_batch(model: FasterRCNN, scenes: list[Scene], device: torch.device) -> Iterator[Judged]:
    detections = model(collate(scenes).images.to(device))
    boxes, scores, labels, valid = (field.cpu() for field in detections)
    for row, scene in enumerate(scenes):
        true_boxes, true_labels, ignored, crowd = _truth(scene)
        found = valid[row]
        yield Judged(
            scene.image_id,
            true_boxes,
            true_labels,
            ignored,
            crowd,
            boxes[row, found],
            scores[row, found],
            labels[row, found],
            scene.scale,
        )


def _truth(scene: Scene) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Boxes, labels, and for each whether it is ignored and whether it is a crowd; the ignored ones come last."""
    none = torch.zeros(len(scene.labels), dtype=torch.bool)
    if scene.ignored is None:
        return scene.boxes, scene.labels, none, none
    boxes, labels, crowd = scene.ignored
    return (
        torch.cat([scene.boxes, boxes]),
        torch.cat([scene.labels, labels]),
        torch.cat([none, torch.ones_like(crowd)]),
        torch.cat([none, crowd]),
    )


def _groups(dataset: DetectionDataset, rows: range, size: int) -> Iterator[list[Scene]]:
    for start in range(0, len(rows), size):
        yield [dataset[row] for row in rows[start : start + size]]
