"""What a pytest session on virtual GPUs says at its end, and the three options that make it fail.

The facts come from all processes of the session (record.py): workers of xdist, spawned children, ranks of torchrun.
"""

from __future__ import annotations

import contextlib
import inspect
import linecache
import re
import shutil
import tempfile
import time
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any

import pytest

from vgpu.base import record
from vgpu.machine import contexts, memory
from vgpu.racing import watch
from vgpu.starting import banner

# Words in a reason, in a marker's name or in the decorators of a test that asks for GPUs.
_ASKS = re.compile(r"gpu|cuda|nccl|accelerator|multi[ _-]?device|device_count|[2-9]\d* devices", re.IGNORECASE)
# The opposite: a decorator that skips a test of the CPU because there are GPUs.
_CPU_ONLY = re.compile(r"skip_?if\(\s*torch\.cuda\.(is_available\(\)\s*[,)]|device_count\(\)\s*>)", re.IGNORECASE)
_PREFIX = "vgpu-record-"  # of the folder that the processes of a session write to
_DAY = 24 * 60 * 60  # seconds
_LEADING = 3  # lines above a call of `skip` that may say why it is reached


class Run:
    """One session: counts the tests that used a virtual GPU, and names those that should have."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.is_worker = hasattr(config, "workerinput")  # of xdist: it records, and the controller reports
        self.used: set[str] = set()
        self.skipped: list[str] = []
        self.unsimulated: list[str] = []
        self.ended: list[str] = []
        self.failed: set[str] = set()
        self.expected = [_pattern(line) for line in config.getini("vgpus_expected")]
        if not self.is_worker:
            _sweep()
            self.folder = tempfile.mkdtemp(prefix=_PREFIX)
            environment = pytest.MonkeyPatch()
            environment.setenv(record.FOLDER, self.folder)
            config.add_cleanup(environment.undo)
            config.add_cleanup(lambda: shutil.rmtree(self.folder, ignore_errors=True))

    def pytest_report_header(self) -> str:
        return f"vgpu: {banner.machine()}"

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        contexts.revive()  # a kernel that failed in the test before ends that test's context and no other
        before = memory.marks()
        result = yield
        if memory.used_since(before):
            record.write(record.USED, test=item.nodeid)
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Generator[None, Any, Any]:
        with self._watched():
            result = yield
        contexts.settle()  # else a kernel that failed would be no failure where the test waits for nothing any more
        return result

    @contextlib.contextmanager
    def _watched(self) -> Generator[None, None, None]:
        """Look for races, if the session asks for it, also in the programs that the test starts."""
        delay = self.config.getoption("vgpus_delay")
        if not (delay or self.config.getoption("vgpus_races")):
            yield
            return
        with pytest.MonkeyPatch.context() as environment, watch.races(delay=delay):
            environment.setenv(watch.VARIABLE, watch.DELAY if delay else watch.RAISE)
            yield

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, Any, Any]:
        report = yield
        if report.skipped and not hasattr(report, "wasxfail"):
            reason, (path, line) = _reason(report), _place(report)
            by_mark = line == (item.location[1] or 0) + 1  # then the place is the test's own first line
            if _asks(reason, _about(item), "" if by_mark else _leading(path, line)):
                record.write(record.SKIPPED, reason, item.nodeid)
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.add(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped and _asks(_reason(report), "", _leading(*_place(report))):
            record.write(record.SKIPPED, _reason(report), report.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.is_worker:
            return
        for kind, test, what in record.read(self.folder):
            if kind == record.USED:
                self.used.add(test)
                continue
            line = f"{test}: {what}"
            if kind == record.ENDED:
                self.ended += [line] * (test in self.failed)
            elif not any(pattern.search(line) for pattern in self.expected):
                (self.skipped if kind == record.SKIPPED else self.unsimulated).append(line)
        self.used -= {_test(line) for line in self.skipped}
        if session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED) and self._why():
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _why(self) -> list[str]:
        """The reasons for which the options of this plugin make the run fail."""
        option, why = self.config.getoption, []
        least = option("vgpus_min")
        if least is not None and len(self.used) < least and not option("collectonly"):
            why.append(f"{_tests(self.used)} ran on virtual GPUs, and --vgpus-min asks for {least}")
        if option("vgpus_no_skips") and self.skipped:
            why.append(f"--vgpus-no-skips found {_tests(self.skipped)} skipped that ask for GPUs")
        if option("vgpus_strict") and self.unsimulated:
            why.append(f"--vgpus-strict found {_tests(self.unsimulated)} that met what is not simulated")
        return why

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> Generator[None, None, None]:
        """Report below the list of the tests that failed, where the reasons of a run that fails are looked for."""
        yield
        option, why = self.config.getoption, "; ".join(self._why())
        _list(terminalreporter, "failed after a kernel had failed (device-side assert)", self.ended)
        if option("vgpus_no_skips"):
            _list(terminalreporter, "skipped although they ask for GPUs (--vgpus-no-skips)", self.skipped)
        if option("vgpus_strict"):
            _list(terminalreporter, "met what virtual GPUs do not simulate (--vgpus-strict)", self.unsimulated)
        told = [f"{_tests(self.used)} ran on virtual GPUs"]
        if self.skipped:
            told.append(f"skipped although they ask for GPUs: {len(self.skipped)}")
        if self.unsimulated:
            told.append(f"met what is not simulated: {len({_test(line) for line in self.unsimulated})}")
        terminalreporter.write_line(f"vgpu: {'; '.join(told)}")
        if why:
            terminalreporter.write_line(f"FAILED vgpu - {why}", red=True)


def _sweep() -> None:
    """Remove what sessions left behind that were killed, as by the time limit of a job."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        try:
            if time.time() - folder.stat().st_mtime > _DAY:
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue  # a different session has removed it


