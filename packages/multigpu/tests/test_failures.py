"""The catalogue: every entry is whole, found by its message, and told by `explain`."""

import ast
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from multigpu import explain
from multigpu.__main__ import main
from multigpu.failures import UNTESTED, catalogue, reading
from multigpu.failures.match import answer, matching
from multigpu.failures.page import PAGE, page
from multigpu.failures.ranking import ranked
from multigpu.failures.topics import topic
from multigpu.lint.rules import CHECKS

IDS = {entry.id: entry for entry in catalogue()}
OLDEST = (2, 11)  # torch that is supported
SHOWN = [name for name, entry in IDS.items() if entry.mark not in UNTESTED]
PAST = {name: entry.mark for name, entry in IDS.items() if entry.mark.startswith("until torch ")}


def test_only_silent_failures_end_in_an_assertion() -> None:
    ends = {name: IDS[name].program.strip().splitlines()[-1] for name in SHOWN}
    assert [name for name, end in ends.items() if end.startswith("assert") != IDS[name].silent] == []


def test_every_wording_finds_its_entry_first() -> None:
    wordings = [(name, text) for name, entry in IDS.items() for text in (entry.message, *entry.older)]
    assert [(name, text) for name, text in wordings if first(text) != name] == []


def first(text: str) -> str:
    """The entry that a text finds first, empty if it finds none."""
    return next((entry.id for entry in matching(text)), "")


def test_every_symptom_finds_its_entry_first() -> None:
    symptoms = [(name, symptom) for name, entry in IDS.items() for symptom in entry.symptoms]
    assert [(name, symptom) for name, symptom in symptoms if first(symptom) != name] == []


def test_marks_are_those_that_the_index_explains() -> None:
    marks = ("today", "simulated only", *UNTESTED)
    unknown = [name for name, entry in IDS.items() if entry.mark not in marks]
    assert [name for name in unknown if not re.fullmatch(r"until torch [\d.]+", IDS[name].mark)] == []


def test_entries_have_the_programs_that_their_marks_promise() -> None:
    """A program unless its failure is untested; a repair too, unless it is over on every supported torch."""
    kept = [name for name in SHOWN if name not in PAST or release(PAST[name]) >= OLDEST]
    assert [name for name, entry in IDS.items() if entry.program] == SHOWN
    assert [name for name, entry in IDS.items() if entry.repaired] == kept


def release(mark: str) -> tuple[int, ...]:
    """(2, 11) of "until torch 2.11"."""
    return tuple(map(int, re.findall(r"\d+", mark)[:2]))


def test_no_entry_has_the_same_expression_or_wording_twice() -> None:
    """An expression that finds an entry surely need not be among the words that guess it."""
    lists = [
        (name, texts)
        for name, entry in IDS.items()
        for texts in (
            (*entry.patterns, *entry.generic),
            entry.unless,
            (entry.message, *entry.older),
            entry.symptoms,
            entry.terms,
            entry.threads,
        )
    ]
    assert [(name, texts) for name, texts in lists if len(set(texts)) < len(texts)] == []


def test_threads_have_addresses_of_github() -> None:
    threads = [(name, thread) for name, entry in IDS.items() for thread in entry.threads]
    assert [named for named in threads if named[1].kind not in ("issues", "pull") or named[1].year <= 2014] == []


def test_entries_say_where_to_read_on() -> None:
    """In a section of a notebook, or in threads where people met it."""
    assert [name for name, entry in IDS.items() if bool(entry.notebook) != bool(entry.section)] == []
    assert [name for name, entry in IDS.items() if not (entry.notebook or entry.threads)] == []


def test_entries_say_how_to_find_out_and_what_people_say_of_them() -> None:
    assert [name for name, entry in IDS.items() if len(entry.check) < 30 or not entry.symptoms] == []


def test_checks_name_rules_and_entries_that_exist() -> None:
    rules = {rule.code for rule in CHECKS}
    assert [name for name, entry in IDS.items() if set(re.findall(r"FL\d+", entry.check)) - rules] == []
    others = [(name, other) for name in IDS for other in re.findall(r"\bsee ([a-z]+-[a-z-]+)", IDS[name].check)]
    assert [(name, other) for name, other in others if other not in IDS] == []


