"""Other projects' own tests on virtual GPUs, from checkouts that you have; writes docs/third-party.md.

python packages/vgpu/tools/third_party.py --suites DIR [--python PATH] [--only SUITE[:FILE]]... [--page-only]

DIR holds a folder for each suite of third_party_suites/suites.toml, which says what runs and, before anything has run,
which tests are left out and why. It also holds the reason of every failure that remains. A failure without one, and a
file that did not come to its end, make the exit status 1.

What the suites import must be installed for the interpreter that runs them: `--python`, by default this one. Results
are kept in runs/third-party, so `--only` renews a part of them, and the page is written from all of them. Git ignores
that folder. A suite that has no results in it therefore keeps its row and its section of the page as they stand,
because the page is the record that is committed. A suite that has results is written from them alone: its files that
have not run on this machine are shown as files that did not run.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
SUITES = HERE / "third_party_suites"
sys.path.insert(0, str(SUITES))
from vgpu_third_party_recorder import LINES, ORDERS, matches  # noqa: E402

START = 600.0  # seconds that a pytest session may take to collect
VERSIONS = """
import importlib.metadata as m, json, platform, sys, torch, vgpu
found = {"Python": platform.python_version(), "torch": torch.__version__, "vgpu": m.version("vgpu")}
for name in sys.argv[1:]:
    try: found[name] = m.version(name)
    except m.PackageNotFoundError: found[name] = "not installed"
