"""The pytest plugin: `pytest --vgpus 2`, the fixture `virtual_gpus`, the marker `@pytest.mark.virtual_gpus(4)`.

Every pytest session on the machine loads this file, so it imports torch where somebody asks for GPUs and nowhere else.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

_MARKER = "virtual_gpus(gpus=2, memory=None, force=False): run the test on this many virtual GPUs of this much memory"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--vgpus` and `--vgpus-force`."""
    group = parser.getgroup("virtual GPUs")
    group.addoption("--vgpus", type=int, metavar="N", help="run all tests on N virtual GPUs (default: VGPUS, or none)")
    group.addoption("--vgpus-force", action="store_true", help="also where the machine has real GPUs")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and switch virtual GPUs on for the session if that is wanted."""
    config.addinivalue_line("markers", _MARKER)
    wanted = config.getoption("vgpus")
    if wanted is None and not os.environ.get("VGPUS"):
        return
    import vgpu

    try:
        if vgpu.is_enabled() and wanted is None:
            return  # `python -m vgpu -m pytest` was first, or the variable itself
        vgpu.enable(wanted, force=config.getoption("vgpus_force"))
    except (TypeError, ValueError, RuntimeError) as error:
        raise pytest.UsageError(f"--vgpus: {error}") from None
    config.add_cleanup(vgpu.disable)
    if wanted is not None:  # a variable has reached the children of the tests already
        _tell_children(config, wanted)


def _tell_children(config: pytest.Config, gpus: int) -> None:
    """Let the programs that tests start (torchrun, subprocess) be virtual, too, until the session ends."""
    from vgpu.inherit import for_children

    environment = pytest.MonkeyPatch()
    for name, value in for_children(gpus).items():
        environment.setenv(name, value)
    config.add_cleanup(environment.undo)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Give the tests that carry the marker the fixture."""
    names = getattr(item, "fixturenames", None)
    if names is not None and item.get_closest_marker("virtual_gpus") and "virtual_gpus" not in names:
        names.insert(0, "virtual_gpus")


@pytest.fixture
def virtual_gpus(request: pytest.FixtureRequest) -> Iterator[list[Any]]:
    """Virtual GPUs for one test, as its marker says: by default those of the session, or two. Yields their devices."""
    import vgpu
    from vgpu import devices

    marker = request.node.get_closest_marker("virtual_gpus")
    args, kwargs = (marker.args, dict(marker.kwargs)) if marker else ((), {})
    if not args and "gpus" not in kwargs:
        kwargs["gpus"] = devices.total() or 2
    kwargs.setdefault("force", request.config.getoption("vgpus_force"))
    with vgpu.virtual_gpus(*args, **kwargs) as found:
        yield found


@pytest.fixture
def vgpu_fresh_memory() -> None:
    """Memory counters that start from zero: see `vgpu.fresh_memory`."""
    import vgpu

    vgpu.fresh_memory()
