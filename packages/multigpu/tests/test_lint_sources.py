"""The linter on files as they lie about: notebooks with magics, broken cells, deep nesting, folders with odd names."""

import cProfile
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from multigpu.__main__ import main
from multigpu.lint import lint, lint_text, source

FAULT = "import torch\n\n\ndef f(x):\n    return x.to('cuda:1')\n"


def notebook(*codes):
    return json.dumps({"cells": [{"cell_type": "code", "source": code} for code in codes], "nbformat": 4})


def places(path):
    return [(found.cell, found.line, found.rule) for found in lint(source.read(path))]


@pytest.mark.parametrize("magic", ["%%time", "%%timeit -n 3", "%%capture out", "%%writefile worker.py"])
def test_a_cell_that_magic_runs_as_python(tmp_path, magic):
    path = tmp_path / "n.ipynb"
    path.write_text(notebook(f"{magic}\n{FAULT}"))
    assert places(path) == [(1, 6, "FL004")]


@pytest.mark.parametrize("magic", ["%%bash", "%%html", "%%javascript", "%%script sh"])
def test_a_cell_of_another_language(tmp_path, magic):
    path = tmp_path / "n.ipynb"
    path.write_text(notebook(f"{magic}\n{FAULT}"))
    assert places(path) == []


def test_a_cell_without_source(tmp_path):
    path = tmp_path / "n.ipynb"
    path.write_text(json.dumps({"cells": [{"cell_type": "code"}, {"cell_type": "code", "source": [FAULT]}]}))
    assert places(path) == [(2, 5, "FL004")]


@pytest.mark.parametrize("text", ["[]", '{"cells": [1]}', '{"cells": 1}', '{"worksheets": []}', "{"])
def test_what_is_no_notebook_says_so(tmp_path, capsys, text):
    path = tmp_path / "n.ipynb"
    path.write_text(text)
    assert main(["lint", str(path)]) == 2
    assert "n.ipynb is not a notebook of format 4" in capsys.readouterr().err


@pytest.mark.parametrize("ending", ["\r\n", "\n"])
@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf", b"# -*- coding: latin-1 -*-\n# caf\xe9\n", b"# caf\xe9\n"])
def test_encodings_and_line_ends(tmp_path, start, ending):
    path = tmp_path / "a.py"
    path.write_bytes(start + FAULT.replace("\n", ending).encode())
    assert [rule for *_, rule in places(path)] == ["FL004"]


def test_nesting_that_python_gives_up_on():
    found = lint_text("def f(x):\n    return x.cuda()\n\n\ny = " + "+".join(["1"] * 20_000))
    assert [finding.rule for finding in found] == ["FL000", "FL001"]


def test_a_folder_with_the_name_of_a_file(tmp_path, capsys):
    (tmp_path / "odd.py").mkdir()
    (tmp_path / "odd.py" / "a.py").write_text(FAULT)
    assert main(["lint", str(tmp_path)]) == 1 and capsys.readouterr().err == "1 found\n"


def test_notebooks_and_expressions_nested_too_deeply_end_nothing_else(tmp_path, capsys):
    (tmp_path / "a.ipynb").write_text("[" * 100_000)
    (tmp_path / "b.py").write_text("x = " + "-" * 100_000 + "1\n")
    (tmp_path / "c.py").write_text(FAULT)
    assert main(["lint", str(tmp_path)]) == 2
    said = capsys.readouterr()
    assert "a.ipynb is not a notebook" in said.err and "b.py:1: not read" in said.out and "c.py:5: " in said.out


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no pipes with names")
def test_a_pipe_is_not_waited_for(tmp_path, capsys):
    os.mkfifo(tmp_path / "pipe.py")
    assert main(["lint", str(tmp_path / "pipe.py")]) == 2 and "neither a file nor a folder" in capsys.readouterr().err
    assert main(["lint", str(tmp_path)]) == 0


