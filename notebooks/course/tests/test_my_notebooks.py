"""A reader's own copies: nothing that somebody wrote is lost, and what nobody touched is as the series has it."""

import errno

import pytest

from course.tools import my_notebooks
from course.tools.my_notebooks import RECORD, afresh, bring


@pytest.fixture
def series(tmp_path):
    folder = tmp_path / "notebooks"
    folder.mkdir()
    for name in ("00_start.ipynb", "01_scatter.ipynb"):
        (folder / name).write_text(f"{name} as stored")
    return folder


@pytest.fixture
def own(tmp_path):
    return tmp_path / "my_notebooks"


def texts(folder):
    return {path.name: path.read_text() for path in sorted(folder.glob("*.ipynb"))}


def test_copies_are_made_once_and_then_left_alone(series, own):
    assert bring(series, own) == []
    assert texts(own) == texts(series)
    times = {path.name: path.stat().st_mtime_ns for path in own.glob("*.ipynb")}
    assert bring(series, own) == []
    assert {path.name: path.stat().st_mtime_ns for path in own.glob("*.ipynb")} == times


def test_a_newer_series_renews_what_nobody_wrote_to_and_tells_of_the_rest(series, own):
    bring(series, own)
    (own / "01_scatter.ipynb").write_text("my answer")
    for path in series.glob("*.ipynb"):
        path.write_text("the next edition")
    (said,) = bring(series, own)
    assert said == "01_scatter.ipynb: yours is kept; the series has a newer one (make fresh ARGS=01 takes it)"
    assert texts(own) == {"00_start.ipynb": "the next edition", "01_scatter.ipynb": "my answer"}
    assert bring(series, own) == [said]


def test_a_notebook_that_the_series_gave_up_goes_unless_it_was_written_to(series, own):
    (series / "02_old.ipynb").write_text("old")
    bring(series, own)
    (own / "01_scatter.ipynb").write_text("my answer")
    (own / "mine.ipynb").write_text("my own")
    for name in ("01_scatter.ipynb", "02_old.ipynb"):
        (series / name).unlink()
    bring(series, own)
    assert texts(own) == {
        "00_start.ipynb": "00_start.ipynb as stored",
        "01_scatter.ipynb": "my answer",
        "mine.ipynb": "my own",
    }


def test_a_fresh_start_keeps_what_was_written(series, own):
    bring(series, own)
    for answer in ("first answer", "second answer"):
        (own / "01_scatter.ipynb").write_text(answer)
        (said,) = afresh(["01"], series, own)
        assert "yours is kept as my_notebooks/before/01_scatter" in said
        assert texts(own) == texts(series)
    assert sorted(texts(own / "before").values()) == ["first answer", "second answer"]
    assert afresh([], series, own) == ["nothing to do: your copies are as the series has them"]


def test_a_fresh_start_of_one_leaves_the_others(series, own):
    bring(series, own)
    for path in own.glob("*.ipynb"):
        path.write_text("my answer")
    afresh(["00"], series, own)
    assert texts(own) == {"00_start.ipynb": "00_start.ipynb as stored", "01_scatter.ipynb": "my answer"}
    afresh([], series, own)
    assert texts(own) == texts(series)


def test_an_unknown_notebook_is_named_with_those_that_are_there(series, own):
    with pytest.raises(ValueError, match=r"no notebook begins with '77'; there are 00_start\.ipynb, 01_scatter\.ipynb"):
        afresh(["77"], series, own)


@pytest.mark.parametrize("damage", ["{ not json", "[1]", None])
def test_without_its_record_every_copy_counts_as_written_to(series, own, damage):
    bring(series, own)
    (own / RECORD).unlink() if damage is None else (own / RECORD).write_text(damage)
    (series / "01_scatter.ipynb").write_text("the next edition")
    assert "yours is kept" in bring(series, own)[0]
    assert texts(own)["01_scatter.ipynb"] == "01_scatter.ipynb as stored"
    assert bring(series, own)[0].startswith("01_scatter.ipynb")


def test_a_place_that_cannot_be_written_to_is_one_line(monkeypatch, capsys):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device", "my_notebooks")

    monkeypatch.setattr(my_notebooks, "bring", full)
    with pytest.raises(SystemExit) as ended:
        my_notebooks.main([])
    assert ended.value.code == 1 and "No space left on device" in capsys.readouterr().err
