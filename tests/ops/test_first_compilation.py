"""Who waits for numba's compiler is told so, once; with the cache on disk there is nothing to tell."""

import os
import subprocess
import sys

import pytest

POOL_TWICE = """
import torch
from frcnn_lite.ops import roi_pool
for k in range(2):
    features = torch.rand(1, 3, 8, 8, requires_grad=True)
    roi_pool(features, torch.tensor([[0.0, 1, 1, 5, 5]]), 2).sum().backward()
"""


def said(cache: os.PathLike, **environment: str) -> list[str]:
    """What a fresh process that pools regions writes to stderr."""
    inherited = {name: value for name, value in os.environ.items() if name != "FRCNN_LITE_QUIET"}
    child = subprocess.run(
        [sys.executable, "-c", POOL_TWICE],
        env={**inherited, "NUMBA_CACHE_DIR": str(cache), **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return [line for line in child.stderr.splitlines() if "compiling" in line]


def test_one_line_with_an_empty_cache_and_none_afterwards(tmp_path):
    pytest.importorskip("numba")
    line = "frcnn_lite: compiling RoI max pooling for this processor, once (about 4 s)"
    assert said(tmp_path) == [line]
    assert said(tmp_path) == []


def test_no_line_where_output_is_compared(tmp_path):
    pytest.importorskip("numba")
    assert said(tmp_path, FRCNN_LITE_QUIET="1") == []
