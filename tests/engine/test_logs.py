"""A log that cannot be written says so."""

import os

import pytest

from frcnn_lite.engine import RunDirectory
from frcnn_lite.engine.logs import StepLog
from frcnn_lite.whole_file import WriteError


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="/dev/full, which is always full, is Linux's")
def test_a_full_disk_is_named_once(tmp_path):
    (tmp_path / "log.jsonl").symlink_to("/dev/full")
    words = r"log\.jsonl could not be written: the disk is full"
    with StepLog(RunDirectory(tmp_path)) as log, pytest.raises(WriteError, match=words):
        log.write({"step": 0, "loss": 1.0})
