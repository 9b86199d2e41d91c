"""A program for test_killed.py that trains in child processes and kills them: `killed_training.py FOLDER KILLS`.

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

EARLY = 5  # kills at most before there is a configuration or a checkpoint, or while the log is being cut
MOST_STEPS = 12  # that a process which is killed later may add to the log
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


def config(kills):
    """A training that is not over when it has been killed so many times."""
    return engine.TrainConfig(
        image_size=64,
        train_images=40,
        test_images=0,
        steps=MOST_STEPS * kills + 10,
        batch_size=2,
        checkpoint_every=5,
        model=MODEL,
    )


def train(kills, directory, resume):
    torch.set_num_threads(1)
    # Forked processes share tqdm's lock: a child killed while it holds it would keep all later ones waiting for ever.
    tqdm.set_lock(threading.RLock())
    engine.train(config(kills), directory, resume=resume, progress=False)


def run_in_child(kills, directory, resume, may_go_on=None):
    """Train in a process of its own, killed when `may_go_on()` turns false; gives its exit code, -9 when it was."""
    child = multiprocessing.get_context("fork").Process(target=train, args=(kills, directory, resume))
    child.start()
    while child.is_alive() and (may_go_on is None or may_go_on()):
        child.join(0.002)
    if may_go_on is not None:
        child.kill()
    child.join()
    return child.exitcode


def lines(file):
    return file.read_bytes().count(b"\n") if file.exists() else 0


def train_once_whole_and_once_with_kills(kills, whole, often):
    assert run_in_child(kills, whole, resume=False) == 0
    moment = random.Random(0)
    early = min(EARLY, kills // 2)  # the others come after a step, so some of the log is always there to be kept
    for attempt in range(kills):
        begun = (often / "config.json").exists()
        if attempt < early:
            end = time.perf_counter() + moment.uniform(0, 0.3)
            code = run_in_child(kills, often, begun, lambda end=end: time.perf_counter() < end)
        else:
            enough = lines(often / "log.jsonl") + moment.randint(1, MOST_STEPS)
            code = run_in_child(kills, often, begun, lambda enough=enough: lines(often / "log.jsonl") < enough)
        assert code == -9
    assert 0 < lines(often / "log.jsonl") < config(kills).steps
    assert run_in_child(kills, often, resume=True) == 0


if __name__ == "__main__":
    train_once_whole_and_once_with_kills(int(sys.argv[2]), *(Path(sys.argv[1]) / name for name in ("whole", "often")))
