"""The catalogue: every entry is whole, found by its message, and told by `explain`."""

import io
import re
import subprocess
import sys
from pathlib import Path

import pytest

from multigpu import explain
from multigpu.__main__ import main
from multigpu.failures import catalogue
from multigpu.failures.match import matching, nearest
from multigpu.failures.page import PAGE, page

IDS = {entry.id: entry for entry in catalogue()}
OLDEST = (2, 11)  # torch that is supported
PAST = {name: entry.mark for name, entry in IDS.items() if entry.mark.startswith("until torch ")}


@pytest.mark.parametrize("name", IDS)
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
    over = tuple(map(int, re.findall(r"\d+", PAST[name])[:2])) if name in PAST else OLDEST
    assert entry.program and bool(entry.repaired) == (over >= OLDEST)
    assert entry.notebook and entry.section
    assert all(thread.kind in ("issues", "pull") and thread.year > 2014 for thread in entry.threads)


def test_names_are_unique() -> None:
    assert len(IDS) == len(catalogue())


@pytest.mark.skipif(not PAGE.parent.is_dir(), reason="installed from no checkout, which alone has the page")
def test_page_is_in_step() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m multigpu.failures.page"


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
    assert main(["explain", "Gather function not implemented for CPU tensors"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("gathered-cpu:")
    assert "cause:" in told and "fix:" in told and "notebook 03, section" in told
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
    command = [sys.executable, "-m", "multigpu", "explain", "--list"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
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


@pytest.mark.parametrize("name", IDS)
def test_page_holds_every_entry(name: str) -> None:
    assert f"\n### {name}\n" in page()
