"""What `from frcnn_lite import ...` offers, at what cost, and that README's programs run as they are printed."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from annotated_folders import write_image

import frcnn_lite
from frcnn_lite import detection, engine, parallel

README = Path(__file__).resolve().parents[1] / "README.md"
PROGRAMS = [
    program
    for program in re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    if program.startswith("from frcnn_lite import")
]
# Rank 0 has three images and rank 1 has one, so that the mean of their means is a different number.
BEFORE_THE_LOOP = """
import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

class Net(nn.Linear):
    def forward(self, images, wanted):
        return (super().forward(images).squeeze(1) - wanted) ** 2, torch.ones(len(images))

distributed.init_process_group("gloo")
rank, device = distributed.get_rank(), "cpu"
torch.manual_seed(0)
net = Net(4, 1)
alone = Net(4, 1)
alone.load_state_dict(net.state_dict())
images, wanted = torch.rand(4, 4), torch.rand(4)
mine = slice(0, 3) if rank == 0 else slice(3, 4)
batches = [(images[mine], wanted[mine])]
ddp = DistributedDataParallel(net)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
"""
AFTER_THE_LOOP = """
loss = alone(images, wanted)[0].mean()
loss.backward()
assert torch.allclose(net.weight.grad, alone.weight.grad) and torch.allclose(logged, loss)
assert dog.step == 0 and "gradients (weight" in dog.entered[-1].name
distributed.destroy_process_group()
"""


def test_a_name_of_the_face_is_the_one_of_its_subpackage():
    assert frcnn_lite.FasterRCNN is detection.FasterRCNN and frcnn_lite.train is engine.train
    assert frcnn_lite.reduce_loss_over_ranks is parallel.reduce_loss_over_ranks
    assert len(set(frcnn_lite.__all__)) == len(frcnn_lite.__all__)


@pytest.mark.parametrize("name", frcnn_lite.__all__)
def test_every_name_is_there_and_listed_and_explained(name):
    assert name in dir(frcnn_lite) and getattr(frcnn_lite, name).__doc__


def test_to_list_the_names_brings_no_torch():
    code = "import sys, frcnn_lite; sys.exit('train' not in dir(frcnn_lite) or 'torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_a_name_that_is_not_there_is_an_ordinary_error():
    with pytest.raises(AttributeError, match="module 'frcnn_lite' has no attribute 'RCNN'"):
        frcnn_lite.RCNN  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'RCNN'"):
        from frcnn_lite import RCNN  # noqa: F401


def test_the_programs_are_short_and_import_the_library_alone():
    assert len(PROGRAMS) == 3
    for program in PROGRAMS:
        assert len([line for line in program.splitlines() if line]) <= 8
        modules = [node for node in ast.walk(ast.parse(program)) if isinstance(node, ast.Import | ast.ImportFrom)]
        assert [ast.unparse(node).split()[1] for node in modules] == ["frcnn_lite"]


def run(program, folder, *launcher):
    """Run it in a process that has one thread, since two that spin are slow where others compute; what it prints."""
    (folder / "program.py").write_text(program, encoding="utf-8")
    command = [sys.executable, *launcher, "program.py"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_the_programs_that_train_and_predict_run_as_printed(tmp_path):
    for name in ("photo.jpg", "street.png"):
        write_image(tmp_path / name)
    trained, *_, drawn = run("".join(PROGRAMS[:2]), tmp_path).splitlines()
    assert re.fullmatch(r"runs.python: AP50 0\.\d{3} after 20 steps", trained)
    assert drawn == f"drawn in {Path('found', 'street.png')}" and (tmp_path / "found" / "street.png").is_file()


def test_the_loop_on_ranks_runs_as_printed_and_computes_what_one_process_does(tmp_path):
    torchrun = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    run(BEFORE_THE_LOOP + PROGRAMS[2] + AFTER_THE_LOOP, tmp_path, *torchrun)
