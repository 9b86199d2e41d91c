"""Train a detector into a run directory, or go on with a run, and say how good it is on pictures it has not seen.

  python -m frcnn_lite train --data digits --minutes 5 --out runs/first
  python -m frcnn_lite train --data digits --gpus 2 --steps 100 --out runs/two
  python -m frcnn_lite train --data voc:data/BCCD --minutes 10 --out runs/cells
  python -m frcnn_lite train --data coco:train.json --test-data coco:val.json --epochs 12 --out runs/own
  python -m frcnn_lite train --steps 4000 --amp --evaluate-every 200 --tensorboard --out runs/judged
  python -m frcnn_lite train --resume --out runs/first
  torchrun --standalone --nproc-per-node 2 -m frcnn_lite train --data digits --steps 100 --out runs/ranks

Ctrl-C and SIGTERM save, and --resume goes on exactly where the run stopped. What is left out follows from the data:
classes, size of the pictures, anchors; and from the configuration. It is printed.
"""

import argparse
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .console import INTERRUPTED, TERMINATED, say
from .devices import provide_gpus

if TYPE_CHECKING:
    from frcnn_lite.engine import TrainConfig, TrainResult

MAY_CHANGE = (
    "gpus",
    "workers",
    "checkpoint_every",
    "evaluate_every",
)  # when a run goes on; all else is as it was begun


def add_options(parser: argparse.ArgumentParser) -> None:
    # Defaults are the configuration's own; None here means "not given", which --resume has to know.
    add = parser.add_argument
    add("--data", help="digits (nothing to download), voc:DIR or coco:FILE; voc:DIR@SPLIT is a split (default: digits)")
    add("--test-data", metavar="DATA", help="what to judge on (default: another split of --data)")
    size = "pixels all pictures are brought to (default: 128x128 for digits, else what suits the boxes)"
    add("--image-size", type=height_by_width, metavar="HxW", help=size)
    add("--flip", type=float, help="share of the pictures mirrored (default: 0 for digits, else 0.5)")
    add(
        "--zoom",
        type=float,
        help="how much larger or smaller they are shown at most (default: 0 for digits, else 0.25)",
    )
    light = "how much each colour's brightness varies at most (default: 0 for digits, else 0.2)"
    add("--light", type=float, help=light)
    regions = "how regions are read: RoIAlign, which places boxes more closely, or RoI pooling (default: align)"
    add("--roi-op", choices=("align", "pool"), help=regions)
    defects = "what to do about a defect of the data, as outside=drop; may be given again for other defects "
    defects += "(default: each is reported, and what cannot be used is left out; all of them: data/README.md)"
    add("--handle", action="append", metavar="DEFECT=ACTION", help=defects)
    gpus = "0: the CPU; N: that many GPUs, virtual ones if need be; under torchrun one for each process (default: 0)"
    add("--gpus", type=int, help=gpus)
    add("--out", type=Path, required=True, metavar="DIR", help="run directory, new unless --resume")
    length = parser.add_mutually_exclusive_group()
    minutes = "of steps, timed once; evaluations come on top (default: --steps decides)"
    length.add_argument("--minutes", type=float, help=minutes)
    length.add_argument("--steps", type=int, help="optimizer steps (default: 1000)")
    length.add_argument("--epochs", type=float, help="passes over the training pictures (default: --steps decides)")
    add("--resume", action="store_true", help="go on with the run in --out")
    add("--tensorboard", action="store_true", help="write the log for TensorBoard, too, into --out")
    add("--amp", action="store_true", default=None, help="half precision where it is safe (autocast)")
    judging = "judge every N steps, and keep the best weights in best.pt (default: 0, at the end alone)"
    add("--evaluate-every", type=int, metavar="N", help=judging)
    saving = "save every N steps, which is what a crash can cost; a stop saves, too (default: 200)"
    add("--checkpoint-every", type=int, metavar="N", help=saving)
    average = "of the average of the weights that is handed on; 0: none (default: about the last sixth of the steps)"
    add("--ema", type=float, metavar="DECAY", help=average)
    add("--batch-size", type=int, help="images a step, over all devices (default: 8)")
    add("--lr", type=float, help="peak learning rate (default: 0.003)")
    add("--seed", type=int, help="of weights, pictures and samples (default: 0)")
    add("--workers", type=int, help="processes that load data (default: 0, the training loads it itself)")
    add("--train-images", type=int, help="pictures in an epoch, at most (default: 20000 for digits, else all)")
    test = "pictures of the evaluation at the end, 0 for none (default: 200 for digits, else all)"
    add("--test-images", type=int, help=test)


