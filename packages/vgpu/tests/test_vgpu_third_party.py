"""third_party.py on a project that these tests write: what it counts, what it forgives and what it says of a crash."""

import json
from pathlib import Path

import pytest
import third_party

# The runner of other projects' tests is a tool of ours, and each of these tests starts several interpreters.
pytestmark = pytest.mark.long

TESTS = """\
import os, unittest, warnings
import pytest, torch
from helper import TWO

def test_passes(): assert torch.cuda.device_count() == TWO and torch.ones(1, device="cuda:1").is_cuda
@pytest.mark.parametrize("device", ["cuda", "hpu"])
def test_devices(device): assert device == "cuda", "there is no hpu"
def test_dies(): os._exit(3)
def test_skips(): pytest.skip("needs 8 GPUs")
def test_downloads(): assert False
@pytest.mark.xfail
def test_expected(): assert False
def test_fails(): assert torch.ones(1).item() == 2.0

class TestOld(unittest.TestCase):
    def test_parts(self):
        for part in range(2):
            with self.subTest(part=part):
                self.assertEqual(part, 0, "a part differs")
"""
DATA = """\
[toy]
title = "A toy"
about = "Written by a test."
folder = "toy"
import_from = ["lib"]
packages = ["pytest", "no-such-package"]
memory = "64MiB"
limit = 120
files = ["test_it.py", "test_broken.py", "test_other.py"]
first = [["write.py", "one"]]
programs = [
    { name = "good", folder = "programs", command = ["good.py"] },
    { name = "bad", folder = "programs", memory = "96MiB", command = ["bad.py"] },
    { name = "after", folder = "programs", first = [["write.py", "two"]], command = ["after.py"] },
    { name = "never", folder = "programs", first = [["bad.py"]], command = ["good.py"] },
]

[[toy.left_out]]
tests = ["*::test_downloads"]
reason = "reads from the network"

[[toy.fails]]
tests = ["test_it.py::test_devices[hpu]"]
says = "there is no hpu"
reason = "an hpu is not a GPU"

[[toy.fails]]
tests = ["test_it.py::test_fails"]
says = "some other words"
reason = "does not fit, because the failure says something else"
"""
PROGRAMS = ("good", "bad", "after", "never")


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, dict, Path]:
    """The toy, run once but for test_other.py: the exit status, the outcomes by file and the page."""
    top = tmp_path_factory.mktemp("third_party")
    toy = top / "suites" / "toy"
    for name, text in {
        "test_it.py": TESTS,
        "test_broken.py": "import a_package_that_nobody_has\n",
        "test_other.py": "def test_other(): pass\n",
        "lib/helper.py": "TWO = 2\n",
        "programs/good.py": "import torch\nopen('left', 'w').write(str(torch.cuda.device_count()))\n",
        "programs/write.py": "import sys, torch\nopen(sys.argv[1], 'w').write(str(torch.cuda.device_count()))\n",
        "programs/after.py": "assert open('one').read() == open('two').read() == '2'\n",
        "programs/bad.py": "import sys, torch\nsys.exit(f'bad program {torch.cuda.mem_get_info()[1] >> 20}')\n",
    }.items():
        (toy / name).parent.mkdir(parents=True, exist_ok=True)
        (toy / name).write_text(text, encoding="utf-8")
    (top / "data.toml").write_text(DATA, encoding="utf-8")
    places = ["--data", top / "data.toml", "--results", top / "results", "--page", top / "page.md"]
    chosen = [word for part in ("test_it.py", "test_broken.py", *PROGRAMS) for word in ("--only", f"toy:{part}")]
    status = third_party.main(["--suites", str(top / "suites"), *map(str, places), *chosen])
    files = json.loads((top / "results" / "toy.json").read_text(encoding="utf-8"))["files"]
    return status, files, top


def test_every_test_has_its_outcome_though_one_ends_the_process(ran):
    _, files, _ = ran
    tests = {test.partition("::")[2]: what["outcome"] for test, what in files["test_it.py"]["tests"].items()}
    assert tests == {
        "test_passes": "passed",
        "test_devices[cuda]": "passed",
        "test_devices[hpu]": "failed",
        "test_dies": "failed",
        "test_skips": "skipped",
        "test_expected": "passed",
        "test_fails": "failed",
        "TestOld::test_parts": "failed",
    }
    assert files["test_it.py"]["left_out"] == ["test_it.py::test_downloads"]
    assert "in the middle" in files["test_it.py"]["tests"]["test_it.py::test_dies"]["why"]


