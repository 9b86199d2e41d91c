"""Use an exported detector: NumPy and onnxruntime, no torch. Take this one file to the machine that runs it."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

GREY = 115  # of the canvas beside a picture, as in training


class Found(NamedTuple):
    """Objects of one picture, best first: `boxes` (n, 4) `xyxy` pixels, `scores` (n,), `names` of n classes."""

    boxes: NDArray[np.float32]
    scores: NDArray[np.float32]
    names: list[str]


class OnnxDetector:
    """The detector in a file of `export_onnx`; `class_names` and `image_size` come out of the file."""

    def __init__(self, path: str | Path, threads: int = 0) -> None:
        """Open a file of `export_onnx`.

        Args:
            threads: for one operator; 0 leaves the number to onnxruntime.

        Raises:
            ValueError: the file is from elsewhere.
        """
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        metadata = self.session.get_modelmeta().custom_metadata_map
        missing = sorted({"class_names", "image_size"} - metadata.keys())
        if missing:
            raise ValueError(f"{path} has no metadata {missing}; it was not written by export_onnx")
        self.class_names: list[str] = json.loads(metadata["class_names"])
        height, width = json.loads(metadata["image_size"])
        self.image_size: tuple[int, int] = height, width

    def run(self, images: NDArray[np.float32]) -> list[Any]:
        """The raw outputs `boxes`, `scores`, `labels`, `valid` for images (B, 3, H, W) float32 in 0..1."""
        return self.session.run(None, {"images": images})

    def __call__(self, pictures: NDArray[np.uint8]) -> list[Found]:
        """Find objects in pictures (B, H, W, 3) uint8 RGB, as Pillow and most decoders give them."""
        if pictures.ndim != 4 or pictures.shape[1:] != (*self.image_size, 3) or pictures.dtype != np.uint8:
            wanted = f"(B, {self.image_size[0]}, {self.image_size[1]}, 3) uint8"
            advice = "; a photograph of any size is for `find`"
            raise ValueError(f"`pictures` must be {wanted}, got {pictures.shape} {pictures.dtype}{advice}")
        images = pictures.transpose(0, 3, 1, 2).astype(np.float32) / np.float32(255)
        rows = zip(*self.run(images), strict=True)
        return [Found(boxes[valid], scores[valid], self._names(labels[valid])) for boxes, scores, labels, valid in rows]

    def find(self, photograph: Any) -> Found:
        """Find objects in one picture of any size, which is shown as in training: scaled to fit, grey beside it.

        Args:
            photograph: an image file, a picture of Pillow's, or (H, W, 3) uint8 RGB. This needs Pillow.

        Returns:
            Boxes are in pixels of the picture.
        """
        from PIL import Image, ImageOps

        picture = Image.fromarray(photograph) if isinstance(photograph, np.ndarray) else photograph
        if isinstance(picture, str | Path):
            picture = ImageOps.exif_transpose(Image.open(picture))
        scale = min(self.image_size[1] / picture.width, self.image_size[0] / picture.height)
        width, height = (max(1, round(side * scale)) for side in picture.size)
        canvas = np.full((*self.image_size, 3), GREY, np.uint8)
        canvas[:height, :width] = np.asarray(picture.convert("RGB").resize((width, height), Image.Resampling.BILINEAR))
        (found,) = self(canvas[None])
        edges = np.array([*picture.size] * 2, np.float32)
        on_canvas = np.array([width, height] * 2, np.float32)
        boxes: NDArray[np.float32] = np.clip(found.boxes * edges / on_canvas, 0, edges, dtype=np.float32)
        # What is found on the grey is not in the picture.
        (seen,) = np.nonzero(((boxes[:, 2:] - boxes[:, :2]) >= 1).all(axis=1))
        return Found(boxes[seen], found.scores[seen], [found.names[row] for row in seen])

    def _names(self, labels: NDArray[np.int64]) -> list[str]:
        return [self.class_names[label] if self.class_names else str(label) for label in labels]