print(json.dumps(found))
"""


@dataclasses.dataclass
class Test:
    """What became of one test: `outcome` is passed, failed, skipped or not run."""

    outcome: str
    why: str = ""
    seconds: float = 0.0


Results = dict[str, Test]


# ---------------------------------------------------------------- one file


def read_lines(path: Path) -> tuple[Results, set[str], set[str], str | None]:
    """What the recorder wrote: outcomes, the tests it left out, those it collected, and the one that never ended."""
    results: Results = {}
    left_out: set[str] = set()
    collected: set[str] = set()
    running = None
    for text in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        line = json.loads(text)
        name, event = line["test"], line["event"]
        if event == "left out":
            left_out.add(name)
        elif event == "collected":
            collected.add(name)
        elif event == "started":
            running = name
        elif event == "ended":
            running = None
        elif event == "rerun":
            results.pop(name, None)  # by pytest-rerunfailures: the last attempt counts
        else:
            test = results.setdefault(name, Test(event))
            # A test has several reports, and the worst counts: a test is skipped although its set-up passed.
            if ["passed", "skipped", "failed"].index(event) > ["passed", "skipped", "failed"].index(test.outcome):
                test.outcome = event
            test.why = test.why or line["why"]
            test.seconds += line["seconds"]
    if running is not None:
        results.pop(running, None)  # its set-up may have reported
    return results, left_out, collected, running


def wait(
    command: list[str], folder: Path, environment: dict[str, str], output: Path, lines: Path, limit: float, first: float
) -> str:
    """Run a command until it ends, or writes no line for `limit` seconds; say how it ended, if not by itself.

    The first line has `first` seconds: until then Python imports torch and pytest collects, and no test is to blame.
    """
    with output.open("w", encoding="utf-8") as out:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
        )
        written, since = -1, time.monotonic()
        try:
            while process.poll() is None:
                size = lines.stat().st_size if lines.exists() else 0
                if size != written:
                    written, since = size, time.monotonic()
                elif time.monotonic() - since > (limit if written > 0 else first):
                    return f"did not end within {limit if written > 0 else first:.0f} s"
                time.sleep(0.1)
        finally:
            stop(process)
    return f"the process was ended by signal {-process.returncode}" if process.returncode < 0 else ""


def stop(process: subprocess.Popen) -> None:
    """End a process with all that it started, which otherwise would wait for each other for ever."""
    if os.name == "nt":
        process.kill()
    else:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def environment_of(suite: dict[str, Any], checkout: Path, python: str) -> dict[str, str]:
    """The user's environment, what the suite asks for, and the interpreter's own programs (torchrun) before others."""
    path = os.pathsep.join([str(Path(python).parent), os.environ.get("PATH", "")])
    found = {**os.environ, "PATH": path, **suite.get("environment", {})}
    packages = [str(checkout / folder) for folder in suite.get("import_from", [])]
    found["PYTHONPATH"] = os.pathsep.join(filter(None, [*packages, str(SUITES), os.environ.get("PYTHONPATH")]))
    return found


def run_file(suite: dict[str, Any], checkout: Path, name: str, python: str) -> dict[str, Any]:
    """Run the tests of one file to their end: after a crash or a test that hangs the rest runs in a new process.

    A suite that is `apart` has a process for each test.
    """
    results: Results = {}
    apart = suite.get("apart", False)
    folder = checkout / suite.get("within", ".")
    begin = [python, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider", "-p", "vgpu_third_party_recorder"]
    gpus = ["--vgpus", str(suite["gpus"]), "--vgpus-memory", suite["memory"]]
    with tempfile.TemporaryDirectory() as temporary:
        orders, lines, output = (Path(temporary, name) for name in ("orders.json", "lines", "output"))
        while True:
            patterns = [pattern for entry in suite.get("left_out", []) for pattern in entry["tests"]]
            order = {"left_out": patterns, "finished": list(results), "draw": suite.get("draw"), "apart": apart}
            orders.write_text(json.dumps(order), encoding="utf-8")
            lines.unlink(missing_ok=True)
            environment = environment_of(suite, checkout, python) | {ORDERS: str(orders), LINES: str(lines)}
            command = [*begin, *gpus, *suite.get("options", []), name]
            broken = wait(command, folder, environment, output, lines, suite["limit"], START)
            found, left_out, collected, running = read_lines(lines)
            results |= found
            if running is not None:
                results[running] = Test("failed", broken or "the process ended in the middle of the test")
            elif broken or not (collected or left_out or results):
                # Before the first test, or after the last: there is no test that it belongs to.
                text = output.read_text(encoding="utf-8", errors="replace")[-2000:]
                results[name] = Test("failed", f"{broken or 'pytest collected nothing'}\n{text}")
            remaining = collected - set(results)
            if not remaining or (running is None and not (apart and found)):
                break
    results |= {test: Test("not run") for test in remaining}
    tests = {test: dataclasses.asdict(results[test]) for test in sorted(results)}
    return {"left_out": sorted(left_out), "tests": tests}


def run_program(suite: dict[str, Any], checkout: Path, program: dict[str, Any], python: str) -> dict[str, Any]:
    """Run one program of a suite, which passes by exiting with 0, after those that it needs `first`."""
    gpus = ["--gpus", str(program.get("gpus", suite["gpus"])), "--memory", program.get("memory", suite["memory"])]
    steps = [*suite.get("first", []), *program.get("first", []), program["command"]]
    commands = [[python, "-m", "vgpu", *gpus, *words] for words in steps]
    with tempfile.TemporaryDirectory() as temporary:
        output, checked, folder = (Path(temporary, name) for name in ("output", "status", "folder"))
        shutil.copytree(checkout / program["folder"], folder)  # a program may leave files beside itself
        # The status goes through a file, because `wait` tells only what ended badly from outside.
        shell = [python, "-c", STATUS, str(checked), json.dumps(commands)]
        start = time.monotonic()
        environment = environment_of(suite, checkout, python)
        broken = wait(shell, folder, environment, output, checked, suite["limit"], suite["limit"])
        status = checked.read_text() if checked.exists() else ""
        text = output.read_text(encoding="utf-8", errors="replace")[-6000:]
    test = Test("passed") if status == "0" else Test("failed", f"{broken or 'exit status ' + status}\n{text}")
    test.seconds = time.monotonic() - start
    return {"left_out": [], "tests": {program["name"]: dataclasses.asdict(test)}}


STATUS = """
import json, pathlib, subprocess, sys
status = 0
for command in json.loads(sys.argv[2]):
    status = status or subprocess.run(command).returncode
