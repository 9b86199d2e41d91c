"""The pytest plugin: `pytest --vgpus 2`, the fixtures `virtual_gpus` and `vgpu_ranks`, the marker `virtual_gpus(4)`.

Every pytest session on the machine loads this file, so it imports torch where somebody asks for GPUs and nowhere else.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest

_MARKER = (
    "virtual_gpus(gpus=2, memory=None, profile=None, errors=None, random=None, triton=None): run the test on this "
    "many virtual GPUs, of this much memory, that are such GPUs, with errors of kernels 'early' or 'late', random "
    "numbers of 'cpu' or 'cuda', and, by triton='interpret', kernels of Triton that its interpreter runs"
)
_EACH = ("memory", "profile", "errors", "random", "triton")  # what is said of each GPU, and by variables, too
_GATES = ("min", "no_skips", "strict", "races", "delay")
_EXPECTED = (
    "regular expressions, one a line: what --vgpus-no-skips and --vgpus-strict would name, and what one of these is "
    "found in, does not fail the run"
)
_failed = pytest.StashKey[str]()  # why the session has no GPUs although it wants some; empty where it has them
_said = pytest.StashKey[str]()  # what was said when they came, while pytest kept all output to itself


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options `--vgpus...` and the setting `vgpus_expected`."""
    group = parser.getgroup("virtual GPUs")
    group.addoption("--vgpus", type=int, metavar="N", help="run all tests on N virtual GPUs (default: VGPUS, or none)")
    memory = (
        "of each virtual GPU, as in 64MiB (default: VGPUS_MEMORY, else the profile's, else a share of the machine's)"
    )
    group.addoption("--vgpus-memory", metavar="SIZE", help=memory)
    profile = "which GPU they are: t4, a100-40, a100-80, h100, h200, rtx4090 (default: VGPUS_PROFILE)"
    group.addoption("--vgpus-profile", metavar="GPU", help=profile)
    errors = "when an index out of range fails: late, as on GPUs, or early, at its line (default: VGPUS_ERRORS)"
    group.addoption("--vgpus-errors", metavar="WHEN", help=errors)
    random = "whose random numbers they draw: cpu or cuda (default: VGPUS_RANDOM, else cpu)"
    group.addoption("--vgpus-random", metavar="WHOSE", help=random)
    triton = (
        "interpret: Triton's interpreter runs its kernels on the CPU (default: VGPUS_TRITON, else they are refused)"
    )
    group.addoption("--vgpus-triton", metavar="HOW", help=triton)
    races = "fail a test in which two streams use the same memory and nothing orders them"
    group.addoption("--vgpus-races", action="store_true", help=races)
    delay = "let streams be as late as they may be, so that a test with a race finds wrong numbers"
    group.addoption("--vgpus-delay", action="store_true", help=delay)
    group.addoption("--vgpus-force", action="store_true", help="accepted, and without effect")
    group.addoption("--vgpus-min", type=int, metavar="N", help="fail if fewer than N tests ran on virtual GPUs")
    group.addoption(
        "--vgpus-no-skips", action="store_true", help="fail if a test that asks for GPUs was skipped, and name it"
    )
    group.addoption(
        "--vgpus-strict", action="store_true", help="fail if a test met what virtual GPUs do not simulate, and name it"
    )
    parser.addini("vgpus_expected", _EXPECTED, type="linelist", default=[])


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Switch on before the first conftest.py is imported: many ask there, once, how many GPUs there are."""
    _switch_on(early_config, early_config.known_args_namespace)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and what reports on a session with virtual GPUs."""
    config.addinivalue_line("markers", _MARKER)
    _switch_on(config, config.option)  # where a conftest.py has loaded this file, nothing above ran
    sys.stderr.write(config.stash.get(_said, ""))
    if config.stash.get(_failed, ""):
        raise pytest.UsageError(f"vgpu: {config.stash[_failed]}")
    if _failed in config.stash:
        from vgpu.observing.pytest_run import Run

        least = config.getoption("vgpus_min")
        if least is not None and least < 1:
            raise pytest.UsageError(f"--vgpus-min must be at least 1, got {least}: with it, no run could fail")
        config.pluginmanager.register(Run(config), "vgpu-run")
        return
    for option in (*_EACH, *_GATES):
        if config.getoption(f"vgpus_{option}") not in (None, False):
            name = option.replace("_", "-")
            raise pytest.UsageError(f"--vgpus-{name} needs --vgpus N: this session has no virtual GPUs")


def _switch_on(config: pytest.Config, options: argparse.Namespace) -> None:
    """Give the session its GPUs, if it wants any and has none yet, and keep what went wrong, or an empty text."""
    if _failed in config.stash or (options.vgpus is None and not os.environ.get("VGPUS")):
        return
    import torch  # noqa: F401  first: startup.py may wait for it, and must find none of these files half imported

    import vgpu
    from vgpu.racing import watch
    from vgpu.starting import choices

    config.stash[_failed] = ""
    try:
        watch.check()
        # `python -m vgpu -m pytest` was first, or the variable itself
        chosen = any(getattr(options, f"vgpus_{name}") is not None for name in _EACH)
        if options.vgpus is not None or chosen or not vgpu.is_enabled():
            with contextlib.redirect_stderr(io.StringIO()) as said:
                given = {name: getattr(options, f"vgpus_{name}") for name in _EACH}
                vgpu.enable(_number(options), **choices.of_each(given, "--vgpus-{}"))
            config.stash[_said] = said.getvalue()
            config.add_cleanup(vgpu.disable)
    except (TypeError, ValueError, RuntimeError) as error:
        config.stash[_failed] = str(error)  # pytest reports errors of usage from `pytest_configure`


def _number(options: argparse.Namespace) -> int | None:
    """How many GPUs the option asks for, if it is possible."""
    import vgpu

    try:
        return None if options.vgpus is None else vgpu.check_gpus(options.vgpus)
    except ValueError as error:
        raise ValueError(f"--vgpus: {error}") from None


def pytest_itemcollected(item: pytest.Item) -> None:
    """Give the tests that carry the marker the fixture."""
    names = getattr(item, "fixturenames", None)
    if names is not None and item.get_closest_marker("virtual_gpus") and "virtual_gpus" not in names:
        names.insert(0, "virtual_gpus")


@pytest.fixture
def virtual_gpus(request: pytest.FixtureRequest) -> Iterator[list[Any]]:
    """Virtual GPUs for one test, as its marker says: by default those of the session, or two. Yields their devices."""
    import vgpu
    from vgpu.machine import contexts, devices

    marker = request.node.get_closest_marker("virtual_gpus")
    args, kwargs = (marker.args, dict(marker.kwargs)) if marker else ((), {})
    if not args and "gpus" not in kwargs:
        kwargs["gpus"] = devices.total() or 2
    with vgpu.virtual_gpus(*args, **kwargs) as found:
        yield found
        contexts.settle()


@pytest.fixture
def vgpu_ranks(virtual_gpus: list[Any]) -> Any:
    """`vgpu.ranks(n)` for the virtual GPUs of the test: `vgpu_ranks(function)(arguments)` runs on a rank for each."""
    import vgpu

    return vgpu.ranks(len(virtual_gpus))


@pytest.fixture
def vgpu_fresh_memory() -> None:
    """Memory counters that start from zero: see `vgpu.fresh_memory`."""
    import vgpu

    vgpu.fresh_memory()