def test_lines_of_python_in_a_check_are_whole() -> None:
    """Each `print(...)` of a check ends where its brackets do, and is Python as it is written there."""
    begun = [
        (name, entry.check[found.start() :])
        for name, entry in IDS.items()
        for found in re.finditer(r"\bprint\(", entry.check)
    ]
    assert len(begun) > 200 and [(name, text) for name, text in begun if not begins_with_python(text)] == []


def begins_with_python(text: str) -> bool:
    """Whether a text, up to one of its closing brackets, is Python."""
    return any(is_python(text[: bracket.end()]) for bracket in re.finditer(r"\)", text))


def is_python(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def test_names_are_unique() -> None:
    assert len(IDS) == len(catalogue())


@pytest.mark.skipif(not PAGE.parent.is_dir(), reason="installed from no checkout, which alone has the page")
def test_the_readme_counts_the_failures() -> None:
    readme = " ".join((PAGE.parents[1] / "README.md").read_text(encoding="utf-8").split())
    told = sum(entry.mark in UNTESTED for entry in IDS.values())
    assert f"a catalogue of {len(IDS)} failures" in readme and f"{told} entries that take hardware" in readme


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
        ("the first gpu runs out of memory and the others have plenty", "first-gpu-full"),
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


@pytest.mark.parametrize(
    "words",
    [
        "Multiple Ranks are using the same GPU/Partition. Set NCCL_MULTI_RANK_GPU_ENABLE=1 to enable this.",
        "init.cc:1141 (initTransportsRank) NCCL WARN Multiple Ranks are using the same GPU/Partition. Set NCCL_MULTI_R",
        "ncclInvalidUsage: This usually reflects invalid usage of NCCL library.\nLast error:\n"
        "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1000",
    ],
)
def test_two_ranks_on_one_gpu_are_known_by_the_words_of_old_and_new_nccl(words: str) -> None:
    assert answer(words).sure and matching(words)[0].id == "duplicate-gpu"
    assert (
        matching(f"CUDA_VISIBLE_DEVICES=MIG-89c850dc-38e3-57df-85c7-690c186b68e9\n{words}")[0].id == "mig-one-instance"
    )


def test_what_is_no_failure_of_ours_matches_nothing() -> None:
    assert matching("ModuleNotFoundError: No module named 'pandas'") == []
    assert matching("How do I plot a confusion matrix with matplotlib?") == []
    assert ranked("gather of unequal dicts on the CPU")


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


def test_a_warning_that_the_end_of_a_run_prints_does_not_explain_it() -> None:
    left = "/usr/lib/python3.10/multiprocessing/resource_tracker.py:224: " + IDS["semaphores-left"].message
    assert answer(left).sure
    assert not answer("KeyError: 'label'\n" + left).sure
    assert answer("Segmentation fault (core dumped)\n" + left).entries[0].id == "segmentation-fault"


def test_a_rank_that_the_system_has_ended_comes_before_those_that_waited_for_it() -> None:
    waited = IDS["collective-time-out"].older[0]
    killed = "torch.distributed.elastic.multiprocessing.api: [ERROR] failed (exitcode: {}) local_rank: 0 (pid: 42)"
    assert answer(f"{waited}\n{killed.format(-9)}").entries[0].id == "process-killed"
    assert answer(f"{waited}\n{killed.format(-6)}").entries[0].id == "collective-time-out"


def test_what_stands_above_an_error_that_nobody_knows_is_a_guess() -> None:
    """Not so where the launcher's report ends a text, or where a replica's own error stands below its report."""
    unknown = "ValueError: mask and tokens differ"
    assert not answer(IDS["collective-time-out"].message + "\n" + unknown).sure
    assert not answer(unknown + "\n" + IDS["child-failed"].message).sure
    assert answer(IDS["out-of-memory"].message + "\n" + IDS["child-failed"].message).sure


def test_explain_tells_cause_fix_and_where_to_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "Was asked to gather along dimension 0, but all input tensors were scalars"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("gathered-scalars:")
    assert "cause:" in told and "fix:" in told and "notebook 03, section" in told
    assert "https://github.com/pytorch/pytorch/issues/6983" in told


def test_explain_says_when_it_guesses(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "training", "is", "stuck"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("This text holds no sure sign") and "\ncollective-time-out:" in told


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


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_explain_reads_logs_of_other_encodings(
    encoding: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "train.log"
    log.write_bytes(("Schritt 7: Verlust größer\r\n" + IDS["batch-of-one"].message + "\r\n").encode(encoding))
    assert explain.main([str(log)]) == 0
    assert capsys.readouterr().out.startswith("batch-of-one:")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(log.read_bytes()), encoding="utf-8"))
    assert explain.main([]) == 0
    assert capsys.readouterr().out.startswith("batch-of-one:")


@pytest.mark.parametrize("escape", ["\x1b", "^[", ""])
def test_colours_of_a_terminal_do_not_hide_a_message(escape: str) -> None:
    red, plain = f"{escape}[1;31m", f"{escape}[0m"
    text = (
        f"Traceback (most recent call last):\n  File {red}'a.py'{plain}, line {red}3{plain}, in step\n"
        f"{red}RuntimeError{plain}: Expected all tensors to be on the same device, but {red}found at least two "
        f"devices{plain}, cuda:0 and cuda:1!"
    )
    said = answer(text)
    assert said.sure and said.entries[0].id == "two-devices"


def test_a_message_over_several_lines_belongs_to_the_line_in_which_it_ends() -> None:
    lines = reading.lines_of("\nfirst  line\n\nsecond\n")
    plain, ends = reading.joined(lines)
    assert plain == "first line second" and ends == [0, 10, 10, 17]


def test_of_a_long_log_only_the_last_of_its_like_lines_are_read() -> None:
    steps = [f"[rank0]: step {step} of 90000, loss {1 / (1 + step):.4f}" for step in range(5000)]
    log = "\n".join([*steps, "[rank1]: " + IDS["out-of-memory"].message, *steps])
    read = reading.unrepeated(log).splitlines()
    assert read == ["[rank1]: " + IDS["out-of-memory"].message, *steps[-reading.REPEATED :]]
    assert reading.unrepeated(log[: reading.LONG - 1]) == log[: reading.LONG - 1]
    said = answer(log)
    assert said.sure and said.entries[0].id == "out-of-memory"


def test_explain_lists_and_names_entries(capsys: pytest.CaptureFixture[str]) -> None:
    assert explain.main(["--list"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(IDS)
    assert explain.main(["roi-index"]) == 0
    assert capsys.readouterr().out.startswith("roi-index:")


def test_explain_works_where_it_lies_right_below_the_root_of_a_disk() -> None:
    """As `pip install --target /app` puts it: the page of the catalogue, which only a checkout has, is not needed."""
    script = "import sys, multigpu.explain; print('multigpu.failures.page' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"


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


def test_explain_says_that_it_knows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert explain.main(["EQUIVOCATION"]) == 1
    shown = capsys.readouterr()
    assert shown.out == "" and "knows nothing about this text" in shown.err
    assert not any(f"  {name}:" in shown.err for name in IDS)


def test_explain_prints_json_with_the_lines_that_decided(capsys: pytest.CaptureFixture[str]) -> None:
    message = "ValueError: Expected more than 1 value per channel when training, got input size torch.Size([1, 4])"
    log = f"step 7\nTraceback (most recent call last):\n  File 'a.py', line 3, in step\n{message}\nbye\n"
    assert explain.main(["--json", log]) == 0
    said = json.loads(capsys.readouterr().out)
    first = said["entries"][0]
    assert (said["found"], first["entry"], first["decided_by"]) == ("sure", "batch-of-one", [message])
    assert (first["fix"], first["cause"]) == (IDS["batch-of-one"].fix, IDS["batch-of-one"].cause)
    assert first["sources"][0]["url"] == IDS["batch-of-one"].threads[0].url


@pytest.mark.parametrize(
    ("text", "how", "code", "answered"),
    [
        ("roi-index", "named", 0, True),
        ("training is stuck", "guess", 0, True),
        ("FSDP", "topic", 0, False),
        ("two-device", "near", 1, False),
        ("EQUIVOCATION", "unknown", 1, False),
    ],
)
def test_json_says_how_the_entries_were_found(
    text: str, how: str, code: int, answered: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only an answer has causes and fixes: an agent could take those of a neighbour for one."""
    assert explain.main(["--json", text]) == code
    said = json.loads(capsys.readouterr().out)
    assert said["found"] == how and bool(said["meaning"])
    assert all(("fix" in entry) == answered for entry in said["entries"])
    assert bool(said["entries"]) == (how != "unknown")


@pytest.mark.parametrize(
    ("word", "entry"), [("FSDP", "fsdp-mixed-types"), ("DDP", "unused-parameters"), ("nccl", "duplicate-gpu")]
)
def test_explain_shows_the_entries_of_a_topic_and_calls_them_a_guess(
    word: str, entry: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert explain.main([word]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("This names a topic") and "A guess" in shown and f"\n{entry:26}" in shown
    assert not topic(f"{word} hangs")


def test_topics_are_chapters_and_no_names_of_entries() -> None:
    for word in ("ddp", "nccl", "torchrun", "fsdp", "checkpoint", "amp", "dataloader", "cuda", "dp"):
        assert topic(word) and word not in IDS


INPLACE = (
    "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation: "
    "[torch.cuda.FloatTensor [32]] is at version 3; expected version 2 instead. Hint: enable anomaly detection"
)


def test_buffers_are_blamed_for_a_change_in_place_only_beside_ddp() -> None:
    alone = answer(f"[rank0]: {INPLACE}")
    assert alone.sure and [entry.id for entry in alone.entries] == ["modified-in-place"]
    for sign in ("torch/nn/parallel/distributed.py", "DistributedDataParallel", "_sync_buffers"):
        beside = answer(f'Traceback (most recent call last):\n  File "{sign}", line 7, in step\n{INPLACE}')
        assert beside.sure and beside.entries[0].id == "buffers-sent-again", sign


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Signal 6 (SIGABRT) received by PID 31", "process-aborted"),
        ("Indexing.cu:1141: Assertion `srcIndex < srcSelectDimSize` failed.", "device-side-assert"),
        ('IndexKernel.cu:92: Assertion `i < sizes[i] && "index out of bounds"` failed.', "device-side-assert"),
    ],
)
def test_one_line_of_a_log_is_enough(text: str, expected: str) -> None:
    said = answer(text)
    assert said.sure and said.entries[0].id == expected


def test_assertion_about_a_label_leads_to_both_its_entries() -> None:
    line = "Loss.cu:250: nll_loss: block: [0,0,0], thread: [4,0,0] Assertion `t >= 0 && t < n_classes` failed."
    said = answer(line)
    assert said.sure and [entry.id for entry in said.entries] == ["label-out-of-range", "device-side-assert"]


def test_abort_after_the_watchdog_is_what_follows() -> None:
    log = "\n".join([IDS["collective-time-out"].message, IDS["process-aborted"].message, IDS["child-failed"].message])
    assert [entry.id for entry in matching(log)] == ["collective-time-out", "process-aborted", "child-failed"]


def test_a_message_of_any_program_is_an_answer_only_beside_a_sign_of_several_processes() -> None:
    alone = "OSError: [Errno 98] Address already in use"
    assert not answer(alone).sure
    assert answer(f"[rank0]: {alone}").sure and matching(f"[rank0]: {alone}")[0].id == "port-in-use"
    assert matching("Error: listen EADDRINUSE\n    at Server._listen2 (net.js:1042:14)") == []


@pytest.mark.parametrize(
    ("words", "expected"),
    [("loss differs between ranks", "metric-not-reduced"), ("too many process in GPU0", "all-ranks-on-first-gpu")],
)
def test_plurals_and_numbered_words_are_read_as_their_parts(words: str, expected: str) -> None:
    assert not answer(words).sure and matching(words)[0].id == expected


def test_a_warning_does_not_explain_a_traceback_that_is_cut_off() -> None:
    warned = "[W socket.cpp:697] [c10d] The client socket has failed to connect to [host]:61215"
    assert answer(warned).sure
    assert not answer(f"{warned}\nTraceback (most recent call last):\n  File 'train.py', line 3, in main").sure
