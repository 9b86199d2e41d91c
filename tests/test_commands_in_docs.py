"""Every command that a page of the project prints is run as it is printed, or a test says why it is not.

Only what a reader has to fill in is filled in (DIR, IMAGE..., the text of an error), and minutes become steps.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from annotated_folders import write_image, write_voc

from frcnn_lite import cli

pytestmark = pytest.mark.starts_early
ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "AGENTS.md",
    ROOT / "data" / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "packages").rglob("*.md")),
]
FENCE = re.compile(r"```(?:sh|console|bash)\n(.*?)```", re.DOTALL)
IS_COMMAND = re.compile(
    r"(python -m (frcnn_lite|vgpu|multigpu|course|torch)|python \S+\.py|pytest(?!\.)|make(?!:)|pip|conda|VGPUS=\d)\b"
)
# The README's shortest paths leave out `python -m frcnn_lite` after the first of a row.
SHORT = re.compile(r"(train|evaluate|predict|data|copy|export) (--?\w|\w+:|[A-Z]).*--out|evaluate --run")

# What `make links` writes into README for a project with an address; the course's tests look at it.
OF_LINKS = re.compile(r"git clone https://github\.com/[\w.-]+/[\w.-]+|cd [\w.-]+")

NOT_RUN = {
    "conda env create -f environment.yml": "tests/test_environment.py compares the file with pyproject.toml",
    **dict.fromkeys(
        ("uv venv", 'uv pip install -e packages/vgpu -e packages/multigpu -e ".[course]" -c constraints.txt'),
        "it downloads torch; tests/test_environment.py compares it with what there is to install",
    ),
    "python -m course fetch BCCD": "it asks the network; the course's tests serve it from this machine",
    "pip install ./packages/vgpu": ".ci/run installs it into an environment of its own",
    "pip install ./packages/multigpu": ".ci/run installs it into an environment of its own",
    'pip install "./packages/vgpu[test]"': ".ci/run installs it into an environment of its own",
    "python -m vgpu autostart --install": "it changes the environment; packages/vgpu tests it in one of its own",
    "python tools/compatibility.py --run": "it runs the tests of packages/vgpu, in minutes",
    "python -m course face": "it writes README.md and its picture, which the course's tests compare",
    "python -m course puzzles": "it writes notebooks/puzzles.ipynb, which the course's tests compare",
    "python -m course failures_page": "it writes notebooks/failures.ipynb, which the course's tests compare",
    "python -m multigpu.failures.page": "it writes packages/multigpu/docs/failures.md, which its tests compare",
    "python tests/test_texts.py": "it writes answers.txt of packages/multigpu/tests/texts, which its tests compare",
    "python notebooks/posts/verdicts/table.py": "it writes docs/verdicts.md, which a test beside it compares",
    "python -m frcnn_lite train --data digits": "the README has it with an end",
    "python -m torch.distributed.launch --nproc_per_node=2 train.py": "a command of a post, of 2019",
    **dict.fromkeys(
        (
            "python -m venv env && env/bin/pip install torch pytest",
            "env/bin/pip install ./packages/vgpu",
            r"printf 'import torch\n\ndef test_it():\n    assert torch.ones(2, device="
            r""""cuda:1").sum() == 2\n' > test_it.py""",
            "env/bin/python -m pytest --vgpus 2 test_it.py",
        ),
        "it makes an environment and downloads torch",
    ),
    **dict.fromkeys(
        (
            "pytest --vgpus 2 tests/",
            "pytest --vgpus 2 --vgpus-memory 2GiB tests/",
            "pytest --vgpus 2 --vgpus-no-skips tests/test_multidevice.py",
            "pytest --vgpus 2 --vgpus-no-skips strategies/test_ddp_integration.py strategies/test_ddp.py "
            "strategies/test_dp.py accelerators/test_cuda.py",
            "pytest --vgpus 2 --vgpus-no-skips tests/test_hooks.py tests/test_modeling_utils.py",
            "python -m vgpu --gpus 2 -m accelerate.commands.launch --num_processes 2 --multi_gpu train.py --args",
        ),
        "it is for a checkout of accelerate, Lightning or transformers",
    ),
    **dict.fromkeys(
        (
            "git clone https://github.com/huggingface/accelerate suites/accelerate",
            "python -m venv env",
            "env/bin/pip install ./packages/vgpu -e suites/accelerate pytest parameterized torchdata datasets timm "
            "transformers",
        ),
        "it makes an environment for a checkout, and asks the network",
    ),
    **dict.fromkeys(
        (
            "python -m differential --seed 17",
            "python -m differential --for 60m",
            "python -m differential --for 60m --ranks 2",
            "python -m differential --for 60m --ranks 2 --threads",
            'python -m differential --count 50 --mutant "replicas are a little smaller"',
            "python -m vgpu --gpus 2 program.py cuda",
            "python program.py cpu",
            "python program.py cuda",
        ),
        "packages/vgpu runs its differential tester, and a program that it drew; an hour and two GPUs are the reader's",
    ),
    "python tools/rivals.py TOOL": "packages/vgpu runs it for virtual GPUs; the other tools are not installed",
}
# Commands that need what a test has not, or minutes: the dry run of make, and the table of tasks.py, know them.
OF_TASKS = re.compile(r"(make|python tasks\.py) ([\w-]+)")
BENCHMARK = re.compile(r"python (benchmarks/\w+\.py)")
# What a reader fills in, and what makes a command short.
FILLED_IN = {
    r"--minutes \d+": "--steps 2 --batch-size 2 --train-images 4 --test-images 2",
    r"^python -m frcnn_lite train --amp": "python -m frcnn_lite train --amp --out runs/amp --steps 2 --batch-size 2 "
    "--train-images 4 --test-images 2",
    r"--vgpus-min \d+": "--vgpus-min 1",
    r"--evaluate-every 200": "--evaluate-every 2",
    r"IMAGE\.\.\.": "picture.jpg",
    r"voc:DIR": "voc:pictures",
    r"data check DIR": "data check pictures",
    r"--out DIR": "--out found",
    r"--json FILE": "--json found.json",
    r"--your arguments": "--epochs 1",
    r"(train\.py) --args$": r"\1",
}
FINDS_SOMETHING = 1  # the exit code of `lint` where it has found a line, and of `doctor` on a machine without GPUs
PROGRAM = """
import sys
import torch
from torch import nn

module = nn.DataParallel(nn.Linear(2, 1)).cuda() if torch.cuda.is_available() else nn.Linear(2, 1)
print(tuple(module(torch.ones(4, 2)).shape), sys.argv[1:])
"""
# What `explain` reads from a pipe: a program that ends with a traceback.
TWO_DEVICES = """
import torch
import vgpu

with vgpu.virtual_gpus(2):
    torch.ones(2).cuda(0) + torch.ones(2).cuda(1)
"""
# What the README promises of `lint`: a line that breaks on two GPUs.
BROKEN = "import torch\nfrom torch import nn\n\nmodel = nn.DataParallel(nn.Linear(2, 1)).cuda()\n" + (
    "for x in torch.ones(3, 4, 2):\n    loss = model(x.cuda()).mean()\n    total = torch.zeros(1).cuda(1) + loss\n"
)


