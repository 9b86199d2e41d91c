"""The catalogue is true: on virtual GPUs each program fails with its message, and its repaired form runs."""

import contextlib
import gc
import re
import traceback
import warnings
from collections.abc import Iterator

import pytest

torch = pytest.importorskip("torch", reason="the programs of the catalogue are programs in PyTorch")
vgpu = pytest.importorskip("vgpu", reason="the programs of the catalogue run on virtual GPUs")
pytest.importorskip("frcnn_lite.parallel", reason="some programs of the catalogue start ranks with frcnn_lite.parallel")

from torch import distributed  # noqa: E402

from multigpu.failures import UNTESTED, Failure, catalogue  # noqa: E402
from multigpu.failures.match import matching  # noqa: E402

IDS = {entry.id: entry for entry in catalogue()}
PREAMBLE = "import torch\nfrom torch import nn\n"


def release(text: str) -> tuple[int, ...]:
    """The first two numbers: (2, 11) of "until torch 2.11"."""
    return tuple(int(number) for number in re.findall(r"\d+", text)[:2])


PAST = {name: release(entry.mark) for name, entry in IDS.items() if entry.mark.startswith("until torch ")}
OVER = [name for name, last in PAST.items() if last < release(torch.__version__)]
# Virtual GPUs refuse RPC, and run compiled programs as they are written; these programs need no GPU.
ON_THE_CPU = {"rpc-not-initialized", "recompile-limit"}
TODAY = [name for name in IDS if name not in OVER and IDS[name].mark not in UNTESTED]  # simulations fail like the rest


@pytest.fixture
def four_gpus(name: str, monkeypatch: pytest.MonkeyPatch, vgpu_fresh_memory: None) -> Iterator[None]:
    """Four virtual GPUs, or none for what runs on the CPU; a process group that a program began is ended."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    gc.freeze()  # what outlived the collection of vgpu_fresh_memory, mostly modules, no later one need look through
    with contextlib.nullcontext() if name in ON_THE_CPU else vgpu.virtual_gpus(4, force=True):
        torch.manual_seed(0)
        yield
        if distributed.is_initialized():
            distributed.destroy_process_group()


def run(program: str, entry: Failure) -> None:
    """Run a program of the catalogue, as a warning is raised where the failure is one."""
    with warnings.catch_warnings():
        warnings.simplefilter("error" if entry.raises.endswith("Warning") else "ignore")
        exec(compile(PREAMBLE + program, entry.id, "exec"), {"__name__": entry.id})


# One failure is a thread that ends by an error: pytest need not warn of it.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("name", TODAY)
def test_program_fails_as_told(name: str, four_gpus: None, capsys: pytest.CaptureFixture[str]) -> None:
    entry = IDS[name]
    with pytest.raises(BaseException) as caught:
        run(entry.program, entry)
    assert entry.raises in {kind.__name__ for kind in type(caught.value).__mro__}, caught.value
    # A log has what a kernel printed above the error, which does not say it.
    text = "".join([capsys.readouterr().err, *traceback.format_exception(caught.value)])
    assert any(
        re.search(pattern, " ".join(text.split()), re.IGNORECASE) for pattern in entry.patterns + entry.generic
    ), text
    assert matching(text)[0] == entry, [found.id for found in matching(text)]


@pytest.mark.parametrize("name", OVER)
def test_what_is_over_does_not_fail_any_more(name: str, four_gpus: None) -> None:
    run(IDS[name].program, IDS[name])


@pytest.mark.parametrize("name", TODAY)
def test_repaired_program_runs(name: str, four_gpus: None) -> None:
    run(IDS[name].repaired, IDS[name])
