"""What a program has recorded: every value under its name, on the CPU, or that it raised, and where."""

from __future__ import annotations

import traceback
from dataclasses import dataclass, field
from typing import Any

import torch

NAME = "<program>"


@dataclass
class Record:
    """Names and values in the order in which the program recorded them."""

    values: dict[str, Any] = field(default_factory=dict)
    raised: str = ""  # the class of the exception and its line in the program
    message: str = ""

    def __call__(self, name: str, value: Any) -> None:
        while name in self.values:
            name += "'"
        if isinstance(value, torch.Tensor):
            value = value.detach().to("cpu", copy=True)
            if value.is_inference():
                value = value.clone()
        self.values[name] = value

    def fails(self, error: BaseException) -> None:
        """Note that the program has raised."""
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == NAME]
        self.raised = f"{type(error).__name__} in line {lines[-1] if lines else '?'}"
        self.message = str(error)
