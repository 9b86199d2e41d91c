"""From an image file to boxes, scores and labels, and to a file that shows them."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor

from frcnn_lite.detection import FasterRCNN
from frcnn_lite.engine.draw_boxes import draw_boxes

MAX_SIDE = 1024  # pixels; larger pictures are shrunk for the detector, boxes are given in their own pixels


class Prediction(NamedTuple):
    """Objects of one picture, best first: boxes (n, 4) float32 xyxy pixels of it, scores (n,) in 0..1, labels (n,)."""

    boxes: Tensor
    scores: Tensor
    labels: Tensor


def read_image(path: str | Path) -> Image.Image:
    """The picture in a file as RGB, turned the way the camera was held.

    Raises FileNotFoundError, or ValueError that names a file which cannot be read as a picture.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no image at {path}")
    try:
        with Image.open(path) as image:
            return ImageOps.exif_transpose(image).convert("RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:  # Pillow's ways to say "damaged"
        raise ValueError(f"{path} cannot be read as an image: {error}") from error


@torch.no_grad()
def predict(model: FasterRCNN, image: Image.Image, *, min_score: float = 0.5) -> Prediction:
    """What `model`, in eval mode, finds in one picture of any size with at least `min_score`."""
    if not 0 <= min_score <= 1:
        raise ValueError(f"min_score must be between 0 and 1, got {min_score}")
    scale = min(1.0, MAX_SIDE / max(image.size))
    width, height = (max(1, round(side * scale)) for side in image.size)
    small = image.resize((width, height), Image.Resampling.BILINEAR) if scale < 1 else image
    pixels = torch.from_numpy(np.array(small)).permute(2, 0, 1)[None].to(torch.float32) / 255
    found = model(pixels.to(next(model.parameters()).device))
    keep = found.valid[0] & (found.scores[0] >= min_score)
    return Prediction(found.boxes[0][keep].cpu() / scale, found.scores[0][keep].cpu(), found.labels[0][keep].cpu())


def predict_file(
    model: FasterRCNN, path: str | Path, out_dir: str | Path, class_names: Sequence[str], *, min_score: float = 0.5
) -> tuple[Path, Prediction]:
    """Predict one image file and write a picture of the result into `out_dir` as PNG, never over an existing file.

    Returns where the picture is, and the prediction.
    """
    image = read_image(path)
    prediction = predict(model, image, min_score=min_score)
    captions = [
        f"{class_names[label]} {score:.2f}"
        for label, score in zip(prediction.labels.tolist(), prediction.scores.tolist(), strict=True)
    ]
    target = _free_name(Path(out_dir), Path(path).stem)
    target.parent.mkdir(parents=True, exist_ok=True)
    draw_boxes(image, prediction.boxes, captions).save(target)
    return target, prediction


def _free_name(folder: Path, stem: str) -> Path:
    target, number = folder / f"{stem}.png", 1
    while target.exists():
        number += 1
        target = folder / f"{stem}-{number}.png"
    return target
