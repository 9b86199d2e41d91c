"""The catalogue: every entry marked *today* happens, is found by its message, and its fix works."""

import io
import json
import re
import subprocess
import sys
import traceback
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import torch
from torch import distributed

from frcnn_lite import cli
import vgpu
from frcnn_lite.tools import copy, explain
from multigpu.failures import Failure, catalogue
from multigpu.failures.match import matching, nearest
from course.failures_page import NOTEBOOK_PAGE, notebook_page
from multigpu.failures.page import PAGE, ROOT, page
from course.failures_search import SHOWN, entry_html, find, search

IDS = {entry.id: entry for entry in catalogue()}
OLDEST = (2, 11)  # torch that is supported


def release(text: str) -> tuple[int, ...]:
    """The first two numbers: (2, 11) of "until torch 2.11"."""
    return tuple(int(number) for number in re.findall(r"\d+", text)[:2])


PAST = {name: release(entry.mark) for name, entry in IDS.items() if entry.mark.startswith("until torch ")}
OVER = [name for name, last in PAST.items() if last < release(torch.__version__)]
TODAY = [name for name in IDS if name not in OVER]  # simulations fail today like the rest
PREAMBLE = "import torch\nfrom torch import nn\n"


@cache
def headings(notebook: Path) -> frozenset[str]:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    lines = (line for cell in cells if cell["cell_type"] == "markdown" for line in "".join(cell["source"]).splitlines())
    return frozenset(line.lstrip("#").strip() for line in lines if line.startswith("#"))


