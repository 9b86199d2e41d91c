"""What every pytest run needs, so that a bare `pytest --nbval notebooks` is the same test as `make test`."""

import gc
import importlib
import os
import signal
import sys
from pathlib import Path

import pytest

from course.kit.live import still_outputs
from course.tools.kernels import start_again

# Stored outputs were made on virtual GPUs; on a machine with real ones they must come out the same.
os.environ["FRCNN_LITE_DEVICES"] = "virtual"
os.environ["VGPUS_QUIET"] = "1"  # and nothing says that those are hidden
os.environ["FRCNN_LITE_QUIET"] = "1"  # and do not say whether a kernel was in the cache
os.environ["FRCNN_LITE_LEARN"] = "off"  # and those of a reader who has answered nothing yet

NOTEBOOKS = Path(__file__).resolve().parent / "notebooks"
TESTS_AMONG_THEM = (NOTEBOOKS / "course", NOTEBOOKS / "posts" / "verdicts")
SANITIZE = NOTEBOOKS / "course" / "tests" / "notebooks" / "nbval_sanitize.cfg"
CELL_TIMEOUT = 300.0
OUTPUT_TIMEOUT = 60
# A notebook is to run within 60 s (`make notebooks` says so when it does not). A test must not fail because a machine
# is busy: with ten times the work of an idle one, a notebook within its budget still ends in time. So this bound
# catches only what has gone wrong altogether.
NOTEBOOK_SECONDS = 10 * 60.0


def pytest_configure(config: pytest.Config) -> None:
    """Ctrl-C as in a terminal; nbval with this environment's kernel, our sanitiser, a reader's patience."""
    # A shell starts what it runs in the background deaf to Ctrl-C, and a process hands that on to its children.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    option = config.option
    if not getattr(option, "nbval", False):
        return
    option.nbval_current_env = option.nbval_kernel_name is None
    option.nbval_sanitize_with = option.nbval_sanitize_with or str(SANITIZE)
    nbval_kernel = importlib.import_module("nbval.kernel")
    nbval_kernel.start_new_kernel = start_again(nbval_kernel.start_new_kernel)
    option.nbval_cell_timeout = min(option.nbval_cell_timeout, CELL_TIMEOUT)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """`pytest --nbval notebooks` collects notebooks: the tests that stand beside them run where they are named."""
    if collection_path not in TESTS_AMONG_THEM:
        return None
    named = [(config.invocation_params.dir / argument.split("::")[0]).resolve() for argument in config.args]
    return None if any(path.is_relative_to(collection_path) for path in named) else True


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put long files first, make nbval patient, and let it compare what a visit has left in a file by its still twins.

    One worker runs all tests of a file: were a long file among the last, the others would wait for that worker.

    nbval stops a kernel after 5 s between two messages, too few for a busy machine (nbval issues 136 and 231). And only
    `make lab` saves notebooks in stored form: other editors leave buttons and the reader's own answers in them.
    """
    items.sort(key=lambda item: item.get_closest_marker("starts_early") is None)
    for item in items:
        if hasattr(item, "output_timeout"):
            item.output_timeout = OUTPUT_TIMEOUT
            item.cell.outputs = still_outputs(item.cell.get("outputs", []))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leave out what no made-up GPU can answer (`packages/vgpu/tests/one_gpu`)."""
    if item.get_closest_marker("compiles") and getattr(sys.modules.get("torch"), "gpu_is_made_up", False):
        pytest.skip("the compiler asks the driver of the GPU, and this one is made up")


def pytest_collection_finish() -> None:
    """Keep what the imports made out of every later garbage collection: none of those objects becomes garbage."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Give everything back to the last collection: else Triton's binding reports it as leaked, behind the result."""
    gc.unfreeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo):
    """Fail the cell with which a notebook leaves its time budget."""
    report = yield
    if hasattr(item, "cell_num") and call.when == "call":
        notebook = item.parent
        notebook.seconds = getattr(notebook, "seconds", 0.0) + call.duration
        if notebook.seconds > NOTEBOOK_SECONDS and report.passed:
            report.outcome = "failed"
            report.longrepr = f"{notebook.name} has run for {notebook.seconds:.0f} s; a notebook has 60 s"
    return report
