"""Fixtures of the virtual-GPU tests: each test gets its machine, and gives it back."""

import contextlib
import gc
from collections.abc import Iterator

import pytest
import torch

import vgpu

# PyTorch's test helpers forbid the whole process to set flags of torch.backends; tests of other folders do set them.
# On a machine with a GPU they would also ask it for cuDNN, although all tests here are of virtual ones.
with pytest.MonkeyPatch.context() as _patch:
    _patch.setattr(torch.backends, "disable_global_flags", lambda: None)
    _patch.setattr(torch.cuda, "is_available", lambda: False)
    with contextlib.suppress(ImportError):  # they need expecttest, which the core of these tests does without
        import torch.testing._internal.common_utils


def pytest_collection_finish() -> None:
    """Keep what the imports made out of every later collection: none of those 200,000 objects becomes garbage.

    Each test that has `gpus` begins with a collection, which would spend 0.2 s on looking through them.
    """
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Give everything back to the last collection: else Triton's binding reports it as leaked, behind the result."""
    gc.unfreeze()


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[torch.device]]:
    """Four virtual GPUs for one test."""
    vgpu.fresh_memory()  # what an earlier test has left would count once CUDA is initialized, in the middle of a test
    gc.freeze()  # and what is held now, such as modules that earlier tests imported, no later collection looks through
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    with vgpu.virtual_gpus(4, force=True) as devices:
        torch.manual_seed(0)
        yield devices
        torch.set_default_device(None)
        monkeypatch.undo()  # while they are still there: afterwards it would put replaced functions back for good


@pytest.fixture(scope="session", autouse=True)
def _name_torch(record_testsuite_property) -> None:
    """For compatibility.py, which reads the results of --junitxml."""
    record_testsuite_property("torch", torch.__version__)
