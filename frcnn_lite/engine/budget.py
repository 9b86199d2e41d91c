"""From minutes or epochs to a number of steps, once, before training, and what follows from that number."""

import math
import statistics
import time
from dataclasses import replace

from frcnn_lite.data import collate
from frcnn_lite.engine.config import TrainConfig
from frcnn_lite.engine.datasets import train_pictures
from frcnn_lite.engine.step_order import StepOrder
from frcnn_lite.engine.trainer import Trainer
from frcnn_lite.parallel import from_main_rank

WARMUP_STEPS = 3  # the first steps choose algorithms and fill caches
TIMED_STEPS = 12


def steps_in_minutes(minutes: float, config: TrainConfig) -> int:
    """How many steps of `config` fit into `minutes` here and now, at least 1, the time to measure them included.

    Real steps on a throw-away model and real pictures are timed. Raises ValueError unless `minutes` is positive.
    """
    if not 0 < minutes < math.inf:
        raise ValueError(f"minutes must be a positive number, got {minutes}")
    begin = time.perf_counter()
    trial = replace(config, steps=WARMUP_STEPS + TIMED_STEPS)
    trainer = Trainer(trial)
    dataset = train_pictures(trial)
    durations = []
    for indices in StepOrder(len(dataset), trial.batch_size, trial.seed, 0, trial.steps):
        start = time.perf_counter()
        trainer.take_step(collate([dataset[index] for index in indices]))
        durations.append(time.perf_counter() - start)
    # The mean would carry every hiccup of a busy machine into hundreds of steps.
    per_step = statistics.median(durations[WARMUP_STEPS:])
    steps = max(1, int((minutes * 60 - (time.perf_counter() - begin)) / per_step))
    return from_main_rank(lambda: steps)


def steps_in_epochs(epochs: float, config: TrainConfig) -> int:
    """How many steps of `config` show every picture `epochs` times, rounded up. Raises ValueError unless positive."""
    if not 0 < epochs < math.inf:
        raise ValueError(f"epochs must be a positive number, got {epochs}")
    return math.ceil(epochs * config.train_images / config.batch_size)


def averaging_decay(steps: int) -> float:
    """A decay for `TrainConfig.ema` that averages about the last sixth of a run, however long; 0, no average, below 12.

    On 292 pictures of blood cells and 2900 steps the average found 0.004 more AP50 and 0.007 more AP than the last
    weights (means of three seeds, each judged both ways); on digits, of which there is no end, it found the same.
    """
    return 1 - 6 / steps if steps >= 12 else 0.0
