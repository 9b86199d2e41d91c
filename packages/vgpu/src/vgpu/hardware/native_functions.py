"""PyTorch's native_functions.yaml: whether CUDA has a kernel for an operator, and who checks the devices."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import torch


@functools.cache
def _text() -> str:
    path = Path(torch.__file__).parent.parent / "torchgen" / "packaged" / "ATen" / "native" / "native_functions.yaml"
    return path.read_text(encoding="utf-8") if path.exists() else ""


@functools.cache
def entry(name: str, overload: str) -> str:
    """The lines on an operator and on the one that it delegates to; empty for other operators."""
    base = re.escape(name + (f".{overload}" if overload else ""))
    found = re.search(rf"^- func: {base}\(.*?(?=^- func:|\Z)", _text(), re.MULTILINE | re.DOTALL)
    if found is None:
        return ""
    delegate = re.search(r"structured_delegate: ([^.\s]+)\.?(\S*)", found[0])
    return found[0] + (entry(delegate[1], delegate[2]) if delegate else "")


def on_cuda(name: str, overload: str) -> tuple[str, str]:
    """The operator, by name and overload, that has CUDA's kernel: itself, its in-place form or its form with `out=`."""
    for form in ((name, overload), (f"{name}_", overload), (name, "out")):
        if "CUDA" in entry(*form):
            return form
    return name, overload


def iterates(name: str, overload: str) -> bool:
    """Whether TensorIterator checks the devices (the yaml says NoCheck), not the wrapper that torchgen writes."""
    lines = entry(name, overload)
    own = lines.partition("\n\n")[0]  # without those of the operator that it delegates to
    return not lines or "device_check: NoCheck" in own or "CUDA" not in lines


def wrapper(name: str, overload: str) -> str:
    """What torchgen calls the function that checks, as in torchgen/dest/register_dispatch_key.py."""
    kernel = f"{name}_out" if overload.endswith("out") else name
    if "structured" not in entry(name, overload):
        return f"wrapper_CUDA_{overload}_{kernel}"
    return f"wrapper_CUDA_{kernel}_{overload}" if overload else f"wrapper_CUDA_{kernel}"
