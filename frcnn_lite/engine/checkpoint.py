"""Checkpoints that survive a crash while they are written, and load without running code from the file."""

from pathlib import Path
from typing import Any

import torch

from frcnn_lite.whole_file import whole_file

FORMAT = 1


class CheckpointError(ValueError):
    """A checkpoint that is missing, damaged or of another model. The message names the file."""


def save_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Write `state` (tensors, numbers, strings, lists, dicts) to `path`, all or nothing.

    A crash at any moment leaves either the old file or the new one (see `whole_file`), and a disk that is too full for
    the new one keeps the old one. Raises WriteError, which says why the file could not be written.
    """
    with whole_file(path, replace=True) as partial, partial.open("wb") as file:
        torch.save({"format": FORMAT, **to_cpu(state)}, file)


def load_checkpoint(path: Path) -> dict[str, Any]:
    """The state that `save_checkpoint` wrote, tensors on the CPU. Raises CheckpointError."""
    state = read_saved(path)
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise CheckpointError(f"{path} is not a checkpoint of frcnn_lite, format {FORMAT}")
    return state


def read_saved(path: Path) -> Any:
    """What `torch.save` wrote, tensors on the CPU. Raises CheckpointError.

    `weights_only=True` refuses pickled code: a checkpoint from a stranger is data.
    """
    if not path.is_file():
        raise CheckpointError(f"no checkpoint at {path}")
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch, pickle and zipfile each raise their own kinds for a damaged file
        raise CheckpointError(
            f"{path} cannot be read: {_first_sentence(error)}. The file was left as it is."
        ) from error


def to_cpu(value: Any) -> Any:
    """A nested state with every tensor on the CPU, so that a file never asks for the device it came from."""
    if isinstance(value, torch.Tensor):
        return value.detach().cpu()
    if isinstance(value, dict):
        return {key: to_cpu(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(to_cpu(entry) for entry in value)
    return value


def _first_sentence(error: Exception) -> str:
    """What is wrong; torch goes on with advice about how files are broken in general."""
    return (str(error).splitlines() or [type(error).__name__])[0].split(". ")[0].rstrip(".")
