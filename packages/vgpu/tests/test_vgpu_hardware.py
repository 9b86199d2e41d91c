"""Virtual GPUs answer as real ones did: a sample of the records beside these tests; a longer test asks all."""

import subprocess
import sys
import warnings
import zlib
from pathlib import Path

import pytest

pytest.importorskip("expecttest", reason="PyTorch's own tables need what the extra `test` installs")

from record import compare, files, programs, questions

import vgpu

TOOLS = Path(compare.__file__).parents[1]
CARDS = files.of_hardware()


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.about["card"])
def test_a_sample_of_the_operators_answers_as_the_card_did(gpus, card):
    recorded = {key.split("|")[0] for key in card.answers if "|program|" not in key}
    answers: dict[str, str] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, op in questions.operators().items():
            if name in recorded and zlib.crc32(name.encode()) % 12 == 0:
                answers.update(questions.ask(op))
    assert len(answers) > 500 and compare.unexplained(card, answers) == []


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.about["card"])
@pytest.mark.parametrize("one_in", [6, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_the_small_programs_answer_as_the_card_did(card, one_in):
    with vgpu.virtual_gpus(1, force=True):  # the card was alone in its machine
        programs.begin()
        asked = {key: program for key, program in programs.programs().items() if zlib.crc32(key.encode()) % one_in == 0}
        answers = {key: programs.ask(program) for key, program in asked.items() if key in card.answers}
    assert len(answers) > 300 / one_in and compare.unexplained(card, answers) == []


def test_every_small_program_of_a_card_can_be_asked():
    known = programs.programs()
    for card in CARDS:
        assert not [key for key in card.answers if "|program|" in key and key not in known]


@pytest.mark.exhaustive
def test_all_rows_that_differ_from_a_card_have_a_reason():
    done = subprocess.run([sys.executable, "-m", "record", "check"], cwd=TOOLS, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("real", "virtual", "kind"),
    [
        ("ok ran", "ok ran", compare.SAME),
        ("! RuntimeError: a", "! RuntimeError: b", compare.WORDS),
        ("ok float32[1][1]", "ok float16[1][1]", compare.WORDS),
        ("DEAD AcceleratorError: CUDA error", "ok ran", compare.GREENER),
        ("ok ran", "! RuntimeError: a", compare.REDDER),
        ("ok ran", "! NotImplementedError: virtual GPUs do not simulate graphs", compare.NOT_SIMULATED),
        ("ok", "! NotImplementedError: torch.cuda.utilization is not simulated by virtual GPUs", compare.NOT_SIMULATED),
    ],
)
def test_how_two_answers_differ(real, virtual, kind):
    assert compare.kind("add|strict|forward", real, virtual) == kind


def test_a_difference_that_no_row_has_is_not_explained():
    assert compare.why("add|dtype|float32") is None
    assert compare.kind("masked_select|dtype|float32", "ok float32[3][1]", "ok float32[4][1]") == compare.DRAWN


def test_a_record_comes_back_from_its_file_and_a_stranger_is_refused(tmp_path):
    record = files.Record(
        {"card": "A", "torch": "2.11.0", "date": "2026-11-27"},
        {"b|sync|forward": "ok no wait", "a|sync|forward": "! E: x"},
    )
    files.write(tmp_path / "a.jsonl.gz", record)
    assert files.read(tmp_path / "a.jsonl.gz") == record
    files.write(tmp_path / "b.jsonl.gz", record._replace(about={"card": "A"}))
    with pytest.raises(ValueError, match="is not a record: its first line"):
        files.read(tmp_path / "b.jsonl.gz")


@pytest.mark.long
def test_the_command_asks_from_an_operator_on():
    last = len(questions.operators()) - 1
    command = [sys.executable, "-m", "record", "child", "-", "--virtual", "--from", str(last)]
    done = subprocess.run(command, cwd=TOOLS, capture_output=True, text=True)
    name = questions.name_of(list(questions.operators().values())[last])
    assert done.returncode == 0 and f'[{last}, "{name}|dtype|float32", ' in done.stdout
