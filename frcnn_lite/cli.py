"""The command line: `python -m frcnn_lite COMMAND`.

Nothing heavy is imported before a command is known to need it, so that `--help` is quick and `doctor` runs where torch
does not. Results go to standard output, everything said about them to standard error.
"""

import argparse
import importlib
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from frcnn_lite.engine import TrainConfig, TrainResult

BAD_INPUT, INTERRUPTED = 2, 130  # exit codes: argparse's own, and 128 + SIGINT as shells have it
# These read their own arguments; the modules are named after the commands.
TOOLS = {
    "doctor": "check this machine: Python, torch, devices, ports, and say how to fix what is wrong",
    "explain": "from an error text, or a traceback, to its cause and its fix",
    "copy": "write one helper and what it needs into a file of your own",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0, 1 (part of it failed), 2 (bad input) or 130 (interrupted)."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments and arguments[0] in TOOLS:
        return importlib.import_module(f"frcnn_lite.tools.{arguments[0]}").main(arguments[1:]) or 0
    options = _parser().parse_args(arguments)
    # Idle OpenMP threads spin by default, and where the cores are shared with other programs a parallel loop then waits
    # behind its own spinning: 8 times the time per training step, measured on two busy cores. The variable is read
    # once, when torch is loaded, and no line above has done that.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        return options.run_command(options)
    except KeyboardInterrupt:
        _say("interrupted")
        return INTERRUPTED
    except (ValueError, OSError, FloatingPointError, ModuleNotFoundError) as error:
        if options.traceback:
            raise
        _say(f"error: {error}")
        return BAD_INPUT


def train(options: argparse.Namespace) -> int:
    """Train, or resume, and say how good the detector is."""
    from frcnn_lite import engine

    if options.resume:
        config = _stored_config(options)
        _provide_gpus(config.gpus)
    else:
        config = _new_config(options)
        _provide_gpus(config.gpus)
        config = _with_length(config, options)
    result = engine.train(config, options.out, resume=options.resume)
    _report(result, config)
    return INTERRUPTED if result.interrupted else 0


def evaluate(options: argparse.Namespace) -> int:
    """Print one JSON object with AP, AP50, AP75 and AP50 per class of a run on its test pictures."""
    from frcnn_lite import engine

    run = engine.load_run(options.run)
    pictures = engine.held_out_pictures(run.config, options.images)
    result = engine.evaluate(run.model.to(_fast_device()), pictures, batch_size=run.config.batch_size)
    print(json.dumps({**result.to_dict(), "run": options.run.as_posix(), "step": run.step}))
    return 0


def predict(options: argparse.Namespace) -> int:
    """Write a picture with boxes for every image; an image that cannot be read is named, and the others still done."""
    from frcnn_lite import engine

    run = engine.load_run(options.run)
    model, class_names = run.model.to(_fast_device()), engine.held_out_pictures(run.config).class_names
    failed = 0
    for path in options.images:
        try:
            picture, prediction = engine.predict_file(
                model, path, options.out, class_names, min_score=options.min_score
            )
        except (FileNotFoundError, ValueError) as error:
            _say(f"error: {error}")
            failed += 1
        else:
            _say(f"{path}: {len(prediction.labels)} found, drawn in {picture}")
    return 1 if failed else 0


def export(options: argparse.Namespace) -> int:
    """Write the detector of a run, without optimizer and log, to one small file: weights, or a graph (.onnx)."""
    from frcnn_lite import engine
    from frcnn_lite.export.onnx import export_onnx

    run = engine.load_run(options.run)
    if options.out.suffix.lower() == ".onnx":
        export_onnx(run.model, options.out, class_names=engine.held_out_pictures(run.config, 1).class_names)
    else:
        engine.save_weights(run.model, options.out, half=not options.full)
    _say(f"wrote {options.out}, {options.out.stat().st_size / 1e6:.2f} MB")
    return 0


def sheet(options: argparse.Namespace) -> int:
    """Draw a sheet of scenes with their boxes, as SVG."""
    from frcnn_lite.data import DigitScenes
    from frcnn_lite.viz import scene_sheet

    if options.out.exists():
        raise FileExistsError(f"{options.out} exists already; choose another name")
    dataset = DigitScenes(options.split, options.rows * options.columns, options.seed)
    scenes = [dataset[index] for index in range(len(dataset))]
    images, boxes, labels, _ = zip(*scenes, strict=True)
    scene_sheet(images, boxes, labels, options.columns).save(options.out)
    return 0


def _stored_config(options: argparse.Namespace) -> "TrainConfig":
    from frcnn_lite import engine

    given = {**_given(options), **{name: getattr(options, name) for name in ("minutes", "epochs")}}
    fixed = [name for name, value in given.items() if value is not None and name not in ("gpus", "workers")]
    if fixed:
        raise ValueError(f"--resume goes on as the run was begun; leave out --{fixed[0].replace('_', '-')}")
    stored = engine.RunDirectory.open(options.out).read_config()
    return replace(stored, **{name: given[name] for name in ("gpus", "workers") if given[name] is not None})


def _new_config(options: argparse.Namespace) -> "TrainConfig":
    from frcnn_lite import engine

    config = engine.TrainConfig(**{name: value for name, value in _given(options).items() if value is not None})
    # Refuse before minutes go into it: an unknown data set, or a directory that holds a run.
    engine.train_pictures(config)
    engine.RunDirectory.require_free(options.out)
    return config


def _given(options: argparse.Namespace) -> dict[str, Any]:
    names = ("data", "gpus", "steps", "batch_size", "lr", "seed", "workers", "train_images", "test_images")
    return {name: getattr(options, name) for name in names}


def _with_length(config: "TrainConfig", options: argparse.Namespace) -> "TrainConfig":
    """Minutes and epochs become steps here, once: what is stored is a number of steps, so a resume is exact."""
    from frcnn_lite import engine

    if options.minutes is not None:
        config = replace(config, steps=engine.steps_in_minutes(options.minutes, config))
    if options.epochs is not None:
        config = replace(config, steps=engine.steps_in_epochs(options.epochs, config))
    where = f"{config.gpus} GPUs" if config.gpus else "the CPU"
    _say(f"{config.steps} steps of {config.batch_size} images on {where}, into {options.out}")
    return config


def _provide_gpus(gpus: int) -> None:
    """Virtual GPUs where there are not enough real ones, and one line that says so."""
    import torch

    forced = os.environ.get("FRCNN_LITE_DEVICES") == "virtual"
    real = torch.cuda.device_count()
    if gpus == 0 or (gpus <= real and not forced):
        return
    from frcnn_lite import vgpu

    vgpu.enable(gpus, force=True)  # a machine with one GPU asked for two: virtual ones take the place of all
    _say(f"{gpus} virtual GPUs ({real} real here): values as on GPUs, computed on the CPU; times mean nothing")


def _fast_device() -> str:
    import torch

    return "cuda:0" if torch.cuda.is_available() else "cpu"


def _report(result: "TrainResult", config: "TrainConfig") -> None:
    if result.evaluation is not None:
        found = result.evaluation
        _say(f"{config.steps} steps; AP50 {found.AP50:.3f}, AP {found.AP:.3f} on {found.images} unseen pictures")
    if result.interrupted:
        _say(f"go on with: python -m frcnn_lite train --resume --out {result.run_dir}")


def _say(line: str) -> None:
    print(line, file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m frcnn_lite", description="A small Faster R-CNN on many GPUs.")
    parser.add_argument("--traceback", action="store_true", help="show where in the code an error was raised")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, purpose in TOOLS.items():
        commands.add_parser(name, help=purpose)
    _add_train(commands.add_parser("train", help="train a detector into a run directory"))

    command = commands.add_parser("evaluate", help="print the average precision of a run as JSON")
    command.add_argument("--run", type=Path, required=True, metavar="DIR", help="run directory")
    command.add_argument("--images", type=int, help="number of test pictures (default: the run's)")
    command.set_defaults(run_command=evaluate)

    command = commands.add_parser("predict", help="draw what a run's detector finds in images")
    command.add_argument("--run", type=Path, required=True, metavar="DIR", help="run directory")
    command.add_argument("images", nargs="+", metavar="IMAGE", help="image files")
    command.add_argument("--out", type=Path, required=True, metavar="DIR", help="where the pictures go")
    command.add_argument("--min-score", type=float, default=0.5, help="least score to draw (default: %(default)s)")
    command.set_defaults(run_command=predict)

    command = commands.add_parser("export", help="write a run's detector to one small file")
    command.add_argument("--run", type=Path, required=True, metavar="DIR", help="run directory")
    command.add_argument("--out", type=Path, required=True, metavar="FILE", help="file to write, a .pt or an .onnx")
    command.add_argument("--full", action="store_true", help="float32 weights instead of float16 (an .onnx always has)")
    command.set_defaults(run_command=export)

    kinds = commands.add_parser("data", help="look at data").add_subparsers(metavar="WHAT", required=True)
    command = kinds.add_parser("sheet", help="draw a sheet of digit scenes with their boxes")
    command.add_argument("--out", type=Path, required=True, metavar="FILE", help="SVG file to write")
    command.add_argument("--split", choices=("train", "test"), default="train")
    command.add_argument("--seed", type=int, default=0)
    command.add_argument("--rows", type=int, default=4)
    command.add_argument("--columns", type=int, default=6)
    command.set_defaults(run_command=sheet)
    return parser


def _add_train(command: argparse.ArgumentParser) -> None:
    # Defaults are the configuration's own; None here means "not given", which --resume has to know.
    command.add_argument("--data", help="digits (nothing to download)")
    command.add_argument("--gpus", type=int, help="0: the CPU; N: that many GPUs, virtual ones if need be")
    command.add_argument("--out", type=Path, required=True, metavar="DIR", help="run directory, new unless --resume")
    length = command.add_mutually_exclusive_group()
    length.add_argument("--minutes", type=float, help="turned into steps by timing a few, once")
    length.add_argument("--steps", type=int)
    length.add_argument("--epochs", type=float)
    command.add_argument("--resume", action="store_true", help="go on with the run in --out")
    command.add_argument("--batch-size", type=int, help="images a step, over all devices")
    command.add_argument("--lr", type=float, help="peak learning rate")
    command.add_argument("--seed", type=int)
    command.add_argument("--workers", type=int, help="processes that load data (default: none)")
    command.add_argument("--train-images", type=int, help="pictures in an epoch")
    command.add_argument("--test-images", type=int, help="pictures of the evaluation at the end, 0 for none")
    command.set_defaults(run_command=train)
