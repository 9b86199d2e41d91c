"""A sample of PyTorch's own operator table on `cuda:1` beside the CPU; opinfo_check.py runs the whole."""

import warnings
import zlib

import pytest
import torch

pytest.importorskip("expecttest", reason="PyTorch's own tables need what the extra `test` installs")

import opinfo_check

# Operators that cannot agree, each with its reason. This list only ever shrinks.
REASONS = {
    "histogram": "CUDA has no kernel for it, and virtual GPUs raise what PyTorch raises there",
    "histogramdd": "CUDA has no kernel for it, and virtual GPUs raise what PyTorch raises there",
    "sparse.sampled_addmm": "compressed sparse layouts are not simulated",
    "sparse.mm.reduce": "compressed sparse layouts are not simulated",
    "tensor_split": "its indices must lie on the CPU, on real GPUs too; the sample puts them on the GPU",
}
ALWAYS = ("nn.functional.", "index", "scatter", "gather", "cat", "where", "matmul", "linalg.svd", "fft.fft", "expand")


def chosen(op) -> bool:
    """One operator in eight by its name, and what detectors use, whatever the order of the table."""
    name = opinfo_check.name_of(op)
    return zlib.crc32(name.encode()) % 8 == 0 or name in REASONS or name.startswith(ALWAYS)


OPS = {opinfo_check.name_of(op): op for op in opinfo_check.op_db if chosen(op)}


@pytest.mark.parametrize("name", OPS)
def test_operator(gpus, name: str):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        difference = opinfo_check.check(OPS[name], torch.float32, samples=2)
    if name in REASONS:
        assert difference, f"{name} agrees now: take it off the list"
    else:
        assert difference is None
