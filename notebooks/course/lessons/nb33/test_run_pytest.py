"""The report of a pytest run, as notebook 33 prints it."""

import pytest

from course.lessons.nb33.run_pytest import run_pytest, what_matters

REPORT = """.F.s
=================================== FAILURES ===================================
    def test_two():
E       RuntimeError: Caught RuntimeError in replica 1 on device 1.
E           torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 128.00 MiB. GPU 0 has a total capacity of 1 G
/somewhere/test_two.py:9: RuntimeError
SKIPPED [1] test_two.py:12: needs two GPUs
FAILED test_two.py::test_two - RuntimeError: Caught
1 failed, 1 passed, 1 skipped in 62.10s (0:01:02)
"""


def test_keeps_what_is_the_same_in_each_run():
    assert what_matters(REPORT) == [
        "E           torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 128.00 MiB. GPU 0",
        "SKIPPED [1] test_two.py:12: needs two GPUs",
        "FAILED test_two.py::test_two - RuntimeError: Caught",
        "1 failed, 1 passed, 1 skipped",
    ]


def test_a_run_that_reports_nothing_is_an_error(tmp_path):
    with pytest.raises(RuntimeError, match="no-such-option"):
        run_pytest(tmp_path, "--no-such-option")