def commands(text: str) -> set[str]:
    """The commands of a page: lines of its shell blocks, and what stands between backquotes and looks like one."""
    blocks = [line.partition("  #")[0].strip() for block in FENCE.findall(text) for line in block.splitlines()]
    inline = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    found = {line for line in blocks if line and not line.startswith("#")}
    found |= {text for text in inline if IS_COMMAND.match(text) or SHORT.match(text)}
    found = {command for command in found if not OF_LINKS.fullmatch(command)}
    return found - {"make", "pip", "pytest", "pytest --vgpus", "python -m vgpu", "python -m torch"}


def printed() -> list[str]:
    """Each command once, in the order of the pages and with the readers' chain train, evaluate, predict kept."""
    return list(dict.fromkeys(command for page in PAGES for command in sorted(commands(page.read_text("utf-8")))))


ALL = printed()
COPIES = [command for command in ALL if re.match(r"(python -m frcnn_lite )?copy ", command)]
TASKS = [command for command in ALL if OF_TASKS.match(command)]
BENCHMARKS = [command for command in ALL if BENCHMARK.match(command)]
RUN = [command for command in ALL if command not in {*NOT_RUN, *COPIES, *TASKS, *BENCHMARKS}]
NEEDS_A_RUN = ("evaluate", "predict")


