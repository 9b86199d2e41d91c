"""Repairs that the linter writes: one word, in the right place, and nothing else of the file."""

import ast
import os

import pytest

from multigpu.__main__ import main
from multigpu.lint import fixes, lint_text
from multigpu.lint.fixes import fix

WRAPPED = """\
import torch
from torch import nn


class Net(nn.Module):
    def decode(self, x):
        return x


net = nn.DataParallel(Net().cuda())
{}
"""
SHARDED = """\
import torch
from torch import nn
from torch.distributed.fsdp import fully_shard

model = nn.Linear(4, 2)
fully_shard(model)
{}
"""

CHECKPOINTED = """\
from torch import nn
from torch.utils.checkpoint import checkpoint


class Net(nn.Module):
    def forward(self, x):
        return {}


net = nn.parallel.DistributedDataParallel(Net(), find_unused_parameters=True)
"""


@pytest.mark.parametrize(
    ("program", "before", "after"),
    [
        (WRAPPED, "out = net.decode(x)", "out = net.module.decode(x)"),
        (WRAPPED, "out = (net).decode(x)", "out = (net.module).decode(x)"),
        (WRAPPED, 'print("Grüße", net.decode(x))', 'print("Grüße", net.module.decode(x))'),
        (WRAPPED, "state = torch.load(path)", 'state = torch.load(path, map_location="cpu")'),
        (WRAPPED, "state = torch.load((path))", 'state = torch.load((path), map_location="cpu")'),
        (WRAPPED, "state = torch.load(path,)", 'state = torch.load(path, map_location="cpu")'),
        (WRAPPED, "state = torch.load(\n    path)", 'state = torch.load(\n    path, map_location="cpu")'),
        (SHARDED, "print(model.module.weight)", "print(model.weight)"),
        (CHECKPOINTED, "checkpoint(self.a, x)", "checkpoint(self.a, x, use_reentrant=False)"),
        (CHECKPOINTED, "checkpoint(self.a, x, use_reentrant=True)", "checkpoint(self.a, x, use_reentrant=False)"),
        (SHARDED, "print((model).module.weight)", "print((model).weight)"),
    ],
)
def test_one_word_is_written(program, before, after, tmp_path):
    path = tmp_path / "train.py"
    path.write_text(program.format(before), encoding="utf-8")
    assert lint_text(program.format(before))
    assert len(fix(path)) == 1
    assert path.read_text(encoding="utf-8") == program.format(after)
    assert fix(path) == []


@pytest.mark.parametrize(
    "program",
    [
        WRAPPED.format("out = net.decode(x)  # noqa: FL012"),
        WRAPPED.format("state = torch.load(\n    path\n)"),
        WRAPPED.format("net(x).backward()"),
        WRAPPED.replace("net = nn", "net = Net()\nif torch.cuda.device_count() > 1:\n    net = nn").format(
            "net.decode(x)"
        ),
        WRAPPED.format('print(f"{net.decode(x)}")'),
        "def broken(:\n",
    ],
    ids=[
        "silenced",
        "the parenthesis stands alone",
        "more than a word",
        "wrapped under a condition",
        "in an f-string",
        "not Python",
    ],
)
def test_what_is_not_one_word_stays(program, tmp_path):
    path = tmp_path / "train.py"
    path.write_text(program, encoding="utf-8")
    assert fix(path) == []
    assert path.read_text(encoding="utf-8") == program


@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf"], ids=["plain", "byte order mark"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["LF", "CRLF"])
def test_the_rest_of_the_file_keeps_its_bytes(start, end, tmp_path):
    path = tmp_path / "train.py"
    program = WRAPPED.format("out = net.decode(x)\nlater = net.decode(out)").encode().replace(b"\n", end)
    path.write_bytes(start + program)
    path.chmod(0o755)
    assert len(fix(path)) == 2
    assert path.read_bytes() == start + program.replace(b"net.decode", b"net.module.decode")
    assert path.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("data", ["# é\n".encode("latin-1"), b"x = 1\ry = 2\r"], ids=["latin-1", "CR"])
def test_a_file_whose_bytes_are_unclear_stays(data, tmp_path):
    path = tmp_path / "train.py"
    path.write_bytes(data + WRAPPED.format("out = net.decode(x)").encode())
    before = path.read_bytes()
    assert fix(path) == [] and path.read_bytes() == before


def test_a_wrong_repair_does_not_reach_the_disk(tmp_path, monkeypatch):
    path = tmp_path / "train.py"
    path.write_text(WRAPPED.format("out = net.decode(x)"), encoding="utf-8")
    wrong = {"FL012": lambda *args: fixes.Edit(11, 0, 0, "(", "FL012")}
    monkeypatch.setattr(fixes, "FIXES", wrong)
    with pytest.raises(SyntaxError):
        fix(path)
    ast.parse(path.read_text(encoding="utf-8"))
    assert list(tmp_path.iterdir()) == [path]


def test_the_command_says_what_it_wrote_and_what_is_left(tmp_path, capsys):
    path = tmp_path / "train.py"
    path.write_text(WRAPPED.format("out = net.decode(x)\nnet(x).backward()"), encoding="utf-8")
    assert main(["lint", "--fix", str(tmp_path)]) == 1
    said = capsys.readouterr()
    assert f"{path}:11: fixed [FL012]" in said.err
    assert "FL010" in said.out and "FL012" not in said.out


FAULT = WRAPPED.format("out = net.decode(x)")


def test_a_link_stays_a_link_and_the_file_behind_it_is_repaired(tmp_path):
    (tmp_path / "real.txt").write_text(FAULT)
    link = tmp_path / "a.py"
    link.symlink_to("real.txt")
    assert len(fix(link)) == 1 and link.is_symlink()
    assert ".module.decode" in (tmp_path / "real.txt").read_text()


@pytest.mark.parametrize("sign", ["\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"])
def test_a_comment_silences_below_a_sign_that_ends_no_line_of_python(sign, tmp_path):
    path = tmp_path / "a.py"
    path.write_text(WRAPPED.format(f'y = "{sign}"\nout = net.decode(x)  # noqa: FL012'), encoding="utf-8")
    before = path.read_bytes()
    assert lint_text(before.decode()) == [] and fix(path) == [] and path.read_bytes() == before


def test_what_cannot_be_repaired_is_said_and_the_next_files_are_repaired(tmp_path, capsys):
    for name in ("a", "b", "c", "d"):
        (tmp_path / f"{name}.py").write_text(FAULT)
    (tmp_path / "a.py").chmod(0o444)
    (tmp_path / "b.py").write_text("# coding: foo\n" + FAULT)
    (tmp_path / "c.py").unlink()
    (tmp_path / "c.py").write_text("x = " + "-" * 100_000 + "1\n")
    assert main(["lint", "--fix", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "a.py is not repaired: it may not be written" in said and "b.py is not repaired: unknown encoding" in said
    assert ".module" in (tmp_path / "d.py").read_text() and ".module" not in (tmp_path / "a.py").read_text()


def test_a_file_that_cannot_be_replaced_is_said(tmp_path, capsys, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    (tmp_path / "a.py").write_text(FAULT)
    monkeypatch.setattr("pathlib.Path.write_bytes", full)
    assert main(["lint", "--fix", str(tmp_path)]) == 2
    assert "a.py is not repaired: No space left on device" in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["a.py"] and (tmp_path / "a.py").read_text() == FAULT
