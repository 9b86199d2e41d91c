"""A plugin that third_party.py loads into pytest sessions of other projects: it leaves tests out and records the rest.

It imports nothing but pytest and the standard library, because it lives in somebody else's session. The environment
says where its orders are (a JSON file) and where its lines go: one for each test that starts and one for each report,
written at once, so what was known before a crash is not lost.
"""

import json
import os
import random
import re
from pathlib import Path

import pytest

ORDERS, LINES = "VGPU_THIRD_PARTY_ORDERS", "VGPU_THIRD_PARTY_LINES"
FURTHER_RANK = os.environ.get("LOCAL_RANK", "0") != "0"  # as this process began, for a test may set it later


def matches(pattern, test):
    """Whether a test's id fits a pattern, in which `*` stands for anything and brackets mean themselves."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), test, re.DOTALL) is not None


def drawn(draw, test):
    """Whether a suite that runs one test in `one_in` runs this one, which depends on the seed and on its name alone."""
    return not draw or random.Random(f"{draw['seed']} {test}").random() * draw["one_in"] < 1


def write(**line):
    """Append a line, and close the file, so that nothing waits in a buffer; but rank 0 alone speaks for its test.

    Lightning's launcher starts pytest once more for each further rank, with LOCAL_RANK in its environment.
    """
    if FURTHER_RANK:
        return
    with Path(os.environ[LINES]).open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(line) + "\n")


@pytest.hookimpl(trylast=True)  # after the project's own choice of tests
def pytest_collection_modifyitems(config, items):
    """Write down what was collected and keep what is still to run."""
    orders = json.loads(Path(os.environ[ORDERS]).read_text(encoding="utf-8"))
    finished, kept, others = set(orders["finished"]), [], []
    for item in items:
        test = item.nodeid
        left_out = any(matches(pattern, test) for pattern in orders["left_out"]) or not drawn(orders["draw"], test)
        write(test=test, event="left out" if left_out else "collected")
        # Where each test has a process of its own, this process has the first that is not finished.
        full = orders["apart"] and kept
        (others if left_out or full or test in finished else kept).append(item)
    items[:] = kept
    if others:
        config.hook.pytest_deselected(items=others)


def pytest_runtest_logstart(nodeid):
    """A crash belongs to the test that started last."""
    write(test=nodeid, event="started")


def pytest_runtest_logreport(report):
    """Set-up, call and tear-down each report, and so does each subtest."""
    outcome, why = report.outcome, ""
    if hasattr(report, "wasxfail"):
        # A failure that the test's author expects is what should happen.
        outcome, why = "passed", ""
    elif report.outcome == "skipped" and isinstance(report.longrepr, tuple):
        why = str(report.longrepr[2])
    elif report.outcome == "failed":
        why = report.longreprtext[-6000:]
    write(test=report.nodeid, event=outcome, when=report.when, why=why, seconds=report.duration)


def pytest_runtest_logfinish(nodeid):
    """After this the test can no longer be the one that a crash belongs to."""
    write(test=nodeid, event="ended")


def pytest_collectreport(report):
    """A file that cannot be imported has no tests, so it is reported as one."""
    if report.outcome == "failed":
        write(test=report.nodeid, event="failed", when="collect", why=report.longreprtext[-6000:], seconds=0)
    elif report.outcome == "skipped":
        why = str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else str(report.longrepr)
        write(test=report.nodeid, event="skipped", when="collect", why=why, seconds=0)
