"""Faster R-CNN lite as one ONNX file, with everything in it that a user of the file has to know.

The exporter of torch knows neither RoI pooling, RoIAlign nor non-maximum suppression of this package; the translations
below say what they are in ONNX. `MaxRoiPool`, `RoiAlign` and `NonMaxSuppression` follow the rules of `frcnn_lite.ops`:
the tests compare them bit for bit, number for number and box for box.

Needs the extra `onnx`: `pip install "frcnn_lite[onnx]"`.
"""

import copy
import importlib.util
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from frcnn_lite.detection import FasterRCNN
from frcnn_lite.whole_file import whole_file

OPSET = 18
"""The oldest operator set that the exporter writes by itself; it exists since December 2022."""
UINT8, INT32, INT64, BOOL = 2, 6, 7, 9  # element types as onnx.TensorProto numbers them
LOWEST, NO_SCORE = -1e38, -3e38


def export_onnx(
    model: FasterRCNN,
    path: str | Path,
    *,
    image_size: tuple[int, int] = (128, 128),
    batch: int | None = None,
    class_names: Sequence[str] = (),
) -> None:
    """Write the detector to the file `path`, which must not exist yet.

    The graph takes `images` (B, 3, H, W) float32 in 0..1 and gives `boxes` (B, D, 4), `scores` (B, D), `labels` (B, D)
    int64 and `valid` (B, D) bool, the fields of `Detections`. Its metadata name classes, image size and preprocessing.

    Args:
        image_size: (height, width) in pixels, fixed in the file: anchors and clipping become constants.
        batch: the number of images per call, fixed in the file; None for any number.
        class_names: one name a class, or none.

    Raises:
        FileExistsError, WriteError (the disk is full, or the folder can only be read: nothing is left of the file),
        ModuleNotFoundError (the extra is not installed), ValueError.
    """
    path = Path(path)
    if path.exists():
        raise FileExistsError(f"{path} exists already; choose another name")
    if class_names and len(class_names) != model.config.num_classes:
        raise ValueError(f"`class_names` must name {model.config.num_classes} classes, got {len(class_names)}")
    if batch is not None and batch < 1:
        raise ValueError(f"`batch` must be at least 1, or None for any number, got {batch}")
    _require("onnx", "onnxscript")
    # A dimension of one example reads like a constant to torch.export, so any number is traced with two.
    example = torch.zeros(batch or 2, model.config.in_channels, *image_size)
    program = torch.onnx.export(
        _Deployed(model),
        (example,),
        input_names=["images"],
        output_names=["boxes", "scores", "labels", "valid"],
        dynamic_shapes=None if batch else ({0: torch.export.Dim("batch")},),
        custom_translation_table=translations(),
        opset_version=OPSET,
        verbose=False,
    )
    assert program is not None  # it is None only where a file name is given
    program.model.metadata_props.update(_metadata(image_size, class_names))
    with whole_file(path) as partial:
        program.save(str(partial), external_data=False)


class _Deployed(nn.Module):
    """A copy on the CPU in eval mode, whose forward has the one argument that a deployed model has."""

    def __init__(self, model: FasterRCNN) -> None:
        super().__init__()
        self.detector = copy.deepcopy(model).cpu()
        self.eval()

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        return tuple(self.detector(images))


def _metadata(image_size: tuple[int, int], class_names: Sequence[str]) -> dict[str, str]:
    return {
        "class_names": json.dumps(list(class_names)),
        "image_size": json.dumps(list(image_size)),
        "preprocessing": "RGB, channels first, float32, pixel values divided by 255; the graph subtracts the mean",
        "canvas": "a picture is scaled to fit in its own proportions, at the top left, with grey of 115 beside it",
        "boxes": "x1 y1 x2 y2 in pixels of the input",
    }


def _require(*packages: str) -> None:
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise ModuleNotFoundError(
            f'exporting to ONNX needs {" and ".join(missing)}: pip install "frcnn_lite[onnx]"', name=missing[0]
        )


# ---- translations ----------------------------------------------------------------------------------------------------
# Each is called with symbolic values while the graph is written, and each `op.` call adds one node to it.