pathlib.Path(sys.argv[1]).write_text(str(status))
"""


# ---------------------------------------------------------------- all of them


def load(path: Path) -> dict[str, dict[str, Any]]:
    """The suites of a file, each with what it does not say itself."""
    with path.open("rb") as file:
        suites = tomllib.load(file)
    return {name: {"gpus": 2, "memory": "2GiB", "limit": 600, **suite} for name, suite in suites.items()}


def parts(suite: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """The files of a suite, and its programs."""
    yield from ((name, None) for name in suite.get("files", []))
    yield from ((program["name"], program) for program in suite.get("programs", []))


def versions(suite: dict[str, Any], checkout: Path, python: str) -> dict[str, str]:
    """What ran: the checkout's commit, and the versions in the environment that ran it."""
    asked = [python, "-c", VERSIONS, *suite.get("packages", [])]
    found = json.loads(subprocess.run(asked, check=True, capture_output=True, text=True).stdout)
    git = ["git", "-C", str(checkout), "log", "-1", "--format=%h (%cs)"]
    commit = subprocess.run(git, capture_output=True, text=True)
    return {"commit": commit.stdout.strip() or "unknown", **found}


def reason(suite: dict[str, Any], test: str, why: str) -> str | None:
    """Why a failure is accepted: its entry names the test and words that the failure has; None if there is no entry."""
    for entry in suite.get("fails", []):
        if any(matches(pattern, test) for pattern in entry["tests"]) and entry["says"] in why:
            return entry["reason"]
    return None


def run(suites: dict[str, dict[str, Any]], options: argparse.Namespace) -> None:
    """Run what was asked for, and keep the results after each file."""
    for name, suite in suites.items():
        checkout = options.suites / suite["folder"]
        wanted = [only.partition(":") for only in options.only]
        if wanted and name not in [only[0] for only in wanted]:
            continue
        if not checkout.is_dir():
            print(f"{name}: {checkout} is not there, so this suite did not run")
            continue
        kept = options.results / f"{name}.json"
        record = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {"files": {}}
        what_ran = versions(suite, checkout, options.python)
        for part, program in parts(suite):
            if wanted and not any(only[0] == name and only[2] in ("", part) for only in wanted):
                continue
            if program is None:
                result = run_file(suite, checkout, part, options.python)
            else:
                result = run_program(suite, checkout, program, options.python)
            result["versions"] = what_ran
            record["files"][part] = result
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
            counts = collections.Counter(test["outcome"] for test in result["tests"].values())
            print(f"{name} {part}: {', '.join(f'{n} {what}' for what, n in counts.most_common())}", flush=True)


def unexplained(suites: dict[str, dict[str, Any]], results: Path) -> list[str]:
    """The tests that failed without a reason, and those that never ran, as a line each."""
    found = []
    for name, suite in suites.items():
        for _, tests in read_record(results, name):
            for test, what in tests["tests"].items():
                if what["outcome"] == "failed" and reason(suite, test, what["why"]) is None:
                    last = (what["why"].strip().splitlines() or [""])[-1]
                    found.append(f"{name} {test}: {last[:200]}")
                elif what["outcome"] == "not run":
                    found.append(f"{name} {test}: did not run")
    return found


def read_record(results: Path, name: str) -> list[tuple[str, dict[str, Any]]]:
    """The files of a suite that have run, with what became of their tests."""
    kept = results / f"{name}.json"
    return list(json.loads(kept.read_text(encoding="utf-8"))["files"].items()) if kept.exists() else []


# ---------------------------------------------------------------- the page

