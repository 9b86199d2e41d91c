"""Checkpoints that survive a crash while they are written, and load without running code from the file."""

import re
import zipfile
from pathlib import Path
from typing import Any

import torch

from frcnn_lite.whole_file import whole_file

FORMAT = 1
KINDS = {"step": int, "trainer": dict, "config": dict, "weights": dict, "data": dict}  # beside the format


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
    for key, kind in KINDS.items():
        if key in state and not isinstance(state[key], kind):
            got = type(state[key]).__name__
            raise CheckpointError(
                f"{path} is not a checkpoint of frcnn_lite: {key!r} must be of {kind.__name__}, got {got}"
            )
    return state


def read_saved(path: Path) -> Any:
    """The contents of a file of `torch.save`, tensors on the CPU. Raises CheckpointError.

    `weights_only=True` refuses pickled code: a checkpoint from a stranger is data. PyTorch does not compare the
    checksums in the file, so a bit that has changed on the disk would be a wrong weight; here they are compared.
    """
    if not path.is_file():
        raise CheckpointError(f"no checkpoint at {path}")
    try:
        damage = _damage(path)
        if not damage:
            return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch, pickle and zipfile each raise their own kinds for a damaged file
        raise CheckpointError(f"{path} cannot be read: {_reason(path, error)}. The file was left as it is.") from error
    raise CheckpointError(f"{path} cannot be read: {damage}. The file was left as it is.")


def to_cpu(value: Any) -> Any:
    """A nested state with every tensor on the CPU, so that a file never asks for the device it came from."""
    if isinstance(value, torch.Tensor):
        return value.detach().cpu()
    if isinstance(value, dict):
        return {key: to_cpu(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(to_cpu(entry) for entry in value)
    return value


def require_finite(weights: dict[str, torch.Tensor], path: Path) -> None:
    """Raises CheckpointError, which names them, when weights read from `path` are not finite: nothing can be found."""
    wrong = [name for name, t in weights.items() if t.is_floating_point() and not torch.isfinite(t).all()]
    if wrong:
        raise CheckpointError(f"{path} holds weights that are not finite: {listed(wrong)}")


def listed(names: list[str]) -> str:
    """The first three names, and how many more there are."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def _damage(path: Path) -> str:
    """The damage of the file as a whole, without a look at what it holds; "" where it is sound."""
    with path.open("rb") as file:
        start = file.read(4)
    if not start:
        return "it is empty"
    if start != b"PK\3\4":
        return ""  # PyTorch before 1.6 wrote a different form, which has no checksums
    if not zipfile.is_zipfile(path):
        return "it is cut off"
    with zipfile.ZipFile(path) as archive:
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in archive.infolist()):
            return "torch.save did not write it, because it is compressed"
        broken = archive.testzip()
    return f"it is damaged, because the checksum of {broken!r} in it is wrong" if broken else ""


def _reason(path: Path, error: Exception) -> str:
    """Why the file cannot be read; torch's own words go on with advice about how files are broken in general."""
    words = str(error)
    if isinstance(error, zipfile.BadZipFile):
        return "it is damaged"
    if not zipfile.is_zipfile(path):
        return "torch.save did not write it"
    if code := re.search(r"GLOBAL (\S+)", words):
        return f"it holds code ({code[1]}), which is not run"
    if "TorchScript" in words:
        return "it is a TorchScript program, not weights"
    return (words.splitlines() or [type(error).__name__])[0].split(". ")[0].rstrip(".")
