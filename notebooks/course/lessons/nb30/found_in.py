"""The content of a checkpoint, or the reason why it cannot be read."""

from pathlib import Path
from typing import Any

import torch


def found_in(file: Path) -> Any:
    """Return what `torch.load` reads, or the first sentence of the error that it raises."""
    try:
        return torch.load(file, weights_only=True)
    except RuntimeError as error:
        return str(error).split(". ")[0]
