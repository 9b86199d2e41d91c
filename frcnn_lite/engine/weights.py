"""A trained detector to use, from a run directory or from one small file that can be handed on."""

from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch

from frcnn_lite.data import Letterbox
from frcnn_lite.detection import FasterRCNN, FasterRCNNConfig
from frcnn_lite.engine.checkpoint import (
    CheckpointError,
    listed,
    load_checkpoint,
    read_saved,
    require_finite,
    save_checkpoint,
)
from frcnn_lite.engine.config import TrainConfig
from frcnn_lite.engine.runs import RunDirectory


class Run(NamedTuple):
    """A run as it was read from its directory.

    Attributes:
        config: how it was trained.
        model: the detector, in eval mode, on the CPU.
        step: how many steps it was trained for.
        history: its log, a record for each step.
    """

    config: TrainConfig
    model: FasterRCNN
    step: int
    history: list[dict[str, Any]]

    @property
    def letterbox(self) -> Letterbox | None:
        """The canvas on which pictures are shown, as in training; None for digits, which are found at any size."""
        return None if self.config.data == "digits" else Letterbox(*self.config.image_size)


def load_run(path: str | Path, *, best: bool = False) -> Run:
    """A run as it was at its last checkpoint, or when it was judged best.

    Args:
        path: the directory of the run.
        best: take the best weights in place of the last ones.

    Raises:
        FileNotFoundError: there is no run.
        CheckpointError: its checkpoint is damaged or was never written.
    """
    run = RunDirectory.open(path)
    config = run.read_config()
    file = run.best_file if best else run.checkpoint_file
    state = load_checkpoint(file)
    try:
        weights, step = state["weights"] if best else _trained(state["trainer"]), state["step"]
    except (KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{file} is not the checkpoint of a run") from error
    require_step(step, config, file)
    model = _model_with(config.model, weights, file)
    return Run(config, model, step, run.read_log(before_step=step))


def require_step(step: int, config: TrainConfig, file: Path) -> None:
    """Raises CheckpointError when a run of this configuration cannot have taken so many steps."""
    if not 0 <= step <= config.steps:
        raise CheckpointError(f"{file} is not a checkpoint of this run: it is of step {step} of {config.steps}")


def _trained(trainer: dict[str, Any]) -> dict[str, torch.Tensor]:
    """The weights to use: `Trainer.detector`'s."""
    module = "module."  # in the average's names, beside which it counts its steps
    average = {
        name.removeprefix(module): t for name, t in trainer.get("average", {}).items() if name.startswith(module)
    }
    return average or trainer["model"]


def save_weights(model: FasterRCNN, path: str | Path, *, half: bool = True) -> None:
    """Write the detector alone, configuration and weights, to one file that must not exist yet.

    Args:
        half: write parameters as float16, which halves the file; buffers keep their precision.

    Raises:
        FileExistsError: there is such a file.
        WriteError: the system does not let it be written.
    """
    path = Path(path)
    if path.exists():
        raise FileExistsError(f"{path} exists already; choose another name")
    parameters = {name for name, _ in model.named_parameters()}
    weights = {
        name: tensor.to(torch.float16) if half and name in parameters else tensor
        for name, tensor in model.state_dict().items()
    }
    save_checkpoint(path, {"config": asdict(model.config), "weights": weights})


def load_weights(path: str | Path) -> FasterRCNN:
    """The detector in a file of `save_weights`: float32, eval mode, on the CPU. Raises CheckpointError."""
    path = Path(path)
    state = load_checkpoint(path)
    if not {"config", "weights"} <= state.keys():
        raise CheckpointError(f"{path} holds no weights; a checkpoint of a run is opened by load_run(directory)")
    try:
        config = FasterRCNNConfig.from_dict(state["config"])
    except (ValueError, TypeError, KeyError) as error:
        raise CheckpointError(f"{path} holds the configuration of a different model: {error}") from error
    return _model_with(config, state["weights"], path)


def start_backbone(model: FasterRCNN, path: str | Path) -> None:
    """Give the torchvision backbone of `model` the weights that torchvision's model of the same name has in a file.

    Layers that the detector does not take from there are passed over; a pyramid's own keep their initial weights.

    Args:
        path: a state dict, such as `torch.save(torchvision.models.resnet18(weights="DEFAULT").state_dict(), path)`
            writes.

    Raises:
        CheckpointError: the file cannot be read, or it lacks a weight or has it in a different shape.
    """
    name, maps = model.config.backbone, cast(Any, model.backbone).maps
    mobile = name.startswith("mobilenet")
    body = maps.body if model.config.fpn else maps[0] if mobile else maps
    state = read_saved(Path(path))
    if not isinstance(state, dict):
        raise CheckpointError(f"{path} must hold a state dict, got {type(state).__name__}")
    own = body.state_dict()
    wanted = {f"features.{key}" if mobile else key: key for key in own}
    wrong = [key for key, ours in wanted.items() if getattr(state.get(key), "shape", None) != own[ours].shape]
    if wrong:
        raise CheckpointError(
            f"{path} does not hold the weights of a {name}: {len(wrong)} are missing, such as {wrong[0]}"
        )
    chosen = {ours: state[key] for key, ours in wanted.items()}
    require_finite(chosen, Path(path))
    body.load_state_dict(chosen)


def _model_with(config: FasterRCNNConfig, weights: dict[str, torch.Tensor], path: Path) -> FasterRCNN:
    """The detector with these weights; a file that only says that it is large is refused before memory is asked for."""
    try:
        with torch.device("meta"):
            wanted = {name: tensor.shape for name, tensor in FasterRCNN(config).state_dict().items()}
        given = {name: tensor.shape for name, tensor in weights.items()}
        if other := _difference(wanted, given):
            raise CheckpointError(f"{path} holds weights of a different model: {other}")
        model = FasterRCNN(config)
        model.load_state_dict(weights)  # float16 widens on the way in
    except (RuntimeError, AttributeError, TypeError) as error:
        raise CheckpointError(f"{path} holds weights of a different model: {str(error).splitlines()[0]}") from error
    require_finite(model.state_dict(), path)
    return model.eval()


def _difference(wanted: dict[str, torch.Size], given: dict[str, torch.Size]) -> str:
    """How the tensors of a file differ from those of a model, in a sentence; "" where they do not."""
    kinds = {
        "missing": [name for name in wanted if name not in given],
        "unknown": [name for name in given if name not in wanted],
        "of a different shape": [name for name in wanted if name in given and wanted[name] != given[name]],
    }
    return "; ".join(f"{kind}: {listed(names)}" for kind, names in kinds.items() if names)
