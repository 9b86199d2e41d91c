import shutil
import subprocess
import sys
from pathlib import Path

import frcnn_lite.engine

HELPERS = ("param_groups", "schedules", "reproducibility")
PROGRAM = f"""
import sys
sys.path.insert(0, sys.argv[1])
import {", ".join(HELPERS)}
from torch import nn
groups = param_groups.param_groups(nn.Linear(2, 2), {{"weight": 0.5, "bias": 1.0}}, lr=0.1)
rates = {{group["name"]: group["lr"] for group in groups}}
taken = schedules.preview(lambda optimizer: schedules.poly(optimizer, 2), rates, 3)
assert reproducibility.same_bits([row[0] for row in taken.values()], [0.05, 0.1])
assert not any(name.startswith("frcnn_lite") for name in sys.modules)
"""


def test_each_helper_is_a_file_that_runs_outside_the_package(tmp_path):
    home = Path(frcnn_lite.engine.__file__).parent
    for name in HELPERS:
        shutil.copy(home / f"{name}.py", tmp_path)
    done = subprocess.run([sys.executable, "-I", "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