def test_the_linter_ends_quietly_when_its_reader_does(tmp_path):
    (tmp_path / "a.py").write_text(FAULT)
    command = [sys.executable, "-m", "multigpu", "lint", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        child.stdout.close()
        assert child.stderr.read() == b"1 found\n"
    assert child.returncode == 1


def test_what_stands_in_an_f_string_is_read_and_has_its_line():
    head = "import torch\nmodel = torch.nn.DataParallel(torch.nn.Linear(2, 2))\n"
    found = lint_text(head + 'print(f"""\n{model.weight:{model.bias}}""")\n')
    assert [(each.rule, each.line) for each in found] == [("FL012", 3)]


def test_the_time_does_not_double_with_each_nested_loop():
    """40 loops would take days."""
    loops = "".join(" " * depth + f"for a{depth} in b:\n" for depth in range(19)) + " " * 19 + "model = model(x)\n"
    assert lint_text("import torch\nmodel = torch.nn.DataParallel(net)\n" + loops * 2) == []


@pytest.mark.exhaustive
def test_ten_thousand_lines():
    found = lint_text("import torch\n" + "".join(f"def f{i}(x):\n    return x.to('cuda:1')\n\n" for i in range(3_500)))
    assert len(found) == 3_500


def test_a_test_asks_for_its_gpu_on_purpose():
    assert lint_text(FAULT, "tests/test_a.py") == [] and len(lint_text(FAULT, "a.py")) == 1
    module = "from torch import nn\n\n\nclass A(nn.Module):\n    def forward(self, x):\n        return x.cuda()\n"
    assert len(lint_text(module, "tests/test_a.py")) == 1


def test_a_project_may_stand_in_a_folder_of_data():
    helper = "import torch\n\n\ndef f(x: torch.Tensor):\n    return x + torch.zeros(3)\n"
    assert len(lint_text(helper, "/data/project/ops.py")) == 1
    assert lint_text(helper, "project/datasets/ops.py") == []


HOOK = Path(__file__).parents[1] / "hook.py"


@pytest.mark.skipif(not HOOK.is_file(), reason="installed from no checkout, which alone has the hook")
def test_the_hook_of_pre_commit_runs_with_nothing_installed(tmp_path):
    (tmp_path / "a.py").write_text(FAULT)
    (tmp_path / "b.py").write_text("import torch\n")
    hooks = (HOOK.parents[2] / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    assert f"entry: {HOOK.relative_to(HOOK.parents[2]).as_posix()}\n" in hooks and "language: script\n" in hooks
    alone = [sys.executable, "-I", "-S", str(HOOK)]  # no site-packages, no PYTHONPATH
    found = subprocess.run([*alone, "a.py", "b.py"], cwd=tmp_path, capture_output=True, text=True)
    assert found.returncode == 1 and found.stdout.startswith("a.py:5: cuda:1 by its number: ")
    clean = subprocess.run([*alone, "b.py"], cwd=tmp_path, capture_output=True, text=True)
    assert clean.returncode == 0 and clean.stdout == ""


LONG_FILES = {
    "tests": "if a{0}:\n    x{0} = model(x)\nelse:\n    x{0} = y\n",
    "methods": "    def f{0}(self, x):\n        return self.f{0}(x)\n\n    def forward_{0}(x):\n        return x\n",
}


@pytest.mark.parametrize("kind", LONG_FILES)
def test_the_time_grows_with_the_lines_and_not_with_their_square(kind):
    """Counted in what `ast` is asked, because a busy machine changes times."""
    head = "import torch\nmodel = torch.nn.DataParallel(net)\n" + ("class A(torch.nn.Module):\n" * (kind == "methods"))

    def calls(lines):
        profile = cProfile.Profile()
        profile.runcall(lint_text, head + "".join(LONG_FILES[kind].format(number) for number in range(lines)))
        return sum(entry.callcount for entry in profile.getstats())

    assert calls(200) < 3 * calls(100)
