"""A program that trains in child processes and kills them: `python killed_training.py FOLDER`; see test_killed.py.

Children are forked, since each that imports torch for itself takes seconds. They are forked here and not in the process
of the tests: where autograd has started threads, as virtual GPUs make it do, a fork cannot train.
"""

import multiprocessing
import random
import sys
import threading
import time
from pathlib import Path

import numba  # noqa: F401  # imported here, and not by each child when it first needs it
import torch
from tqdm.auto import tqdm

from frcnn_lite import engine
from frcnn_lite.detection import FasterRCNNConfig

KILLS, MOST_STEPS = 20, 12
MODEL = FasterRCNNConfig(
    widths=(8, 8, 8),
    blocks=(0, 0, 0),
    roi_channels=8,
    group_width=4,
    head_width=16,
    pre_nms_proposals=16,
    proposals=8,
    rpn_samples=8,
    roi_samples=8,
    roi_output_size=2,
)
CONFIG = engine.TrainConfig(
    image_size=64,
    train_images=40,
    test_images=0,
    steps=250,
    batch_size=2,
    checkpoint_every=5,
    model=MODEL,
)


def train(directory, resume):
    torch.set_num_threads(1)
    # Forked processes share tqdm's lock: a child killed while it holds it would keep all later ones waiting for ever.
    tqdm.set_lock(threading.RLock())
    engine.train(CONFIG, directory, resume=resume, progress=False)


def run_in_child(directory, resume, may_go_on=None):
    """Train in a process of its own, killed when `may_go_on()` turns false; gives its exit code, -9 when it was."""
    child = multiprocessing.get_context("fork").Process(target=train, args=(directory, resume))
    child.start()
    while child.is_alive() and (may_go_on is None or may_go_on()):
        child.join(0.002)
    if may_go_on is not None:
        child.kill()
    child.join()
    return child.exitcode


def lines(file):
    return file.read_bytes().count(b"\n") if file.exists() else 0


def train_once_whole_and_once_with_kills(whole, often):
    assert run_in_child(whole, resume=False) == 0
    moment = random.Random(0)
    for attempt in range(KILLS):
        begun = (often / "config.json").exists()
        if attempt < 5:  # before there is a configuration or a checkpoint, or while the log is being cut
            end = time.perf_counter() + moment.uniform(0, 0.3)
            code = run_in_child(often, begun, lambda end=end: time.perf_counter() < end)
        else:
            enough = lines(often / "log.jsonl") + moment.randint(1, MOST_STEPS)
            code = run_in_child(often, begun, lambda enough=enough: lines(often / "log.jsonl") < enough)
        assert code == -9
    assert 0 < lines(often / "log.jsonl") < CONFIG.steps
    assert run_in_child(often, resume=True) == 0


if __name__ == "__main__":
    train_once_whole_and_once_with_kills(*(Path(sys.argv[1]) / name for name in ("whole", "often")))
