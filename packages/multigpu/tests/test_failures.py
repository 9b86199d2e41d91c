"""The catalogue: every entry is whole, found by its message, and told by `explain`."""

import io
import re
import subprocess
import sys
from pathlib import Path

import pytest

from multigpu import explain
from multigpu.__main__ import main
from multigpu.failures import UNTESTED, catalogue
from multigpu.failures.match import answer, matching, nearest
from multigpu.failures.page import PAGE, page

IDS = {entry.id: entry for entry in catalogue()}
OLDEST = (2, 11)  # torch that is supported
SHOWN = [name for name, entry in IDS.items() if entry.mark not in UNTESTED]
PAST = {name: entry.mark for name, entry in IDS.items() if entry.mark.startswith("until torch ")}


@pytest.mark.parametrize("name", SHOWN)
def test_silent_failures_raise_nothing_of_their_own(name: str) -> None:
    entry = IDS[name]
    asserts = entry.program.strip().splitlines()[-1].startswith("assert")
    assert asserts == entry.silent


@pytest.mark.parametrize("name", IDS)
def test_every_wording_finds_its_entry_first(name: str) -> None:
    for text in (IDS[name].message, *IDS[name].older):
        assert matching(text)[0].id == name, text


@pytest.mark.parametrize("name", IDS)
def test_entry_is_whole(name: str) -> None:
    entry = IDS[name]
    assert entry.mark in ("today", "simulated only", *UNTESTED) or re.fullmatch(r"until torch [\d.]+", entry.mark)
    over = tuple(map(int, re.findall(r"\d+", PAST[name])[:2])) if name in PAST else OLDEST
    assert bool(entry.program) == (name in SHOWN) and bool(entry.repaired) == (name in SHOWN and over >= OLDEST)
    assert all(thread.kind in ("issues", "pull") and thread.year > 2014 for thread in entry.threads)


@pytest.mark.parametrize("name", IDS)
def test_entry_says_where_to_read_on(name: str) -> None:
    """In a section of a notebook; or it brings its sources, and how to find out, itself."""
    entry = IDS[name]
    assert bool(entry.notebook) == bool(entry.section)
    assert entry.notebook or (entry.check and entry.threads)


@pytest.mark.parametrize("name", IDS)
def test_every_symptom_finds_its_entry_first(name: str) -> None:
    for symptom in IDS[name].symptoms:
        assert matching(symptom)[0].id == name, (symptom, [entry.id for entry in matching(symptom)[:3]])


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
        ("stuck", "collective-time-out"),
        ("my training is stuck", "collective-time-out"),
        ("NCCL timeout", "collective-time-out"),
        ("it hangs after the first epoch", "uneven-steps"),
        ("oom", "out-of-memory"),
        ("slow", "ddp-no-faster"),
        ("NCCL system error", "nccl-system-error"),
        ("ChildFailedError", "child-failed"),
        ("Gather got an input of invalid size", "gathered-shapes"),
        ("process killed", "process-killed"),
    ],
)
def test_words_of_ones_own(words: str, expected: str) -> None:
    assert matching(words)[0].id == expected


def test_a_question_is_answered_by_a_guess_and_a_message_surely() -> None:
    assert not answer("why is it slow").sure
    assert answer(IDS["duplicate-gpu"].message).sure


def test_what_is_no_failure_of_ours_matches_nothing() -> None:
    assert matching("ModuleNotFoundError: No module named 'pandas'") == []
    assert matching("How do I plot a confusion matrix with matplotlib?") == []
    assert nearest("gather of unequal dicts on the CPU")


def test_the_cause_comes_before_what_follows_from_it() -> None:
    """In the log of several ranks: an error of one, the others that wait for it, and the launcher's report."""
    log = "\n".join(
        [
            "[rank1]: Traceback (most recent call last):",
            '[rank1]:   File "train.py", line 20, in main',
            "[rank1]:     loss.backward()",
            "[rank1]: " + IDS["out-of-memory"].message,
            "[rank0]: " + IDS["peer-gone"].message,
            IDS["group-not-destroyed"].message,
            IDS["child-failed"].message,
        ]
    )
    assert [entry.id for entry in matching(log)] == ["out-of-memory", "peer-gone", "child-failed"]


def test_a_pattern_that_fits_the_code_of_a_frame_only_is_a_guess() -> None:
    traceback = "\n".join(
        [
            "Traceback (most recent call last):",
            '  File "train.py", line 3, in <module>',
            "    print('CUDA out of memory')",
            "KeyError: 'label'",
        ]
    )
    assert not answer(traceback).sure


def test_a_warning_does_not_explain_an_error_that_nobody_knows() -> None:
    assert not answer(IDS["unused-search-for-nothing"].message + "\nKeyError: 'label'").sure


def test_explain_tells_cause_fix_and_where_to_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "Gather function not implemented for CPU tensors"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("gathered-cpu:")
    assert "cause:" in told and "fix:" in told and "notebook 03, section" in told
    assert "https://github.com/amdegroot/ssd.pytorch/issues/570" in told


def test_explain_says_when_it_guesses(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "training", "is", "stuck"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("No message of the catalogue") and "\ncollective-time-out:" in told


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
    assert explain.main(["two-device"]) == 1 and "  two-devices:" in capsys.readouterr().err
    assert explain.main(["/nowhere/train.log"]) == 2 and "no file /nowhere/train.log" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert explain.main([]) == 2


@pytest.mark.parametrize("name", IDS)
def test_page_holds_every_entry(name: str) -> None:
    assert f"\n### {name}\n" in page()
