"""Try an export: which operator set and operators came out, and whether onnxruntime computes what torch does.

The exporter's own talk is left out; the TorchScript one writes whole graphs from C++, past Python's `sys.stdout`.
"""

import contextlib
import io
import logging
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn


class Trial(NamedTuple):
    """`opset` written; `operators` in the order of the graph; `difference`: the largest from torch over all inputs."""

    opset: int
    operators: tuple[str, ...]
    difference: float


def try_export(module: nn.Module, example: Tensor, *others: Tensor, **arguments: Any) -> Trial:
    """Export `module` in eval mode with `torch.onnx.export(**arguments)`, then run `example` and `others` both ways.

    Raises what the exporter raises where it cannot, and what onnxruntime raises where it cannot run the file.
    """
    import onnx
    import onnxruntime

    module = module.eval()
    with tempfile.TemporaryDirectory() as folder, silence():
        path = Path(folder, "trial.onnx")
        torch.onnx.export(module, (example,), str(path), **arguments)
        model = onnx.load(path)
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        (name,) = (entry.name for entry in session.get_inputs())
        differences = [_difference(module(x), session.run(None, {name: x.numpy()})[0]) for x in (example, *others)]
    (opset,) = (entry.version for entry in model.opset_import if entry.domain == "")
    return Trial(opset, tuple(node.op_type for node in model.graph.node), max(differences))


def _difference(expected: Tensor, found: Any) -> float:
    """Infinite where even the shapes differ."""
    if expected.shape != found.shape:
        return float("inf")
    return float((expected.detach() - torch.from_numpy(found)).abs().max())  # noqa: FL002 a trial is on the CPU


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Nothing reaches file descriptors 1 and 2, Python's streams, warnings or logging."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(1), os.dup(2)]
    disabled = logging.root.manager.disable
    with open(os.devnull, "w") as nowhere, contextlib.ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        stack.enter_context(contextlib.redirect_stderr(io.StringIO()))
        logging.disable(logging.CRITICAL)
        for number in (1, 2):
            os.dup2(nowhere.fileno(), number)
        try:
            yield
        finally:
            for number, copy in zip((1, 2), kept, strict=True):
                os.dup2(copy, number)
                os.close(copy)
            logging.disable(disabled)