def test_a_file_that_cannot_be_imported_fails(ran):
    _, files, _ = ran
    (what,) = files["test_broken.py"]["tests"].values()
    assert what["outcome"] == "failed" and "a_package_that_nobody_has" in what["why"]


def test_a_program_passes_by_its_exit_status_and_leaves_the_checkout_alone(ran):
    _, files, top = ran
    assert files["good"]["tests"]["good"]["outcome"] == "passed"
    assert files["bad"]["tests"]["bad"]["outcome"] == "failed"
    assert all(words in files["bad"]["tests"]["bad"]["why"] for words in ("exit status 1", "bad program 96"))
    assert sorted(path.name for path in (top / "suites" / "toy" / "programs").iterdir()) == [
        "after.py",
        "bad.py",
        "good.py",
        "write.py",
    ]


def test_commands_run_first_in_the_copy_and_a_bad_one_ends_the_program(ran):
    _, files, _ = ran
    assert files["after"]["tests"]["after"]["outcome"] == "passed", files["after"]
    why = files["never"]["tests"]["never"]["why"]
    assert "exit status 1" in why and "bad program 64" in why


def test_a_reason_counts_where_the_failure_has_its_words(ran):
    status, _, top = ran
    suites = third_party.load(top / "data.toml")
    lines = "\n".join(third_party.unexplained(suites, top / "results"))
    assert status == 1
    assert "test_devices" not in lines
    assert all(name in lines for name in ("test_fails", "test_dies", "test_parts", "test_broken.py", "toy bad"))


def test_the_command_succeeds_when_each_failure_has_its_reason(ran, tmp_path):
    _, _, top = ran
    every = '\n[[toy.fails]]\ntests = ["*"]\nsays = ""\nreason = "accepted for this test"\n'
    (tmp_path / "data.toml").write_text(DATA + every, encoding="utf-8")
    places = ["--data", tmp_path / "data.toml", "--results", top / "results", "--page", tmp_path / "page.md"]
    assert third_party.main(["--page-only", *map(str, places)]) == 0
    assert "accepted for this test" in (tmp_path / "page.md").read_text(encoding="utf-8")


def test_the_page_says_what_ran_and_what_did_not(ran):
    _, _, top = ran
    page = (top / "page.md").read_text(encoding="utf-8")
    assert "| [A toy](#a-toy) | 6 of 7 | 5 | 7 | 1 | 1 | 41.7 % |" in page
    assert "| `test_it.py` | 3 | 4 | 1 | 1 | 42.9 % |" in page
    assert "| `test_other.py` | did not run | | | | |" in page
    assert "| `test_it.py::test_devices[hpu]` | an hpu is not a GPU |" in page
    assert "| `test_it.py::test_fails` | **no reason yet** |" in page
    assert "* `*::test_downloads`: reads from the network" in page
    assert "* 1: needs 8 GPUs" in page
    assert "On 2 virtual GPUs of 64MiB." in page and "no-such-package not installed" in page


def test_a_suite_without_results_here_keeps_its_row_and_its_section(ran, tmp_path):
    """Git ignores the results, so a fresh clone has the page alone: a run of one suite must not empty the others."""
    _, files, _ = ran
    other = DATA.replace("A toy", "A second").replace("toy", "other")
    data, results, page = tmp_path / "data.toml", tmp_path / "results", tmp_path / "page.md"
    data.write_text(f"{DATA}\n{other}", encoding="utf-8")
    results.mkdir()
    for name in ("toy", "other"):
        (results / f"{name}.json").write_text(json.dumps({"files": files}), encoding="utf-8")
    places = ["--page-only", "--data", str(data), "--results", str(results), "--page", str(page)]
    third_party.main(places)
    whole = page.read_text(encoding="utf-8")
    assert whole.count("| `test_it.py::test_fails` | **no reason yet** |") == 2

    (results / "toy.json").unlink()
    third_party.main(places)
    assert page.read_text(encoding="utf-8") == whole, "the first suite has no results here, so its part must stay"

    part = {"files": {"good": files["good"]}}
    (results / "other.json").write_text(json.dumps(part), encoding="utf-8")
    third_party.main(places)
    text = page.read_text(encoding="utf-8")
    assert "| [A toy](#a-toy) | 6 of 7 | 5 | 7 | 1 | 1 | 41.7 % |" in text
    assert "| [A second](#a-second) | 1 of 7 | 1 | 0 | 0 | 0 | 100.0 % |" in text
    assert text.count("| `test_it.py::test_fails` | **no reason yet** |") == 1

    page.unlink()
    third_party.main(places)
    nothing = "| [A toy](#a-toy) | 0 of 7 | 0 | 0 | 0 | 0 | - |"
    assert nothing in page.read_text(encoding="utf-8"), "without a page nothing is known of the suite"


