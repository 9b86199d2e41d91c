"""Judged pictures, with boxes that are matched by hand or drawn, for the tests of what is computed from them."""

import torch

from frcnn_lite.engine import Judged

NAMES = ("a", "b", "c")
HERE = (0.0, 0.0, 10.0, 10.0)


def moved(d):
    """HERE, d to the right: the IoU of the two is (10 - d) / (10 + d)."""
    return (d, 0.0, 10.0 + d, 10.0)


def picture(objects, found, image_id=0, ignored=(), crowd=()):
    """objects: (box, label) each; found: (box, label, score) each; ignored, crowd: rows of objects."""
    flags = [torch.tensor([row in rows for row in range(len(objects))], dtype=torch.bool) for rows in (ignored, crowd)]
    return Judged(
        image_id,
        torch.tensor([box for box, _ in objects]).reshape(-1, 4),
        torch.tensor([label for _, label in objects], dtype=torch.int64),
        *flags,
        torch.tensor([box for box, _, _ in found]).reshape(-1, 4),
        torch.tensor([score for _, _, score in found]),
        torch.tensor([label for _, label, _ in found], dtype=torch.int64),
    )


def random_pictures(seed, pictures=12, crowds=0.1, grid=None):
    """Objects, and detections that are moved, doubled, relabelled or made up; on a grid many overlaps are equal."""
    generator = torch.Generator().manual_seed(seed)

    def rand(*shape):
        return torch.rand(*shape, generator=generator)

    def some_boxes(n):
        corners = rand(n, 2) * 60
        return torch.cat([corners, corners + 9 + rand(n, 2) * 40], dim=1)  # wider than they are moved by

    judged = []
    for image_id in range(pictures):
        n, ghosts = (int(rand(1) * limit) for limit in (9, 6))
        boxes, labels = some_boxes(n), (rand(n) * len(NAMES)).long()
        copies = torch.arange(n).repeat(2)[rand(2 * n) < 0.7]
        found = torch.cat([boxes[copies] + (rand(len(copies), 4) - 0.5) * 8, some_boxes(ghosts)])
        found_labels = torch.cat([labels[copies], (rand(ghosts) * len(NAMES)).long()])
        wrong = rand(len(found_labels)) < 0.1
        found_labels[wrong] = (found_labels[wrong] + 1) % len(NAMES)
        if grid:
            boxes, found = ((corners / grid).round() * grid for corners in (boxes, found))
            boxes[:, 2:] += grid
            found[:, 2:] += grid
        crowd = rand(n) < crowds
        scores = (rand(len(found)) * 20).round() / 20  # with ties
        judged.append(Judged(image_id, boxes, labels, crowd, crowd, found, scores, found_labels))
    return judged
