"""Judge a detector on a data set."""

from collections.abc import Iterator

import torch

from frcnn_lite.data import DigitScenes, Scene, collate
from frcnn_lite.detection import FasterRCNN
from frcnn_lite.engine.average_precision import AveragePrecision, Judged, average_precision
from frcnn_lite.parallel import merge_rows, rows_of_rank


def evaluate(model: FasterRCNN, dataset: DigitScenes, *, batch_size: int = 8) -> AveragePrecision:
    """Judge `model`, on the device it is on, over all pictures of `dataset`. Leaves its training mode as it was.

    In a process group every rank calls this, and every rank gets the result for all pictures, each counted once.
    Raises ValueError for a data set without pictures.
    """
    if len(dataset) == 0:
        raise ValueError("dataset must hold at least one picture, got none")
    return average_precision(judge(model, dataset, batch_size=batch_size), dataset.class_names)


@torch.no_grad()
def judge(model: FasterRCNN, dataset: DigitScenes, *, batch_size: int = 8) -> list[Judged]:
    """What `model` finds in each picture beside what is there, on the CPU; ranks share the pictures out."""
    device = next(model.parameters()).device
    was_training = model.training
    model.eval()
    try:
        groups = _groups(dataset, rows_of_rank(len(dataset)), batch_size)
        return merge_rows([one for scenes in groups for one in _judge_batch(model, scenes, device)])
    finally:
        model.train(was_training)


def _judge_batch(model: FasterRCNN, scenes: list[Scene], device: torch.device) -> Iterator[Judged]:
    detections = model(collate(scenes).images.to(device))
    boxes, scores, labels, valid = (field.cpu() for field in detections)
    for row, scene in enumerate(scenes):
        none = torch.zeros(len(scene.labels), dtype=torch.bool)
        found = valid[row]
        yield Judged(
            scene.image_id,
            scene.boxes,
            scene.labels,
            none,
            none,
            boxes[row, found],
            scores[row, found],
            labels[row, found],
        )


def _groups(dataset: DigitScenes, rows: range, size: int) -> Iterator[list[Scene]]:
    for start in range(0, len(rows), size):
        yield [dataset[row] for row in rows[start : start + size]]