def test_the_page_that_is_committed_stays_as_it_is_where_nothing_has_run(tmp_path):
    page = third_party.HERE.parent / "docs" / "third-party.md"
    text = page.read_text(encoding="utf-8")
    suites = third_party.load(third_party.SUITES / "suites.toml")
    assert third_party.page(suites, tmp_path, text) == text


def test_a_test_that_says_nothing_for_too_long_is_ended(tmp_path):
    suite = {"gpus": 1, "memory": "64MiB", "limit": 10}
    text = "import time\n\ndef test_hangs(): time.sleep(600)\n\ndef test_after(): pass\n"
    (tmp_path / "test_it.py").write_text(text, encoding="utf-8")
    result = third_party.run_file(suite, tmp_path, "test_it.py", third_party.sys.executable)["tests"]
    assert result["test_it.py::test_hangs"]["why"] == "did not end within 10 s"
    assert result["test_it.py::test_after"]["outcome"] == "passed"


APART = """\
import os, subprocess, sys
import pytest
ran = []

def test_first(): ran.append(1)
def test_alone(): assert not ran
def test_ranks():
    assert not ran
    if "LOCAL_RANK" in os.environ:
        pytest.skip("a further rank, whose word does not count")
    subprocess.run([sys.executable, "-m", "pytest", *sys.argv[1:]], env=os.environ | {"LOCAL_RANK": "1"}, check=True)
"""


def test_a_suite_that_is_apart_has_a_process_for_each_test_and_rank_0_speaks_for_it(tmp_path):
    """As Lightning's standalone tests: a further rank runs the same test in a pytest of its own."""
    suite = {"gpus": 1, "memory": "64MiB", "limit": 120, "apart": True}
    (tmp_path / "test_it.py").write_text(APART, encoding="utf-8")
    result = third_party.run_file(suite, tmp_path, "test_it.py", third_party.sys.executable)["tests"]
    names = ["test_it.py::test_alone", "test_it.py::test_first", "test_it.py::test_ranks"]
    assert {name: what["outcome"] for name, what in result.items()} == dict.fromkeys(names, "passed"), result


def test_a_draw_takes_its_part_of_the_tests_by_their_names(tmp_path):
    suite = {"gpus": 1, "memory": "64MiB", "limit": 120, "draw": {"one_in": 5, "seed": 15}}
    text = "import pytest\n@pytest.mark.parametrize('i', range(200))\ndef test_it(i): pass\n"
    (tmp_path / "test_it.py").write_text(text, encoding="utf-8")
    first, again = (third_party.run_file(suite, tmp_path, "test_it.py", third_party.sys.executable) for _ in range(2))
    assert list(first["tests"]) == list(again["tests"]) and 20 < len(first["tests"]) < 60
    assert len(first["tests"]) + len(first["left_out"]) == 200 and not set(first["tests"]) & set(first["left_out"])


def test_the_last_attempt_of_a_repeated_test_counts(tmp_path):
    """pytest-rerunfailures reports an attempt that it repeats as `rerun`."""
    events = ["started", "passed", "rerun", "passed", "passed", "passed", "ended"]
    lines = [{"test": "a", "event": event, "why": "", "seconds": 1.0} for event in events]
    (tmp_path / "lines").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    results, _, _, running = third_party.read_lines(tmp_path / "lines")
    assert results == {"a": third_party.Test("passed", "", 3.0)} and running is None


def test_the_list_of_suites_is_whole():
    """Each entry has what the page prints, and no suite names a file twice."""
    for name, suite in third_party.load(third_party.SUITES / "suites.toml").items():
        names = [part for part, _ in third_party.parts(suite)]
        assert names and len(names) == len(set(names)), name
        for entry in [*suite.get("left_out", []), *suite.get("fails", [])]:
            assert entry["tests"] and entry["reason"].strip(), name
        assert all(entry["says"].strip() for entry in suite.get("fails", [])), name
