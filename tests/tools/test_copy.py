"""`copy`: each helper, taken out of the package, stands on its own."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from frcnn_lite.tools import copy

# Seen by every Python that starts with this folder on its path: a machine that has never heard of the package.
WITHOUT_PACKAGE = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "frcnn_lite":
            raise ModuleNotFoundError(f"No module named {name!r}")
sys.meta_path.insert(0, Absent())
"""


def run_outside(folder: Path, *arguments: str) -> str:
    """Run Python in `folder` where the package cannot be imported; returns what it printed."""
    (folder / "sitecustomize.py").write_text(WITHOUT_PACKAGE)
    child = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**copy_environment(), "PYTHONPATH": str(folder)},
    )
    assert child.returncode == 0, child.stdout + child.stderr
    return child.stdout


def copy_environment() -> dict[str, str]:
    import os

    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    return {**kept, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # the package's own plugin is installed, and hidden here


def test_every_helper_is_a_file_that_needs_nothing_of_the_package(tmp_path):
    names = sorted(copy.helpers())
    assert {"box_iou", "nms_mask", "roi_pool", "reduce_loss"} <= set(names)
    for name in names:
        copy.write_copy(name, tmp_path / copy.file_name(name))
    files = {name: copy.file_name(name) for name in names}
    code = f"""
import importlib, sys
for name, file in {files!r}.items():
    sys.path.insert(0, file)
    assert callable(getattr(importlib.import_module(file), name)), name
    del sys.path[0]
assert not [name for name in sys.modules if name.startswith("frcnn_lite")]
"""
    run_outside(tmp_path, "-c", code)


@pytest.mark.parametrize("name", ["box_iou", "nms_mask", "generate_proposals", "roi_pool", "reduce_loss"])
def test_copied_tests_pass_outside_the_package(name, tmp_path):
    helper, tests = copy.write_copy(name, tmp_path)
    assert helper.name == f"{name}.py" and tests.name == f"test_{name}.py"
    quick = ["-k", "not numerical and not many_regions"]  # the slow ones need no second run to show that the copy works
    printed = run_outside(tmp_path, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *quick, ".")
    assert " passed" in printed


def test_every_file_stands_alone(tmp_path):
    wanted = {}
    for name, dotted in copy.files().items():
        if name.startswith("parallel/"):
            helper, *_ = copy.write_copy(name, tmp_path / name)
            own = vars(importlib.import_module(dotted))
            public = [bound for bound, value in own.items() if getattr(value, "__module__", "") == dotted]
            wanted[helper.stem] = (helper.parent.relative_to(tmp_path).as_posix(), public)
    code = f"""
import importlib, sys
for file, (folder, public) in {wanted!r}.items():
    sys.path.insert(0, folder)
    assert set(public) <= vars(importlib.import_module(file)).keys(), file
    del sys.path[0], sys.modules[file]
"""
    run_outside(tmp_path, "-c", code)


def test_tests_of_a_copied_file_pass_outside_the_package(tmp_path):
    _, tests = copy.write_copy("parallel/samples", tmp_path)
    assert tests.name == "test_samples.py"
    assert " passed" in run_outside(tmp_path, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", ".")


def test_copy_holds_what_is_needed_and_no_more(tmp_path):
    copy.write_copy("nms_mask", tmp_path)
    text = (tmp_path / "nms_mask.py").read_text()
    for needed in ("def box_iou", "def _keep_sorted", '"nms_mask_copy::nms_mask"', "import torch\n"):
        assert needed in text
    for not_needed in ("def encode_boxes", "from frcnn_lite.", "frcnn_lite::"):
        assert not_needed not in text
    assert text.index("def box_iou") < text.index("def nms_mask")
    tests = (tmp_path / "test_nms_mask.py").read_text()
    assert "import torch\n" in tests and "import functools" in text and "import functools" not in tests


def test_copy_carries_its_source_and_licence(tmp_path):
    helper, *_ = copy.write_copy("roi_pool", tmp_path)
    text = helper.read_text()
    assert text.startswith("# roi_pool: copied from frcnn_lite/ops/roi_pool.py of frcnn_lite ")
    assert "# MIT License" in text and "# THE SOFTWARE IS PROVIDED" in text
    assert "Fast R-CNN" in text  # the sources the docstring cites come along


def test_a_kernel_beside_the_copy_is_used(tmp_path):
    copy.write_copy("roi_pool", tmp_path)
    (tmp_path / "numba_roi_pool.py").write_text("marker = 'mine'\n")
    printed = run_outside(tmp_path, "-c", "import roi_pool; print(roi_pool.compiled('roi_pool').marker)")
    assert printed.strip() == "mine"


@pytest.mark.parametrize("there", ["roi_pool.py", "test_roi_pool.py"])
def test_nothing_is_overwritten_and_nothing_half_done(there, tmp_path, capsys):
    (tmp_path / there).write_text("mine")
    assert copy.main(["roi_pool", "--out", str(tmp_path)]) == 2
    assert f"{there} exists already; nothing was written" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == [there]
    assert (tmp_path / there).read_text() == "mine"


def test_unknown_name_offers_near_ones(capsys):
    assert copy.main(["roi_pol"]) == 2
    assert "no helper is called 'roi_pol'; did you mean roi_pool" in capsys.readouterr().err


def test_without_a_name_everything_is_listed(capsys):
    assert copy.main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == list(copy.LAYERS)
    assert "nms_mask" in lines[0]


CHUNKS = copy.TESTS / "parallel" / "test_chunks.py"


def test_what_comes_without_tests_is_said(tmp_path, capsys):
    assert copy.main(["share", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr()
    assert said.out.splitlines() == [str(tmp_path / "share.py"), str(tmp_path / "test_share.py")]
    copied, whole = (file.read_text().count("\ndef test_") for file in (tmp_path / "test_share.py", CHUNKS))
    assert 0 < copied < whole
    words = f"{copied} of the {whole} tests of tests/parallel/test_chunks.py in frcnn_lite "
    assert said.err.startswith(words) and said.err.endswith(": those that need share.py alone.\n")
    assert (tmp_path / "test_share.py").read_text().startswith(f'"""{said.err.strip()}"""\n')
    assert copy.main(["sample", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr()
    assert said.out.splitlines() == [str(tmp_path / "sample.py")]
    assert said.err == "no tests come with it: the package has none that needs nothing but sample.py\n"


def test_packages_that_a_copy_needs_are_named(tmp_path):
    needed = {"nms_mask": "numpy and torch", "roi_pool": "torch"}
    for name, packages in needed.items():
        assert f"\n# It needs {packages}.\n" in copy.write_copy(name, tmp_path)[0].read_text()


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="/proc, where nobody can make a file, is Linux's")
def test_a_folder_that_cannot_be_written_to_is_one_line(capsys):
    for folder in ("/proc", "/proc/none"):
        assert copy.main(["roi_pool", "--out", folder]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"{folder}/roi_pool.py could not be written: ")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full, which is always full, is Linux's")
def test_a_full_disk_leaves_neither_file(tmp_path, capsys):
    (tmp_path / "test_roi_pool.partial.py").symlink_to("/dev/full")
    assert copy.main(["roi_pool", "--out", str(tmp_path)]) == 2
    assert "test_roi_pool.py could not be written: the disk is full" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
