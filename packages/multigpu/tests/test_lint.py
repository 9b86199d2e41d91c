"""The linter on a corpus: code as people write it, its faults marked `# BUG FLxxx`, and code without any."""

import json
import re
import textwrap
from pathlib import Path

import pytest

from multigpu.__main__ import main
from multigpu.failures import catalogue
from multigpu.lint import lint, lint_text, source
from multigpu.lint.rules import RULES

CORPUS = Path(__file__).with_name("lint_corpus")
BUGS, CLEAN = sorted((CORPUS / "bugs").glob("*.py")), sorted((CORPUS / "clean").glob("*.py"))
MARK = re.compile(r"# BUG ((?:FL\d{3} ?)+)$")


def planted(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    return {(line, rule) for line, text in enumerate(lines, 1) if (m := MARK.search(text)) for rule in m[1].split()}


def found(path):
    return {(finding.line, finding.rule) for finding in lint(source.read(path))}


def rules(code):
    return [(finding.line, finding.rule) for finding in lint_text(textwrap.dedent(code).lstrip("\n"))]


def run(capsys, *arguments):
    code = main(["lint", *map(str, arguments)])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_the_planted_bugs_are_found_and_nothing_else():
    assert len(BUGS) >= 30 and all(map(planted, BUGS))
    assert [(path.stem, planted(path) ^ found(path)) for path in BUGS if planted(path) != found(path)] == []


def test_clean_code_is_left_alone():
    assert len(CLEAN) >= 30 and not any(map(planted, CLEAN))
    assert [(path.stem, found(path)) for path in CLEAN if found(path)] == []


def test_every_rule_is_in_the_corpus():
    assert {rule for path in BUGS for _, rule in planted(path)} == set(RULES)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("y = model(x).cuda()  # noqa", []),
        ("class A(torch.nn.Module):\n    def forward(self, x):\n        return x.cuda()  # noqa: FL001 why", []),
        ("class A(torch.nn.Module):\n    def forward(self, x):\n        return x.cuda()  # noqa: E501", [(3, "FL001")]),
        ("# multigpu: noqa: FL001 why\nclass A(nn.Module):\n    def forward(self, x):\n        return x.cuda()", []),
        (
            "class A(nn.Module):\n    def forward(self, x):\n        return x + torch.zeros(\n            3\n"
            "        )  # noqa: FL002",
            [],
        ),
    ],
)
def test_silencing(code, expected):
    assert rules(code) == expected


@pytest.mark.parametrize(
    "sent", ["to(x)", "to(x.device)", "to(device=x.device)", "type_as(x)", "cuda(x.get_device())", "type(x.type())"]
)
def test_a_tensor_that_is_sent_to_its_device(sent):
    assert rules(f"class A(nn.Module):\n    def forward(self, x):\n        return x + torch.ones(3).{sent}") == []


@pytest.mark.parametrize(
    "left", ["float()", "to(torch.float64)", "to(dtype=x.dtype)", "to(x.dtype)", "view(1, 3)", "expand_as(x)"]
)
def test_a_tensor_that_is_not(left):
    code = f"class A(nn.Module):\n    def forward(self, x):\n        return x + torch.ones(3).{left}"
    assert rules(code) == [(3, "FL002")]


@pytest.mark.parametrize("imported", ["import torch as t", "from torch import zeros", "from torch import zeros as z"])
def test_aliases(imported):
    name = {"t": "t.zeros", "zeros": "zeros", "z": "z"}[imported.split()[-1]]
    module = "from torch import nn\nclass A(nn.Module):\n    def forward(self, x):\n        return x + "
    assert rules(f"{imported}\n{module}{name}(3)") == [(5, "FL002")]


def test_a_file_of_python_2_is_searched_and_said_to_be(tmp_path, capsys):
    old = tmp_path / "old.py"
    old.write_text(
        "def f(x):\n    print 'bare .cuda() in a string', x\n    return x.cuda()  # and .cuda() in a comment\n"
    )
    code, out, _ = run(capsys, old, "--json")
    assert code == 1
    assert [(item["line"], item["rule"]) for item in json.loads(out)] == [(2, "FL000"), (3, "FL001")]
    assert "by token" in json.loads(out)[0]["message"]


