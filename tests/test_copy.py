"""`copy`: a helper is one file, which stands on its own with its tests."""

import ast
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pytest

from frcnn_lite import cli
from frcnn_lite.cli import copy

# Helpers that are about arrays of NumPy.
NEEDS_MORE = {"export/onnx_detector": {"numpy"}}
# Tests that start processes for many seconds, or try a gradient number by number; those that are left start some, too.
SLOW = (
    "numerical or rank_that_failed or rank_that_hangs or interrupted_cell or parent_that_is_killed or cannot_travel or "
    "torchrun"
)
PYTEST = ("-q", "-p", "no:cacheprovider", "--junitxml=report.xml")
# Seen by every Python that starts with this folder on its path: a machine that has none of our packages.
ALONE = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"frcnn_lite", "vgpu", "multigpu", "course"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
"""


def name_of(path):
    return f"{path.parent.name}/{path.stem}"


def test_a_helper_imports_nothing_of_ours():
    found = {name_of(path): copy.imports_of_ours(path) for path in copy.files()}
    offenders = {name: lines for name, lines in found.items() if lines}
    assert offenders == {}, "a helper is taken with its file alone: take the lines in, or take an argument"


def test_a_helper_needs_torch_and_nothing_else():
    """What runs when the file is imported; what a function asks for when it is called is its own affair."""
    found = {}
    for path in copy.files():
        body = ast.parse(path.read_text()).body
        names = {alias.name for node in body if isinstance(node, ast.Import) for alias in node.names}
        names |= {"." * node.level + (node.module or "") for node in body if isinstance(node, ast.ImportFrom)}
        known = {*sys.stdlib_module_names, "torch", "torchvision", "frcnn_lite", *NEEDS_MORE.get(name_of(path), ())}
        found[name_of(path)] = {name for name in names if name.split(".")[0] not in known}
    assert {name: more for name, more in found.items() if more} == {}


def test_every_helper_has_a_test_and_a_name_of_its_own():
    assert [name_of(path) for path in copy.files() if not copy.copied_tests(path)] == []
    assert [stem for stem, count in Counter(path.stem for path in copy.files()).items() if count > 1] == []


@pytest.mark.exhaustive
def test_every_helper_passes_its_tests_where_it_is_copied_to(tmp_path):
    """Outside of the package, with torch and pytest: what needs GPUs is skipped, and each file has tests that pass."""
    (tmp_path / "sitecustomize.py").write_text(ALONE)
    for path in copy.files():
        copy.write_copy(path.stem, tmp_path / path.stem)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    program = subprocess.run(
        [sys.executable, "-m", "pytest", *PYTEST, "-k", f"not ({SLOW})", "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**kept, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(tmp_path)},
    )
    assert program.returncode == 0, program.stdout[-8000:] + program.stderr[-2000:]
    cases = ElementTree.parse(tmp_path / "report.xml").iter("testcase")
    passed = {case.get("classname").split(".")[0] for case in cases if case.find("skipped") is None}
    assert passed == {path.stem for path in copy.files()}


def test_a_name_leads_to_the_file_it_stands_in(tmp_path):
    written = copy.write_copy("share", tmp_path)
    assert [path.name for path in written] == ["chunks.py", "test_chunks.py"]
    names = {node.name for node in ast.parse(written[0].read_text()).body if isinstance(node, ast.FunctionDef)}
    assert {"share", "chunk_sizes", "rows_lost"} <= names
    assert "from chunks import" in written[1].read_text() and "frcnn_lite" not in written[1].read_text()


def test_a_copy_carries_its_source_and_licence(tmp_path):
    helper, _ = copy.write_copy("reduce_loss", tmp_path)
    text = helper.read_text()
    assert text.startswith("# Copied from frcnn_lite/parallel/reduce_loss.py of frcnn_lite ")
    assert "# MIT License" in text and "# THE SOFTWARE IS PROVIDED" in text
    original = (copy.PACKAGE / "parallel" / "reduce_loss.py").read_text()
    assert original in text


@pytest.mark.parametrize("there", ["chunks.py", "test_chunks.py"])
def test_nothing_is_overwritten_and_nothing_half_done(there, tmp_path, capsys):
    (tmp_path / there).write_text("mine")
    assert cli.main(["copy", "share", "--out", str(tmp_path)]) == 2
    assert f"{there} exists already; nothing was written" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == [there]
    assert (tmp_path / there).read_text() == "mine"


def test_an_unknown_name_offers_near_ones(capsys):
    assert cli.main(["copy", "rows_lots"]) == 2
    assert "no helper is called 'rows_lots'; did you mean rows_lost" in capsys.readouterr().err
    assert cli.main(["copy", "qqqq"]) == 2
    assert capsys.readouterr().err == "error: no helper is called 'qqqq'; `copy` without a name lists them all\n"


def test_without_a_name_every_file_is_listed_with_its_purpose(capsys):
    assert cli.main(["copy"]) == 0
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert lines["parallel/reduce_loss"].startswith("One number out of the sums and counts")
    assert list(lines) == [name_of(path) for path in copy.files()]


def test_a_file_can_be_named_as_it_is_listed(tmp_path, capsys):
    assert cli.main(["copy", "parallel/chunks", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines() == [str(tmp_path / "chunks.py"), str(tmp_path / "test_chunks.py")]


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="/proc, where nobody can make a file, is Linux's")
def test_a_folder_that_cannot_be_written_to_is_one_line(capsys):
    for folder in ("/proc", "/proc/none"):
        assert cli.main(["copy", "chunks", "--out", folder]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"error: {folder}/chunks.py could not be written: ")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full, which is always full, is Linux's")
def test_a_full_disk_leaves_neither_file(tmp_path, capsys):
    (tmp_path / "test_chunks.partial.py").symlink_to("/dev/full")
    assert cli.main(["copy", "chunks", "--out", str(tmp_path)]) == 2
    assert "test_chunks.py could not be written: the disk is full" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