def run(options: argparse.Namespace) -> int:
    """Train, or resume, and say how good the detector is."""
    from frcnn_lite import engine
    from frcnn_lite.parallel import process_group

    config = _stored_config(options) if options.resume else _new_config(options)
    provide_gpus(config.gpus)
    with process_group("cuda" if config.gpus else "cpu"):
        if not options.resume:
            config = _with_length(config, options)
        result = engine.train(config, options.out, resume=options.resume, tensorboard=options.tensorboard)
    _report(result, config)
    if result.terminated:
        return TERMINATED
    return INTERRUPTED if result.interrupted else 0


def _stored_config(options: argparse.Namespace) -> "TrainConfig":
    from frcnn_lite import engine

    given = {**_given(options), **{name: getattr(options, name) for name in ("minutes", "epochs", "roi_op")}}
    fixed = [name for name, value in given.items() if value is not None and name not in MAY_CHANGE]
    if fixed:
        raise ValueError(f"--resume goes on as the run was begun; leave out --{fixed[0].replace('_', '-')}")
    stored = engine.RunDirectory.open(options.out).read_config()
    return replace(stored, **{name: given[name] for name in MAY_CHANGE if given[name] is not None})


def _new_config(options: argparse.Namespace) -> "TrainConfig":
    from frcnn_lite import engine
    from frcnn_lite.detection import FasterRCNNConfig

    given = {name: value for name, value in _given(options).items() if value is not None}
    if given.get("data", "digits") != "digits":
        given = {"train_images": sys.maxsize, "test_images": sys.maxsize, **given}  # digits alone are without end
    model = FasterRCNNConfig(roi_op=options.roi_op or "align", class_specific_boxes=True, voting_iou=0.5)
    config = engine.TrainConfig(**given, model=model)
    # Refuse before minutes go into it: an unknown data set, or a directory that holds a run.
    engine.RunDirectory.require_free(options.out)
    config = engine.fit_to_data(config, keep_image_size=options.image_size is not None)
    config = replace(config, **{name: given[name] for name in ("flip", "zoom", "light") if name in given})
    engine.train_pictures(config)
    if config.data != "digits":
        say(_describe(config))
    return config


def _describe(config: "TrainConfig") -> str:
    model, (height, width) = config.model, config.image_size
    sizes, ratios = (
        " ".join(f"{number:g}" for number in numbers) for numbers in (model.anchor_sizes, model.anchor_ratios)
    )
    return (
        f"{config.train_images} pictures of {config.data}, judged on {config.test_images} of {config.test_data}\n"
        f"{len(config.class_names)} classes: {', '.join(config.class_names)}\n"
        f"pictures brought to {width} x {height}; anchors of {sizes} pixels, height / width {ratios}\n"
        f"shown with flip {config.flip:g}, zoom {config.zoom:g}, light {config.light:g}"
    )


def height_by_width(text: str) -> tuple[int, int]:
    height, _, width = text.partition("x")
    return int(height), int(width or height)


def _given(options: argparse.Namespace) -> dict[str, Any]:
    """The options that are fields of the configuration, None where one was not given."""
    from frcnn_lite.engine import TrainConfig

    names = [field.name for field in fields(TrainConfig) if hasattr(options, field.name)]
    return {**{name: getattr(options, name) for name in names}, "handle": options.handle and tuple(options.handle)}


def _with_length(config: "TrainConfig", options: argparse.Namespace) -> "TrainConfig":
    """Minutes and epochs become steps here, once: what is stored is a number of steps, so a resume is exact."""
    from frcnn_lite import engine

    if options.minutes is not None:
        timed = config if options.ema is not None else replace(config, ema=0.9)  # any: averaging takes time, too
        config = replace(config, steps=engine.steps_in_minutes(options.minutes, timed))
    if options.epochs is not None:
        config = replace(config, steps=engine.steps_in_epochs(options.epochs, config))
    if options.ema is None:
        config = replace(config, ema=engine.averaging_decay(config.steps))
    where = f"{config.gpus} GPUs" if config.gpus else "the CPU"
    say(f"{config.steps} steps of {config.batch_size} images on {where}, into {options.out}")
    fall = "falls to zero with the last" if config.schedule == "cosine" else "stays"
    say(f"the learning rate rises to {config.lr:g} over {min(config.warmup_steps, config.steps // 2)} steps and {fall}")
    if config.ema:
        say(f"judged and handed on is an average of the weights, over the last {1 / (1 - config.ema):.0f} steps or so")
    return config


def _report(result: "TrainResult", config: "TrainConfig") -> None:
    if result.evaluation is not None:
        found = result.evaluation
        say(f"{config.steps} steps; AP50 {found.AP50:.3f}, AP {found.AP:.3f} on {found.images} unseen pictures")
    if result.interrupted:
        say(f"go on with: python -m frcnn_lite train --resume --out {result.run_dir}")
