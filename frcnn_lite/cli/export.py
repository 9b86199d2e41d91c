"""Write the detector of a run to one small file: its weights (.pt), or the whole computation for ONNX (.onnx).

  python -m frcnn_lite export --run runs/first --out detector.pt
  python -m frcnn_lite export --run runs/first --out detector.onnx

The ending of the file's name decides which. A file that exists is never replaced. Beside the weights, a .pt file holds
how the run was trained: `predict --run detector.pt` and `evaluate --run detector.pt` use it alone, and
`train --weights detector.pt` starts from it.
"""

import argparse
from pathlib import Path

from .console import say

ENDINGS = (".pt", ".pth", ".onnx")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--run", type=Path, required=True, metavar="DIR", help="folder of the run, or a .pt file of export"
    )
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        metavar="FILE",
        help="file to write, whose name ends in .pt (or .pth) or .onnx",
    )
    parser.add_argument(
        "--best", action="store_true", help="use the weights that were judged best (best.pt), not the last ones"
    )
    parser.add_argument(
        "--full", action="store_true", help="write weights as float32, not float16; .onnx always has float32"
    )


def run(options: argparse.Namespace) -> int:
    """Write the file that the ending of its name asks for."""
    from frcnn_lite import engine
    from frcnn_lite.export.onnx import export_onnx

    ending = options.out.suffix.lower()
    if ending not in ENDINGS:
        raise ValueError(f"--out must end in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}, got {options.out}")
    stored = engine.load_run(options.run, best=options.best)
    if ending == ".onnx":
        config = stored.config
        export_onnx(stored.model, options.out, class_names=config.class_names, image_size=config.image_size)
    else:
        half = not options.full
        engine.save_weights(stored.model, options.out, half=half, run=stored.config, step=stored.step)
    say(f"wrote {options.out}, {options.out.stat().st_size / 1e6:.2f} MB")
    return 0