def translations() -> dict[Callable[..., Any], Callable[..., Any]]:
    """How the operators that ONNX does not know are written with those that it knows.

    Returns:
        The `custom_translation_table` of `torch.onnx.export`: operator -> a function to call in its place.
    """
    return {
        torch.ops.frcnn_lite.roi_pool.default: _roi_pool,
        torch.ops.frcnn_lite.roi_align.default: _roi_align,
        torch.ops.frcnn_lite.nms_mask.default: _nms_mask,
        torch.ops.aten.sort.stable: _stable_sort,
    }


def _operators() -> Any:
    from onnxscript import opset18

    return opset18


def _roi_pool(
    features: Any, rois: Any, ph: int, pw: int, spatial_scale: float, argmax_bits: int = 32
) -> tuple[Any, Any]:
    op = _operators()
    values = op.MaxRoiPool(features, rois, pooled_shape=[ph, pw], spatial_scale=spatial_scale)
    return values, op.Identity(values)  # the second is the argmax, which only the backward pass reads


def _roi_align(
    features: Any, rois: Any, ph: int, pw: int, spatial_scale: float, sampling_ratio: int, aligned: bool
) -> Any:
    op = _operators()
    first, second, end = (op.Constant(value_ints=[k]) for k in (0, 1, 5))
    images = op.Cast(op.Squeeze(op.Slice(rois, first, second, second), second), to=INT64)
    return op.RoiAlign(
        features,
        op.Slice(rois, second, end, second),
        images,
        coordinate_transformation_mode="half_pixel" if aligned else "output_half_pixel",
        output_height=ph,
        output_width=pw,
        sampling_ratio=max(sampling_ratio, 0),
        spatial_scale=spatial_scale,
    )


def _nms_mask(boxes: Any, scores: Any, iou_threshold: float, classes: Any = None) -> Any:
    """`NonMaxSuppression` lists what it keeps as (image, class, box); scattered, the list is a mask again.

    It takes scores (B, classes, K). A box has no score but in its own class, so classes leave each other alone without
    shifting a coordinate. -inf is raised to LOWEST: such a box comes last, and is still a box.

    Args:
        boxes: (B, K, 4).
        scores: (B, K).
        iou_threshold: a number, which becomes a constant of the graph.
        classes: (B, K) int64 or None.

    Returns:
        (B, K) bool, as `suppress` gives it.
    """
    op = _operators()
    first, second = op.Constant(value_ints=[0]), op.Constant(value_ints=[1])
    per_class = op.Unsqueeze(op.Clip(scores, op.Constant(value_float=LOWEST)), second)
    if classes is not None:
        one = op.Constant(value_int=1)
        numbers = op.Range(op.Constant(value_int=0), op.Add(op.ReduceMax(classes, keepdims=0), one), one)
        own = op.Equal(op.Unsqueeze(classes, second), op.Unsqueeze(numbers, op.Constant(value_ints=[0, 2])))
        per_class = op.Where(own, per_class, op.Constant(value_float=NO_SCORE))
    shape = op.Shape(scores)
    threshold, least = op.Constant(value_floats=[iou_threshold]), op.Constant(value_floats=[2 * LOWEST])
    kept = op.NonMaxSuppression(boxes, per_class, op.Gather(shape, second), threshold, least)
    places = op.Gather(kept, op.Constant(value_ints=[0, 2]), axis=1)
    nothing = op.Expand(op.Cast(op.Constant(value_int=0), to=BOOL), shape)
    true = op.Expand(op.Cast(op.Constant(value_int=1), to=BOOL), op.Gather(op.Shape(kept), first))
    return op.ScatterND(nothing, places, true)


def _stable_sort(x: Any, *, stable: bool | None = None, dim: int = -1, descending: bool = False) -> tuple[Any, Any]:
    """`TopK` of everything: by its definition the lower index comes first among equals, which is what stable means."""
    op = _operators()
    size = op.Gather(op.Shape(x), op.Constant(value_ints=[dim]))
    narrow = x.dtype == UINT8  # onnxruntime has no TopK of bytes
    values, order = op.TopK(op.Cast(x, to=INT32) if narrow else x, size, axis=dim, largest=int(descending))
    return (op.Cast(values, to=UINT8) if narrow else values), order
