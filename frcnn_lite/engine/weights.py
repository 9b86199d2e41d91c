"""One small file of a trained detector that can be handed on."""

from dataclasses import asdict
from pathlib import Path

import torch

from frcnn_lite.detection import FasterRCNN, FasterRCNNConfig
from frcnn_lite.engine.checkpoint import (
    CheckpointError,
    listed,
    load_checkpoint,
    require_finite,
    save_checkpoint,
)
from frcnn_lite.engine.config import TrainConfig


def save_weights(
    model: FasterRCNN, path: str | Path, *, half: bool = True, run: TrainConfig | None = None, step: int = 0
) -> None:
    """Write a detector, its plan and weights, to one file that must not exist yet.

    Args:
        run: how it was trained, for what is to be done with the file alone: `load_run` reads it, and `train` starts
            from it. The file then holds the names of classes, the canvas, and the paths of the data.
        step: how many steps it was trained for.
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
    about = {"step": step, "data": run.shown()} if run else {}
    save_checkpoint(path, {**about, "config": asdict(model.config), "weights": weights})


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
    return model_with(config, state["weights"], path)


def model_with(config: FasterRCNNConfig, weights: dict[str, torch.Tensor], path: Path) -> FasterRCNN:
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