@pytest.fixture
def four_gpus(monkeypatch: pytest.MonkeyPatch, fresh_memory: None) -> Iterator[None]:
    """Four virtual GPUs; a process group that a program began is ended."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    with vgpu.virtual_gpus(4, force=True):
        torch.manual_seed(0)
        yield
        if distributed.is_initialized():
            distributed.destroy_process_group()


def run(program: str, entry: Failure) -> None:
    """Run a program of the catalogue, as a warning is raised where the failure is one."""
    with warnings.catch_warnings():
        warnings.simplefilter("error" if entry.raises.endswith("Warning") else "ignore")
        exec(compile(PREAMBLE + program, entry.id, "exec"), {"__name__": entry.id})


@pytest.mark.parametrize("name", TODAY)
def test_program_fails_as_told(name: str, four_gpus: None) -> None:
    entry = IDS[name]
    with pytest.raises(BaseException) as caught:
        run(entry.program, entry)
    assert entry.raises in {kind.__name__ for kind in type(caught.value).__mro__}, caught.value
    text = "".join(traceback.format_exception(caught.value))
    assert any(re.search(pattern, " ".join(text.split()), re.IGNORECASE) for pattern in entry.patterns), text
    assert matching(text)[0] == entry, [found.id for found in matching(text)]


@pytest.mark.parametrize("name", OVER)
def test_what_is_over_does_not_fail_any_more(name: str, four_gpus: None) -> None:
    run(IDS[name].program, IDS[name])


@pytest.mark.parametrize("name", TODAY)
def test_repaired_program_runs(name: str, four_gpus: None) -> None:
    run(IDS[name].repaired, IDS[name])


@pytest.mark.parametrize("name", TODAY)
def test_silent_failures_raise_nothing_of_their_own(name: str) -> None:
    entry = IDS[name]
    asserts = entry.program.strip().splitlines()[-1].startswith("assert")
    assert asserts == entry.silent


@pytest.mark.parametrize("name", IDS)
def test_every_wording_finds_its_entry_first(name: str) -> None:
    for text in (IDS[name].message, *IDS[name].older):
        assert matching(text)[0].id == name


@pytest.mark.parametrize("name", IDS)
def test_entry_is_whole(name: str) -> None:
    entry = IDS[name]
    assert entry.mark == "today" or re.fullmatch(r"until torch [\d.]+|simulated only", entry.mark)
    assert entry.program and bool(entry.repaired) == (PAST.get(name, OLDEST) >= OLDEST)
    assert not entry.helper or entry.helper in copy.helpers()
    (notebook,) = (ROOT / "notebooks").glob(f"{entry.notebook}_*.ipynb")
    assert entry.section in headings(notebook)
    assert all(thread.kind in ("issues", "pull") and thread.year > 2014 for thread in entry.threads)


def test_names_are_unique() -> None:
    assert len(IDS) == len(catalogue())


def test_page_is_in_step() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m multigpu.failures.page"


def test_page_among_the_notebooks_is_in_step() -> None:
    assert NOTEBOOK_PAGE.read_text(encoding="utf-8") == notebook_page(), "run python -m multigpu.failures.page"


@pytest.mark.parametrize("name", IDS)
def test_both_pages_hold_every_entry(name: str) -> None:
    assert f"\n### {name}\n" in page() and f"[{name}](../docs/failures.md#{name})" in notebook_page()


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("batchnorm", "running-statistics"),
        ("BatchNorm one row", "batch-of-one"),
        ("out of memory", "first-gpu-full"),
        ("StopIteration", "no-parameters"),
        ("in the middle of a log\n" + IDS["two-devices"].message, "two-devices"),
    ],
)
def test_search_finds(typed: str, expected: str) -> None:
    assert find(typed)[0].id == expected


def test_search_field_shows_what_it_finds() -> None:
    field = search()
    assert find("") == list(catalogue()) and "<details" not in field.results.value
    field.field.value = "found at least two devices"
    assert field.results.value.startswith("<p aria-live='polite'><b>1</b> entry</p><details open>")
    assert entry_html(IDS["two-devices"], unfolded=True) in field.results.value
    field.field.value = "device"
    assert field.results.value.count("<details>") == SHOWN < len(find("device"))
    field.field.value = "zzz qqq"
    assert "<b>0</b> entries" in field.results.value
    assert field._repr_mimebundle_()["text/plain"].startswith("Live in JupyterLab")


def test_entry_in_html_is_escaped_and_whole() -> None:
    entry = IDS["tests-need-two-gpus"]
    html = entry_html(entry)
    assert "device_count() &gt;= 2" in html and entry.threads[0].url in html and "<details>" in html


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("found at least two devices", "two-devices"),
        ("my DataParallel output batch size is half", "rows-lost"),
        ("attributes set in forward are lost with DataParallel", "attribute-lost"),
        ("nms gives duplicates in fp16", "half-offsets"),
        ("why does gpu 0 use more memory", "first-gpu-full"),
        ("nms gives different results on cpu and gpu", "nms-ties"),
        ("DataParallel is slower than one GPU", "no-faster"),
        ("gradient accumulation gives a worse loss", "accumulation-scale"),
    ],
)
def test_words_of_ones_own(words: str, expected: str) -> None:
    assert matching(words)[0].id == expected


def test_what_is_no_failure_of_ours_matches_nothing() -> None:
    assert matching("ModuleNotFoundError: No module named 'pandas'") == []
    assert nearest("gather of unequal dicts on the CPU")


def test_explain_tells_cause_fix_and_where_to_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", "Gather function not implemented for CPU tensors"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("gathered-cpu:")
    assert "cause:" in told and "fix:" in told and "03_a_loss_is_a_sum_and_a_count.ipynb" in told
    assert "https://github.com/amdegroot/ssd.pytorch/issues/570" in told


def test_explain_reads_a_file_and_standard_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "train.log"
    log.write_text("step 7\nTraceback (most recent call last):\n  ...\n" + IDS["batch-of-one"].message)
    assert explain.main([str(log)]) == 0
    assert capsys.readouterr().out.startswith("batch-of-one:")
    monkeypatch.setattr("sys.stdin", io.StringIO(log.read_text()))
    assert explain.main([]) == 0
    assert capsys.readouterr().out.startswith("batch-of-one:")


def test_explain_lists_and_names_entries(capsys: pytest.CaptureFixture[str]) -> None:
    assert explain.main(["--list"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(IDS)
    assert explain.main(["roi-index"]) == 0
    assert capsys.readouterr().out.startswith("roi-index:")


def test_explain_ends_quietly_when_its_reader_does() -> None:
    command = [sys.executable, "-m", "frcnn_lite", "explain", "--list"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=PAGE.parents[1]) as child:
        assert child.stdout is not None and child.stderr is not None
        child.stdout.close()
        assert child.stderr.read() == b""
    assert child.returncode == 0


def test_explain_says_what_comes_nearest(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert explain.main(["ZeroDivisionError in my replica scheduler thing"]) == 1
    shown = capsys.readouterr()
    assert shown.out == "" and "Nearest:" in shown.err
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert explain.main([]) == 2
