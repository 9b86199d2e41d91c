"""A training that is killed at any moment, as often as one likes, ends in the same weights."""

import subprocess
import sys

import killed_training
import pytest

from frcnn_lite import engine
from frcnn_lite.recipes.determinism import same_bits

pytestmark = [
    pytest.mark.starts_early,
    pytest.mark.skipif(sys.platform != "linux", reason="starts children by fork, which is safe on Linux only"),
]


@pytest.mark.parametrize("kills", [4, pytest.param(20, marks=pytest.mark.long)])
def test_kills_at_random_moments_change_no_bit(kills, tmp_path):
    program = [sys.executable, killed_training.__file__, str(tmp_path), str(kills)]
    ended = subprocess.run(program, capture_output=True, text=True, timeout=600)
    assert ended.returncode == 0, ended.stderr
    first, second = (engine.load_run(tmp_path / name) for name in ("whole", "often"))
    assert first.step == second.step == killed_training.config(kills).steps
    assert same_bits(first.model.state_dict(), second.model.state_dict())
    assert [record["loss"] for record in first.history] == [record["loss"] for record in second.history]
