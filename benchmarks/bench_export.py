"""The detector in torch and in onnxruntime, size and latency: `python benchmarks/bench_export.py`.

Medians of paired rounds (every round runs both), after the outputs are compared.
"""

import argparse
import tempfile
from pathlib import Path
from statistics import median

import numpy as np
import torch
from stopwatch import paired_times

from frcnn_lite import data, engine
from frcnn_lite.export.onnx import export_onnx
from frcnn_lite.export.onnx_detector import OnnxDetector

WEIGHTS = Path(__file__).resolve().parents[1] / "notebooks" / "checkpoints" / "digits.pt"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    model = engine.load_weights(WEIGHTS)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "digits.onnx")
        export_onnx(model, file)
        print(f"weights {WEIGHTS.stat().st_size / 1e6:.2f} MB (float16), .onnx {file.stat().st_size / 1e6:.2f} MB")
        detector = OnnxDetector(file, options.threads)
    scenes = data.DigitScenes("test", 8)
    images = torch.stack([scenes[i].image for i in range(8)]) / 255
    print(f"torch {torch.__version__}, {options.threads} threads, medians of {options.rounds} paired rounds")
    print("| pictures | torch, ms | onnxruntime, ms |\n|---|---|---|")
    for batch in (1, 4, 8):
        bench(model, detector, images[:batch].contiguous(), options.rounds)


@torch.inference_mode()
def bench(model: torch.nn.Module, detector: OnnxDetector, images: torch.Tensor, rounds: int) -> None:
    """One row: one call for all `images`."""
    array = images.numpy()
    np.testing.assert_allclose(detector.run(array)[1], model(images).scores, atol=1e-4)
    times = paired_times({"torch": lambda: model(images), "onnxruntime": lambda: detector.run(array)}, rounds)
    ours, theirs = (1e3 * median(times[name]) for name in ("torch", "onnxruntime"))
    print(f"| {len(images)} | {ours:.1f} | {theirs:.1f} |")


if __name__ == "__main__":
    main()