def in_tables(text: str) -> list[str]:
    """What a page's tables tell a reader to type: commands, options with a value, variables that are set."""
    rows = re.findall(r"^ *\|.*$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE)
    cells = [code for row in rows for code in re.findall(r"`([^`\n]+)`", row)]
    typed = re.compile(r"--\w[\w-]* \S|[A-Z_]{2,}=\w|(make|python tasks\.py) \w+ \S")
    return [code for code in cells if typed.match(code) or (IS_COMMAND.match(code) and not OF_TASKS.fullmatch(code))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_no_command_is_hidden_in_a_table(page):
    assert in_tables(page.read_text(encoding="utf-8")) == []


def test_a_command_in_a_table_is_found():
    page = "| `--gpus N` | `GPUS=2` |\n| `make lab` | opens |\n| `make test ARGS=-q` | `python -m vgpu x.py` |\n"
    assert in_tables(page) == ["--gpus N", "GPUS=2", "make test ARGS=-q", "python -m vgpu x.py"]
    assert in_tables("```sh\n| `--gpus 2` |\n```\n") == []


def test_the_pages_print_commands_and_the_exceptions_among_them():
    assert len(ALL) > 40
    print("\n".join(RUN))
    assert not NOT_RUN.keys() - set(ALL), "an exception that no page prints any more"


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
@pytest.mark.parametrize("command", [command for command in TASKS if command.startswith("make")])
def test_make_knows(command):
    ran = subprocess.run([*shlex.split(command), "--dry-run"], cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0 and f"tasks.py {command.split()[1]}" in ran.stdout, ran.stderr
    for notebook in re.findall(r"\w+\.ipynb", command):
        assert (ROOT / "notebooks" / notebook).exists()


@pytest.mark.parametrize("command", [command for command in TASKS if command.startswith("python")])
def test_tasks_knows(command):
    ran = subprocess.run([sys.executable, "tasks.py", "--help"], cwd=ROOT, capture_output=True, text=True)
    assert re.search(rf"^    {OF_TASKS.match(command)[2]}  ", ran.stdout, re.MULTILINE)


@pytest.mark.parametrize("command", BENCHMARKS)
def test_benchmarks_are_there(command):
    assert (ROOT / BENCHMARK.match(command)[1]).exists()


@pytest.mark.parametrize("command", COPIES)
def test_helpers_are_copied(command, tmp_path):
    name = command.rsplit(maxsplit=1)[-1]
    assert cli.main(["copy", name, "--out", str(tmp_path)]) == 0
    assert list(tmp_path.glob("*.py"))


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """A folder with what the commands speak of: programs, tests, pictures, and a run of two steps."""
    folder = tmp_path_factory.mktemp("desk")
    for name in ("train.py", "script.py", "models/net.py", "src/main.py"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(PROGRAM)
    (folder / "two_devices.py").write_text(TWO_DEVICES)
    (folder / "your_code").mkdir()
    (folder / "your_code" / "loop.py").write_text(BROKEN)
    (folder / "notebooks").mkdir()
    shutil.copy(ROOT / "notebooks" / "00_start_here.ipynb", folder / "notebooks")
    own_test = "import torch\n\ndef test_own(pytestconfig):\n"
    own_test += "    asked = pytestconfig.getoption('vgpus')\n"
    own_test += "    assert torch.cuda.device_count() == asked if asked else torch.cuda.device_count() >= 2\n"
    own_test += "    torch.ones(1, device='cuda')\n"
    (folder / "test_own.py").write_text(own_test)
    write_image(folder / "picture.jpg")
    write_voc(folder / "pictures", {f"p{k}": [("cell", (8, 8, 30, 30))] for k in range(8)})
    return folder


def filled_in(command: str) -> str:
    if SHORT.match(command):
        command = f"python -m frcnn_lite {command}"
    for pattern, value in FILLED_IN.items():
        command = re.sub(pattern, value, command)
    return command


def execute(command: str, folder: Path) -> subprocess.CompletedProcess:
    """One command as a shell would run it, with this interpreter as `python`; a pipe feeds the second half."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    before, _, after = command.rpartition(" 2>&1 | ")
    fed = None
    if before:
        failed = execute(before.replace("train.py", "two_devices.py"), folder)
        fed = failed.stdout + failed.stderr
    words = shlex.split(after)
    while "=" in words[0]:
        name, _, value = words.pop(0).partition("=")
        environment[name] = value
    known = {"python": [sys.executable], "pytest": [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]}
    words = [*known[words[0]], *words[1:]]
    return subprocess.run(words, cwd=folder, env=environment, input=fed, capture_output=True, text=True, timeout=600)


# One of those that are the same once they are filled in.
DIFFERENT = {filled_in(command): command for command in reversed(RUN)}.values()


IN_ORDER = sorted(DIFFERENT, key=lambda command: any(word in command for word in NEEDS_A_RUN))
# `make test` runs those alone that do without torch: the others start Python anew with it, and take seconds each.
WITHOUT_TORCH = re.compile(r"python -m multigpu (explain|lint) ")
MARKED = [
    command if WITHOUT_TORCH.match(command) else pytest.param(command, marks=pytest.mark.exhaustive)
    for command in IN_ORDER
]


@pytest.mark.parametrize("command", MARKED)
def test_runs(command, desk):
    ran = execute(filled_in(command), desk)
    may_find = re.search(r"multigpu (lint|doctor)", command) is not None
    assert ran.returncode in ({0, FINDS_SOMETHING} if may_find else {0}), ran.stdout + ran.stderr
    assert "Traceback" not in ran.stderr, ran.stderr


def test_a_page_with_an_unknown_command_would_fail(desk):
    assert commands("say `python -m frcnn_lite trian --steps 1` or\n```sh\nmake tea  # hot\n```") == {
        "python -m frcnn_lite trian --steps 1",
        "make tea",
    }
    assert commands("```sh\ngit clone https://github.com/me/it\ncd it\nmake tea\n```") == {"make tea"}
    assert execute("python -m frcnn_lite trian --steps 1", desk).returncode == 2