def _pattern(line: str) -> re.Pattern[str]:
    try:
        return re.compile(line)
    except re.error as error:
        raise pytest.UsageError(f"vgpus_expected: {line!r} is not a regular expression: {error}") from None


def _test(line: str) -> str:
    return line.split(": ")[0]


def _tests(lines: Iterable[str]) -> str:
    """How many different tests the lines are about, in words."""
    number = len({_test(line) for line in lines})
    return f"{number} test{'s' * (number != 1)}"


def _list(reporter: Any, title: str, lines: list[str]) -> None:
    if lines:
        reporter.section(title, sep="-", red=True)
        for line in lines:
            reporter.write_line(line)


def _reason(report: Any) -> str:
    """Why a test or a module was skipped."""
    found = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return found.removeprefix("Skipped: ")


def _place(report: Any) -> tuple[str, int]:
    """File and line of what skipped it."""
    return report.longrepr[:2] if isinstance(report.longrepr, tuple) else ("", 0)


def _leading(path: str, line: int) -> str:
    """The line that called `skip`, and those above that may say why it was reached."""
    found: list[str] = []
    for number in range(line, max(0, line - _LEADING - 1), -1):
        found.append(linecache.getline(str(path), number))
        if found[-1].lstrip().startswith(("def ", "class ", "@")):
            break
    return "".join(found)


def _asks(reason: str, about: str, leading: str) -> bool:
    """Whether what was skipped asks for GPUs: the reason says so, or the decorators, or the lines that skip."""
    if _ASKS.search(reason):
        return True
    return any(_ASKS.search(text) and not _CPU_ONLY.search(text) for text in (about, leading))


def _about(item: pytest.Item) -> str:
    """The names of a test's markers, and its decorators and those of its class."""
    text = [mark.name for mark in item.iter_markers()]
    for thing in (getattr(item, "obj", None), getattr(item, "cls", None)):
        try:
            source = inspect.getsource(inspect.unwrap(thing)) if thing is not None else ""
        except (OSError, TypeError):
            continue
        text.append(re.split(r"^\s*(?:async )?(?:def|class) ", source, maxsplit=1, flags=re.MULTILINE)[0])
    return "\n".join(text)
