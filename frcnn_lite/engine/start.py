"""What a run begins from: torchvision's weights for a backbone or a whole detector, or a detector of this package.

Trained layers learn at a lower rate, or a few steps undo what made them worth taking. The rates are a tenth of those
from scratch, and a tenth of that for the backbone: the ratio of N. Carion et al., "End-to-End Object Detection with
Transformers" (DETR), ECCV 2020, whose AdamW has 1e-4, and 1e-5 for the backbone.
"""

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from frcnn_lite.detection import FasterRCNN, FasterRCNNConfig
from frcnn_lite.detection.torchvision_weights import by_our_names, plan_of
from frcnn_lite.engine.checkpoint import CheckpointError, load_checkpoint, read_saved, require_finite

RATES = {"lr": 3e-4, "backbone_lr": 0.1}
CLASSES = ("box_head.classify.", "box_head.regress.")  # the layers that know the classes
# What a detector of torchvision's may give beside its backbone, as far as it fits, in the order that a picture takes.
PARTS = {"the pyramid": "backbone.maps.fpn.", "the RPN": "rpn.", "the hidden layers of the head": "box_head.hidden."}
OF_THE_DATA = ("num_classes", "mirrored")  # fields of a detector's plan that follow from the new data


class Start(NamedTuple):
    """What a file of weights decides of the run that begins from it.

    Attributes:
        run: fields of `TrainConfig`.
        plan: fields of `FasterRCNNConfig`.
    """

    run: dict[str, Any]
    plan: dict[str, Any]


def read_start(path: str | Path) -> Start:
    """What the file decides. Raises FileNotFoundError, CheckpointError."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"`weights` must be a file, got {str(path)!r}")
    state = _read(Path(path))
    if "config" not in state:
        return Start(dict(RATES), plan_of(state))
    size = state.get("data", {}).get("image_size")
    known = {field.name for field in fields(FasterRCNNConfig)}.difference(OF_THE_DATA)
    plan = {name: tuple(v) if isinstance(v, list) else v for name, v in state["config"].items() if name in known}
    return Start(RATES | ({"image_size": tuple(size)} if size else {}), plan)


def start_from(model: FasterRCNN, path: str | Path, class_names: Sequence[str]) -> str:
    """Give `model` the weights of `weights_for`, and return the line that says what was taken."""
    chosen, taken = weights_for(model, path, class_names)
    model.load_state_dict(chosen, strict=False)
    return taken


def weights_for(model: FasterRCNN, path: str | Path, class_names: Sequence[str]) -> tuple[dict[str, Tensor], str]:
    """The weights of a file that `model` takes, as far as its classes and its plan let it.

    Args:
        model: also without numbers, on the device "meta".
        path: a state dict, such as `torch.save(torchvision.models.resnet18(weights="DEFAULT").state_dict(), path)`
            writes, or one of torchvision's Faster R-CNN; or a file of `save_weights`, such as `export` writes.
        class_names: of the run. Layers that know the classes are taken if the file has the same.

    Returns:
        Weights by the names of `model`, and a line that says what they are.

    Raises:
        CheckpointError: the file cannot be read, or it lacks a weight or has it in a different shape.
    """
    file, own = Path(path), model.state_dict()
    state = _read(file)
    if "config" in state:
        kept = state.get("data", {}).get("class_names") == list(class_names)
        given, needed = state["weights"], [name for name in own if kept or not name.startswith(CLASSES)]
        taken = ["all"] if kept else ["all but the layers that know the classes"]
    else:
        given, body = by_our_names(state, model.config)
        needed = [name for name in own if name.startswith(body)] or [name for name in own if "backbone" in name]
        taken = ["the backbone"]
        for part, prefix in PARTS.items():
            names = [name for name in own if name.startswith(prefix)]
            if not names or not all(_fits(name, given, own) for name in names):
                break
            needed, taken = needed + names, [*taken, part]
    wrong = [name for name in needed if not _fits(name, given, own)]
    if wrong:
        which = f"a {model.config.backbone}: {len(wrong)} are missing, such as {wrong[0]}"
        raise CheckpointError(f"{file} does not hold the weights of {which}")
    chosen = {name: given[name] for name in needed}
    require_finite(chosen, file)
    return chosen, f"taken from {file}: {', '.join(taken)}"


def _fits(name: str, given: dict[str, Tensor], own: dict[str, Tensor]) -> bool:
    return getattr(given.get(name), "shape", None) == own[name].shape


def _read(path: Path) -> dict[str, Any]:
    state = read_saved(path)
    if not isinstance(state, dict):
        raise CheckpointError(f"{path} must hold a state dict, got {type(state).__name__}")
    if "trainer" in state:
        raise CheckpointError(f"{path} is the checkpoint of a run; export the run, and start from that file")
    return load_checkpoint(path) if "config" in state else state
