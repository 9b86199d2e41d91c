"""Expressions of the catalogue's search, as JavaScript reads them."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from multigpu.failures import catalogue, reading
from multigpu.failures.marking import marked
from multigpu.failures.match import answer
from multigpu.failures.sentences import quoting
from website import search
from website.prose import first_sentence

SCRIPT = Path(search.__file__).parent / "static" / "explain.js"
# Chinese, Japanese and Korean have no blank between their words and a message, or one that is wider.
CJK = (
    "训练报错CUDA out of memory怎么办",
    "报错：RuntimeError：Expected all tensors to be on the same device，but found at least two devices，cuda:0和cuda:1",
    "多卡训练卡住了，NCCL超时怎么解决",
    "学習中にNCCL WARN Call to ibv_reg_mr failedと出ます",
    "두 GPU에서RuntimeError: Address already in use가 나옵니다",
    "RuntimeError:\u3000No\u3000CUDA\u3000GPUs\u3000are\u3000available",
    "\ufeff运行torchrun时rank1挂起，rank0等待",
    "显存不足OOM，batch调小也没用",
    "第２张卡不能用，device-side assert triggered。",
)


def test_expressions_that_mean_the_same_stay_as_they_are():
    for pattern in (r"a\+\+b", r"(?:x|y)(?!z)\bw{2,3}\[\]", r"[^\]]\Sa"):
        assert search.in_javascript(pattern) == pattern


@pytest.mark.parametrize(
    "pattern", [r"\Aa", r"a\Z", "(?P<name>a)", "(?>a)", "a++", "a{,3}", "[]a]", "(?s:a)", "a(?#b)"]
)
def test_a_form_that_javascript_reads_otherwise_is_refused(pattern):
    with pytest.raises(ValueError, match="means something else in JavaScript"):
        search.in_javascript(pattern)


def test_letters_of_either_case_are_written_out():
    written = search.in_javascript(r"(?i:\bno(?:w)?)|x")
    assert written == r"(?:\b[nN][oO](?:[wW])?)|x"
    assert search.expression(reading.expression("a", re.IGNORECASE | re.MULTILINE)) == ("a", "im")


def test_an_expression_with_letters_of_every_alphabet_is_refused():
    with pytest.raises(ValueError, match=r"reading\.expression"):
        search.expression(re.compile(r"\bcuda"))


def test_all_of_the_catalogue_is_translated():
    entries = search.data()["entries"]
    assert len(entries) > 150 and all(entry["patterns"] or entry["symptoms"] for entry in entries)
    assert "(?i" not in search.data()["expressions"]["WARNED"][0] and "(?i:" in reading.WARNED.pattern


def test_javascript_answers_as_python_does_and_with_the_same_cause():
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node.js is not installed; the exhaustive tests of the site ask a browser")
    texts = [*CJK, *(text for entry in catalogue() for text in (entry.message, *entry.older[:1]))]
    asked = f"const explained = {json.dumps(texts)}.map(window.explain)"
    told = "explained.map(({ entries, sure, cause }) => [entries.map((entry) => entry.id), sure, cause])"
    program = ["globalThis.window = globalThis", search.script(), SCRIPT.read_text("utf-8"), asked]
    program.append(f"console.log(JSON.stringify({told}))")
    run = subprocess.run([node, "-"], input=";\n".join(program), capture_output=True, text=True, encoding="utf-8")
    assert run.returncode == 0, run.stderr
    differing = [text for text, answered in zip(texts, json.loads(run.stdout), strict=True) if answered != said(text)]
    assert differing == []


def said(text: str) -> list[object]:
    """What Python says to a text, as explain.js says it."""
    told = answer(text)
    if not told.entries:
        return [[], told.sure, ""]
    first = told.entries[0]
    cause = quoting(first.cause, told.lines[0]) or first_sentence(first.cause)
    return [[entry.id for entry in told.entries], told.sure, marked(cause)]