def test_json_is_a_list_of_objects(tmp_path, capsys):
    bad = tmp_path / "bad.py"
    bad.write_text("import torch\n\n\ndef f(x):\n    return x + torch.zeros(3, device='cuda:0')\n")
    code, out, err = run(capsys, "--json", bad)
    (item,) = json.loads(out)
    assert code == 1 and err == "1 found\n"
    assert (item["path"], item["line"], item["rule"], item["name"]) == (str(bad), 5, "FL004", "literal-device")
    assert item["message"].startswith("cuda:0 by its number: ") and item["fix"] == RULES["FL004"].fix


def test_sarif_names_rules_places_and_what_was_not_read(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my code").mkdir()
    for name in ("my code/bad.py", str(tmp_path / "again.py")):
        Path(name).write_text("import torch\n\n\ndef f(x):\n    return x + torch.zeros(3, device='cuda:0')\n")
    cell = {"cell_type": "code", "source": "import torch\ntorch.zeros(3).cuda(1)"}
    Path("n.ipynb").write_text(json.dumps({"cells": [cell], "nbformat": 4}))
    code, out, err = run(capsys, "--sarif", "my code", tmp_path / "again.py", "n.ipynb", "none.py")
    log = json.loads(out)
    (told,) = log["runs"]
    assert code == 2 and log["version"] == "2.1.0" and "error: no file" in err
    rules = told["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == list(RULES)
    first, second, third = told["results"]
    for result in told["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"] == "FL004"
    place = first["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "my%20code/bad.py"}, "region": {"startLine": 5}}
    assert second["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == (tmp_path / "again.py").as_uri()
    assert (
        first["message"]["text"].startswith("cuda:0 by its number: ") and RULES["FL004"].fix in first["message"]["text"]
    )
    assert "region" not in third["locations"][0]["physicalLocation"]
    assert third["message"]["text"].startswith("cell 1, line 2: ")
    (run_of_it,) = told["invocations"]
    assert not run_of_it["executionSuccessful"]
    assert run_of_it["toolExecutionNotifications"][0]["message"]["text"] == "no file or directory at none.py"


def test_exit_codes(tmp_path, capsys):
    good = tmp_path / "good.py"
    good.write_text("import torch\n")
    assert run(capsys, good) == (0, "", "nothing found\n")
    assert run(capsys, "--json", good)[:2] == (0, "[]\n")
    assert run(capsys, tmp_path / "none.py", good) == (
        2,
        "",
        f"error: no file or directory at {tmp_path / 'none.py'}\n",
    )
    (tmp_path / "text.txt").write_text("")
    assert run(capsys, tmp_path / "text.txt")[0] == 2
    (tmp_path / "broken.ipynb").write_text("{")
    assert "broken.ipynb is not a notebook" in run(capsys, tmp_path)[2]
    with pytest.raises(SystemExit, match="2"):
        main(["lint"])


def test_a_folder_is_searched_and_what_is_not_ours_left_out(tmp_path, capsys):
    fault = "import torch\n\n\ndef f(x):\n    return x.to('cuda:1')\n"
    for name in ("a.py", "deep/b.py", ".venv/c.py", "__pycache__/d.py", "site-packages/e.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(fault)
    _, out, err = run(capsys, tmp_path, "--json")
    assert [Path(item["path"]).name for item in json.loads(out)] == ["a.py", "b.py"] and err == "2 found\n"


def test_a_notebook_names_cell_and_line(tmp_path, capsys):
    nbformat = pytest.importorskip("nbformat")
    cells = [
        nbformat.v4.new_markdown_cell("x.cuda()"),
        nbformat.v4.new_code_cell("%matplotlib inline\nimport torch\nfrom torch import nn"),
        nbformat.v4.new_code_cell(
            "!nvidia-smi\nclass A(nn.Module):\n    def forward(self, x):\n        return x.cuda()"
        ),
        nbformat.v4.new_code_cell("%%bash\nx.cuda()"),
    ]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "n.ipynb")
    code, out, _ = run(capsys, tmp_path / "n.ipynb")
    assert code == 1 and out.startswith(f"{tmp_path / 'n.ipynb'}:cell 3:4: .cuda() without a device: ")
    (item,) = json.loads(run(capsys, "--json", tmp_path / "n.ipynb")[1])
    assert (item["cell"], item["line"], item["rule"]) == (3, 4, "FL001")


def test_every_rule_begins_a_row_of_the_table_in_the_docs():
    page = (Path(__file__).parents[1] / "docs" / "linter.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (FL\d{3}) \| ([\w-]+) \|[^|]+\|[^|]+\|$", page, re.MULTILINE)
    assert rows == [(code, rule.name) for code, rule in RULES.items()]


def test_every_rule_names_a_failure_of_the_catalogue():
    entries = {entry.id for entry in catalogue()}
    assert {rule.see for rule in RULES.values()} - {""} <= entries


@pytest.mark.parametrize(
    ("made", "used", "found"),
    [
        ("DDP(net)", "model(x).sum().backward()", True),
        ("DDP(net)", "model(x)", False),  # sends buffers only, and only where there are some
        ("DDP(net)", "model.module(x).sum().backward()", False),
        ("DDP(net, process_group=pair)", "model(x).sum().backward()", False),
        ("DDP(net)", "(head(model(x).detach())).sum().backward()", False),
        ("FSDP(net)", "model(x)", True),
        ("FSDP(net)", "model.clip_grad_norm_(1.0)", True),
        ("FSDP(net)", "nn.utils.clip_grad_norm_(model.parameters(), 1.0)", "FL030"),  # a mistake, and no collective
        ("FSDP(net, process_group=pair)", "model(x)", False),
        ("fully_shard(net)", "model = net; model(x)", False),
        ("fully_shard(net)", "net(x)", True),
        ("fully_shard(net)", "nn.utils.clip_grad_norm_(net.parameters(), 1.0)", True),
        ("fully_shard(net, mesh=mesh)", "net(x)", True),
        ("net", "model(x).sum().backward()", False),
    ],
)
def test_the_first_rank_alone_with_a_model_of_all(made, used, found):
    code = f"""
        import torch.distributed as dist
        from torch import nn
        from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, fully_shard
        from torch.nn.parallel import DistributedDataParallel as DDP
        def train(net, head, x, mesh, pair):
            model = {made}
            if dist.get_rank() == 0:
                {used}
    """
    assert rules(code) == ([(8, found if isinstance(found, str) else "FL017")] if found else [])


def test_a_finding_names_the_lines_and_the_repair(tmp_path, capsys):
    bad = tmp_path / "bad.py"
    bad.write_text(
        "from torch import nn\n\nmodel = nn.DataParallel(net)\nloss = model(x)\nloss.backward()\nmodel.decode(x)\n"
    )
    _, out, _ = run(capsys, bad)
    first, fix, about, second, *_ = out.splitlines()
    assert first.startswith(f"{bad}:5: .backward() of an output of DataParallel (line 4): ") and first.endswith(
        "[FL010]"
    )
    assert "loss.mean()" in fix and about.endswith("python -m multigpu explain backward-on-vector")
    assert second.startswith(f"{bad}:6: model.decode of a model that line 3 wraps: ")


@pytest.mark.parametrize(
    ("pool", "expected"),
    [
        ("with ThreadPoolExecutor(2) as pool:\n    pool.map(f, parts)", [(6, "FL001")]),
        ("pool = ThreadPoolExecutor(2)\npool.submit(f, parts)", [(6, "FL001")]),
        ("ThreadPool(2).apply_async(f, parts)", [(6, "FL001")]),
        ("threading.Thread(None, f, parts)", [(6, "FL001")]),
        ("from multiprocessing import Pool\npool = Pool(2)\npool.map(f, parts)", []),
        ("thread = 'a word'\ndata.map(f)", []),
    ],
)
def test_a_function_is_in_a_thread_if_a_pool_of_threads_takes_it(pool, expected):
    pools = "concurrent.futures import ThreadPoolExecutor", "multiprocessing.pool import ThreadPool"
    imports = "\n".join(["import threading", *(f"from {pool}" for pool in pools)])
    # A function that trains is a script's own, and may use the current GPU: until a thread runs it.
    code = f"{imports}\n\ndef f(x, model):\n    return model(x.cuda()).backward(x)\n\n{pool}"
    assert rules(code) == expected