INTRODUCTION = """\
# Other projects' tests on virtual GPUs

<!-- written by tools/third_party.py from tools/third_party_suites/suites.toml and the results of its runs -->

`make third-party SUITES=DIR` runs the tests of checkouts that you have, unmodified, and writes this page. The file
[suites.toml](../tools/third_party_suites/suites.toml) says which files run. It also lists, before anything runs, the
tests that are left out, and it gives the reason of every failure that remains: a failure without one makes the command
fail. `DIR` holds the folders `accelerate`, `lightning`, `ignite`, `DeepSpeed`, `examples`, `ring-attention`,
`torchmetrics`, `cs336`, `tensordict`, `opacus`, `nanoGPT`, `timm`, `ultralytics`, `mmengine`, `fairscale`, `composer`,
`picotron` and `torchtitan`, or some of them; what they import must be installed for the interpreter that `--python`
names. For accelerate:

```sh
git clone https://github.com/huggingface/accelerate suites/accelerate
python -m venv env
env/bin/pip install ./packages/vgpu -e suites/accelerate pytest parameterized torchdata datasets timm transformers
make third-party SUITES=suites ARGS="--python $PWD/env/bin/python --only accelerate"
```

A test is *skipped* by its own project, for the reasons listed below each table, and a failure that its author expects
(`xfail`) counts as passed. Of a test that its project repeats, the last attempt counts. *Rate* is passed of passed and
failed. Files that did not run are named. Nothing here ran on a real GPU.

A machine may have run some of the suites only. The row and the section of a suite that it has not run stay as they
stand on this page, and those of a suite that it has run, or a part of it, are written from its own results alone.

The tests of transformers' distributed trainer and of its tensor parallelism are not here. The source package of
transformers 5.24.0 holds the mixins of its model tests alone, and the mixin of tensor parallelism skips its tests
where there is a GPU. Nor are the tests that peft runs on several GPUs: of 44 at commit 5d602fdbf, 34 ask for libraries
with kernels for CUDA, such as bitsandbytes, and the other ten download a model.
"""


def cell(text: str) -> str:
    """A text that fits into a cell of a table."""
    return text.replace("|", "\\|").replace("\n", " ")


def rate(counts: collections.Counter) -> str:
    """Passed of passed and failed."""
    of = counts["passed"] + counts["failed"]
    return f"{100 * counts['passed'] / of:.1f} %" if of else "-"


def page(suites: dict[str, dict[str, Any]], results: Path, old: str = "") -> str:
    """The whole page: a table of all suites, then a section for each; `old` is the page as it stands."""
    rows, sections = [], []
    for name, suite in suites.items():
        record = dict(read_record(results, name))
        row, section = (None if record else kept(old, suite["title"])) or written(suite, record)
        rows.append(row)
        sections += ["", f"## {suite['title']}", "", section]
    head = ["| suite | files that ran | passed | failed | skipped | left out | rate |", "|---|---|---|---|---|---|---|"]
    return "\n".join([INTRODUCTION, *head, *rows, *sections]) + "\n"


def kept(old: str, title: str) -> tuple[str, str] | None:
    """The row and the section that a suite has on the page as it stands, or None if it is not there."""
    row = next((line for line in old.splitlines() if line.startswith(f"| [{title}](#")), None)
    _, heading, rest = old.partition(f"\n## {title}\n")
    return (row, rest.partition("\n## ")[0].strip()) if row and heading else None


