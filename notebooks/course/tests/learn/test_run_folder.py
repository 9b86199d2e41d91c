"""A reader's runs outlive the kernel; a program's never do."""

import os

import pytest

from course.kit import learn


@pytest.fixture
def reader(monkeypatch, tmp_path):
    monkeypatch.setenv("FRCNN_LITE_LEARN", "on")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_reader_finds_the_same_folder_again(reader):
    (learn.run_folder("20") / "kept").touch()
    assert learn.run_folder("20").resolve() == (reader / "runs" / "20").resolve()
    assert os.listdir(learn.run_folder("20")) == ["kept"]  # and nothing of the trial


def test_a_program_starts_from_nothing(reader, monkeypatch):
    (learn.run_folder("20") / "kept").touch()
    monkeypatch.setenv("FRCNN_LITE_LEARN", "off")
    first, second = learn.run_folder("20"), learn.run_folder("20")
    assert first != second and not os.listdir(first) and reader not in first.parents


def test_a_folder_that_cannot_be_written_is_named(reader, capsys):
    (reader / "runs").write_text("a file")
    folder = learn.run_folder("20")
    assert not os.listdir(folder) and reader not in folder.resolve().parents
    assert "runs/20 cannot be written to" in capsys.readouterr().out.replace(os.sep, "/")
