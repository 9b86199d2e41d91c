"""Train a detector, or continue a training, and say how good the detector is on pictures that it has not seen.

  python -m frcnn_lite train --data digits --minutes 5 --out runs/first
  python -m frcnn_lite train --data digits --gpus 2 --steps 100 --out runs/two
  python -m frcnn_lite train --data voc:data/BCCD --minutes 10 --out runs/cells
  python -m frcnn_lite train --data coco:train.json --test-data coco:val.json --epochs 12 --out runs/own
  python -m frcnn_lite train --data voc:data/BCCD --weights fasterrcnn_resnet50_fpn.pth --out runs/pretrained
  python -m frcnn_lite train --steps 4000 --amp --evaluate-every 200 --out runs/judged
  python -m frcnn_lite train --resume --out runs/first
  torchrun --standalone --nproc-per-node 2 -m frcnn_lite train --data digits --steps 100 --out runs/ranks

A run is a folder with its configuration, its log and its weights. Ctrl-C and SIGTERM save it, and --resume continues it
where it stopped: the results are the same bit for bit on the same devices and threads, and up to rounding on others.
Classes, size of the pictures and anchors follow from the data. The command prints what it has chosen.
"""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .console import INTERRUPTED, TERMINATED, say
from .devices import provide_gpus
from .options import add_fields, fields_of, given

if TYPE_CHECKING:
    from frcnn_lite.engine import TrainConfig, TrainResult

# All that decides a run is an option; of the detector, what a reader of its papers would choose by name.
RUN = [field for field in fields_of("engine.config", "TrainConfig") if field.name not in ("class_names", "model")]
DETECTOR = [
    field
    for field in fields_of("detection.config", "FasterRCNNConfig")
    if field.name in ("backbone", "fpn", "roi_op", "mirrored")
]


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--out",
        type=Path,
        required=True,
        metavar="DIR",
        help="folder of the run: a new one, or with --resume the one to continue",
    )
    add("--resume", action="store_true", help="continue the run in --out")
    length = parser.add_mutually_exclusive_group()
    minutes = "train for so many minutes: a few steps are timed first, and evaluation comes on top (default: --steps)"
    length.add_argument("--minutes", type=float, metavar="X", help=minutes)
    epochs = "train until every picture has been shown so many times (default: --steps)"
    length.add_argument("--epochs", type=float, metavar="X", help=epochs)
    add_fields(length, [field for field in RUN if field.name == "steps"])
    add_fields(parser, [field for field in RUN if field.name != "steps"])
    add_fields(parser, DETECTOR)


def run(options: argparse.Namespace) -> int:
    """Train, or resume, and say how good the detector is."""
    from frcnn_lite import engine
    from frcnn_lite.parallel import process_group

    chosen, pictures = given(options, [*RUN, *DETECTOR]), engine.Pictures()
    if options.resume:
        config = _stored_config(options, chosen)
    else:
        # Refused before minutes go into it: a directory that holds a run, a wrong value, data that is not there.
        engine.RunDirectory.require_free(options.out)
        config = engine.resolve(pictures, epochs=options.epochs, **chosen)
        pictures.train(config)
    provide_gpus(config.gpus)
    with process_group("cuda" if config.gpus else "cpu"):
        if options.minutes is not None:
            config = engine.fill_minutes(config, options.minutes, pictures)
        if not options.resume:
            say(_describe(config, options.out))
        result = engine.train(config, options.out, resume=options.resume, pictures=pictures)
    _report(result, config)
    if result.terminated:
        return TERMINATED
    return INTERRUPTED if result.interrupted else 0


def _stored_config(options: argparse.Namespace, chosen: dict[str, Any]) -> "TrainConfig":
    from frcnn_lite import engine
    from frcnn_lite.engine.begin import MAY_CHANGE

    lengths = {name: getattr(options, name) for name in ("minutes", "epochs")}
    named = [*chosen, *(name for name, value in lengths.items() if value is not None)]
    if fixed := [name for name in named if name not in MAY_CHANGE]:
        raise ValueError(f"--resume goes on as the run was begun; leave out --{fixed[0].replace('_', '-')}")
    return replace(engine.RunDirectory.open(options.out).read_config(), **chosen)


def _describe(config: "TrainConfig", out: Path) -> str:
    """A line each for what will be trained on, with what, and for how long."""
    model, (height, width) = config.model, config.image_size
    sizes, ratios = (
        " ".join(f"{number:g}" for number in numbers) for numbers in (model.anchor_sizes, model.anchor_ratios)
    )
    lines = []
    if config.data != "digits":
        lines += [
            f"{config.train_images} pictures of {config.data}, judged on {config.test_images} of {config.test_data}",
            f"{len(config.class_names)} classes: {', '.join(config.class_names)}",
            f"pictures brought to {width} x {height}; anchors of {sizes} pixels, height / width {ratios}",
            f"shown with flip {config.flip:g}, zoom {config.zoom:g}, light {config.light:g}"
            + ("; objects are looked for in the mirror image, too" if model.mirrored else ""),
        ]
    if model.backbone != "lite" or config.weights:
        weights = f"its weights from {config.weights}" if config.weights else "from scratch"
        lines.append(f"backbone {model.backbone}{', feature pyramid' if model.fpn else ''}, {weights}")
    where = f"{config.gpus} GPUs" if config.gpus else "the CPU"
    fall = "falls to zero with the last" if config.schedule == "cosine" else "stays"
    slow = f", for the backbone to {config.lr * config.backbone_lr:g}," if config.backbone_lr != 1 else ""
    rise = min(config.warmup_steps, config.steps // 2)
    lines += [
        f"{config.steps} steps of {config.batch_size} images on {where}, into {out}",
        f"the learning rate rises to {config.lr:g}{slow} over {rise} steps and {fall}",
    ]
    if config.ema:
        length = 1 / (1 - config.ema)
        lines.append(f"judged and handed on is an average of the weights, over the last {length:.0f} steps or so")
    return "\n".join(lines)


def _report(result: "TrainResult", config: "TrainConfig") -> None:
    if result.evaluation is not None:
        found = result.evaluation
        say(f"{config.steps} steps; AP50 {found.AP50:.3f}, AP {found.AP:.3f} on {found.images} unseen pictures")
    if result.interrupted:
        say(f"go on with: python -m frcnn_lite train --resume --out {result.run_dir}")