def written(suite: dict[str, Any], record: dict[str, Any]) -> tuple[str, str]:
    """The row and the section of a suite, from the files that have run."""
    total: collections.Counter = collections.Counter()
    lines = ["| file | passed | failed | skipped | left out | rate |", "|---|---|---|---|---|---|"]
    skips: collections.Counter = collections.Counter()
    failures = []
    for part, _ in parts(suite):
        if part not in record:
            lines.append(f"| `{part}` | did not run | | | | |")
            continue
        tests = record[part]["tests"]
        counts = collections.Counter(test["outcome"] for test in tests.values())
        counts["left out"] = len(record[part]["left_out"])
        figures = " | ".join(str(counts[what]) for what in ("passed", "failed", "skipped", "left out"))
        lines.append(f"| `{part}` | {figures} | {rate(counts)} |")
        total.update(counts)
        skips.update(skip(test["why"]) for test in tests.values() if test["outcome"] == "skipped")
        failures += [
            (test, reason(suite, test, what["why"]) or "**no reason yet**")
            for test, what in tests.items()
            if what["outcome"] == "failed"
        ]
    ran = f"{len(record)} of {len(list(parts(suite)))}"
    figures = " | ".join(str(total[what]) for what in ("passed", "failed", "skipped", "left out"))
    row = f"| [{suite['title']}](#{anchor(suite['title'])}) | {ran} | {figures} | {rate(total)} |"
    section = [*described(suite, record), "", *lines]
    if failures:
        section += ["", "| failed | reason |", "|---|---|"]
        section += [f"| `{cell(test)}` | {cell(why)} |" for test, why in failures]
    draw = suite.get("draw")
    if draw or suite.get("left_out"):
        section += ["", "Left out before the run:", ""]
        if draw:
            one_in, seed = draw["one_in"], draw["seed"]
            section.append(f"* the tests that were not drawn: one in {one_in} is, by its name and seed {seed}")
        for entry in suite.get("left_out", []):
            section.append(f"* {', '.join(f'`{test}`' for test in entry['tests'])}: {entry['reason']}")
    if skips:
        section += ["", "Skipped by the project itself:", ""]
        section += [f"* {number}: {why}" for why, number in skips.most_common()]
    return row, "\n".join(section)


def anchor(title: str) -> str:
    """GitHub's anchor of a heading."""
    return "".join(c for c in title.lower().replace(" ", "-") if c.isalnum() or c in "-_")


def skip(why: str) -> str:
    """A reason to skip, on one line and without pytest's first word."""
    return " ".join(why.removeprefix("Skipped: ").split())[:200] or "no reason given"


def described(suite: dict[str, Any], record: dict[str, Any]) -> list[str]:
    """What the suite is, and what ran it; one line for each set of versions, where parts ran at different times."""
    sets = {", ".join(f"{k} {v}" for k, v in part["versions"].items()) for part in record.values()}
    machine = f"On {suite['gpus']} virtual GPUs of {suite['memory']}."
    return [" ".join([suite["about"], machine, *(["Run with: " + "; and ".join(sorted(sets)) + "."] if sets else [])])]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suites", type=Path, help="the folder that holds the checkouts")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that has what the suites import")
    only = "run this alone; may be given several times"
    parser.add_argument("--only", action="append", default=[], metavar="SUITE[:FILE]", help=only)
    parser.add_argument("--page-only", action="store_true", help="run nothing, write the page from the kept results")
    parser.add_argument("--data", type=Path, default=SUITES / "suites.toml", help=argparse.SUPPRESS)
    parser.add_argument("--results", type=Path, default=ROOT / "runs" / "third-party", help=argparse.SUPPRESS)
    parser.add_argument("--page", type=Path, default=HERE.parent / "docs" / "third-party.md", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    suites = load(options.data)
    unknown = [only for only in options.only if only.partition(":")[0] not in suites]
    if unknown:
        parser.error(f"no such suite: {', '.join(unknown)}; there are {', '.join(suites)}")
    if not options.page_only:
        if options.suites is None:
            parser.error("--suites (SUITES=) names the folder that holds the checkouts")
        options.suites = options.suites.resolve()
        run(suites, options)
    old = options.page.read_text(encoding="utf-8") if options.page.exists() else ""
    options.page.write_text(page(suites, options.results, old), encoding="utf-8")
    print(f"{options.page} is written")
    failed = unexplained(suites, options.results)
    for line in failed:
        print(f"no reason: {line}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
