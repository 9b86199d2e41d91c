"""Named tensors in a file: PyTorch's own, .npz, .safetensors, and Paddle's .pdparams to read.

Nothing here runs code of the file: `weights_only=True` for PyTorch's, `allow_pickle=False` for NumPy's, and
`safe_pickle` for Paddle's.
"""

import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course.lessons.nb31.safe_pickle import load_arrays
from frcnn_lite.whole_file import whole_file

PADDLE_NAMES = "StructuredToParameterName@@"  # a table in .pdparams: name in the model -> name in a static graph


def read_weights(file: str | Path, section: str | None = None) -> dict[str, Tensor]:
    """The tensors of a file, on the CPU, as they are stored.

    section: in a checkpoint that holds more than weights, the key they stand under; dots go deeper ("trainer.model").
    Raises FileNotFoundError; ValueError for an unknown suffix or when the weights cannot be told from the rest.
    """
    path = Path(file)
    return tensors_of(_reader(path, _READERS)(path), path.name, section)


def write_weights(state: Mapping[str, Tensor], file: str | Path) -> None:
    """Write named tensors to a file that must not exist yet: .pt, .pth, .npz or .safetensors.

    Raises FileExistsError, ValueError for an unknown suffix, TypeError for bfloat16 in .npz, which NumPy lacks, and
    WriteError where the disk is full or the folder can only be read; then nothing is left of the file.
    """
    path = Path(file)
    write = _reader(path, _WRITERS)
    # a clone each: tensors that share memory, as tied weights do, cannot be told apart in a safetensors file
    own = {name: tensor.detach().cpu().clone().contiguous() for name, tensor in state.items()}
    with whole_file(path) as partial:
        write(own, partial)


def tensors_of(held: Any, file: str, section: str | None = None) -> dict[str, Tensor]:
    """The named tensors in what a file held: all of it, its `section`, or its only part that is nothing but tensors."""
    for key in section.split(".") if section else ():
        if not isinstance(held, Mapping) or key not in held:
            raise ValueError(f"`section={section!r}`: no {key!r} in {file}, which has {_keys(held)}")
        held = held[key]
    if _is_state(held):
        return dict(held)
    parts = {key: part for key, part in held.items() if _is_state(part)} if isinstance(held, Mapping) else {}
    if section or len(parts) != 1:
        raise ValueError(f"{file} holds {_keys(held)}: name the part with the weights, section='...'")
    return dict(next(iter(parts.values())))


def _is_state(held: Any) -> bool:
    return isinstance(held, Mapping) and len(held) > 0 and all(isinstance(value, Tensor) for value in held.values())


def _keys(held: Any) -> str:
    return ", ".join(map(repr, held)) if isinstance(held, Mapping) else f"a {type(held).__name__}"


def _reader(path: Path, table: dict[str, Callable[..., Any]]) -> Callable[..., Any]:
    if path.suffix not in table:
        raise ValueError(f"`file` must end in one of {', '.join(table)}, got {path.name!r}")
    return table[path.suffix]


def _read_torch(path: Path) -> Any:
    return torch.load(path, map_location="cpu", weights_only=True)


def _write_torch(state: dict[str, Tensor], path: Path) -> None:
    with path.open("wb") as file:  # given a name, torch.save does not say why it could not write
        torch.save(state, file)


def _read_npz(path: Path) -> dict[str, Tensor]:
    with np.load(path, allow_pickle=False) as arrays:
        return {name: as_tensor(arrays[name]) for name in arrays.files}


def _write_npz(state: dict[str, Tensor], path: Path) -> None:
    if odd := [name for name, tensor in state.items() if tensor.dtype == torch.bfloat16]:
        raise TypeError(f"{odd[0]!r} is bfloat16, which NumPy lacks: write .safetensors, or float32")
    # np.savez takes names as keyword arguments, so a parameter called "file" would be its first argument
    with zipfile.ZipFile(path, "w") as archive:
        for name, tensor in state.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, tensor.numpy(), allow_pickle=False)


def _read_safetensors(path: Path) -> dict[str, Tensor]:
    from safetensors.torch import load_file

    return load_file(path)


def _write_safetensors(state: dict[str, Tensor], path: Path) -> None:
    from safetensors.torch import save_file

    save_file(state, path)


def _read_paddle(path: Path) -> dict[str, Tensor]:
    return {name: as_tensor(array) for name, array in load_arrays(path).items() if name != PADDLE_NAMES}


def as_tensor(array: np.ndarray) -> Tensor:
    """A tensor with memory of its own, in this machine's byte order."""
    return torch.from_numpy(array.astype(array.dtype.newbyteorder("="), order="C", copy=True))


_READERS: dict[str, Callable[..., Any]] = {
    ".pt": _read_torch,
    ".pth": _read_torch,
    ".npz": _read_npz,
    ".safetensors": _read_safetensors,
    ".pdparams": _read_paddle,
}
_WRITERS: dict[str, Callable[..., Any]] = {
    ".pt": _write_torch,
    ".pth": _write_torch,
    ".npz": _write_npz,
    ".safetensors": _write_safetensors,
}
