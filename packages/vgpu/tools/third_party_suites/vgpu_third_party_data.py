"""Made-up data and small configurations for programs of other projects that would otherwise download their data.

`python -m vgpu_third_party_data WHICH`, where WHICH is the name of a function below, writes them into the current
folder, which is the runner's copy of a checkout.
"""

import pickle
import sys
from pathlib import Path

import numpy as np

NANOGPT = """\
dataset, out_dir = "made_up", "out"
n_layer, n_head, n_embd, block_size, batch_size, gradient_accumulation_steps = 2, 2, 64, 64, 4, 2
max_iters, lr_decay_iters, warmup_iters, eval_interval, eval_iters, log_interval = 20, 20, 2, 10, 2, 1
always_save_checkpoint = True
"""
TIMM = """\
data_dir: pictures
model: test_resnet
num_classes: 2
input_size: [3, 64, 64]
batch_size: 8
epochs: 2
warmup_epochs: 0
workers: 1
opt: adamw
lr: 0.001
output: out
experiment: made-up
"""


def nanogpt():
    """Two files of tokens, which are 16 bits each, and a model of two layers."""
    folder = Path("data", "made_up")
    folder.mkdir(parents=True)
    for name, seed in {"train": 0, "val": 1}.items():
        np.random.default_rng(seed).integers(0, 64, 4096).astype(np.uint16).tofile(folder / f"{name}.bin")
    (folder / "meta.pkl").write_bytes(pickle.dumps({"vocab_size": 64}))
    Path("made_up.py").write_text(NANOGPT, encoding="utf-8")


def timm():
    """Two classes of 16 pictures for training, as many for validation; each class has more of one colour."""
    from PIL import Image

    random_numbers = np.random.default_rng(0)
    for split in ("train", "val"):
        for colour, name in enumerate(["red", "green"]):
            place = Path("pictures", split, name)
            place.mkdir(parents=True)
            for number in range(16):
                picture = random_numbers.integers(0, 128, (64, 64, 3), dtype=np.uint8)
                picture[..., colour] += 127
                Image.fromarray(picture).save(place / f"{number}.png")
    Path("made_up.yaml").write_text(TIMM, encoding="utf-8")


def ultralytics():
    """Eight pictures for training and eight for validation with a bright square each, in the form of YOLO."""
    from PIL import Image

    random_numbers = np.random.default_rng(0)
    for split in ("train", "val"):
        images, labels = Path("boxes", "images", split), Path("boxes", "labels", split)
        images.mkdir(parents=True), labels.mkdir(parents=True)
        for number in range(8):
            picture = random_numbers.integers(0, 64, (64, 64, 3), dtype=np.uint8)
            left, top = random_numbers.integers(0, 32, 2)
            picture[top : top + 32, left : left + 32] = 255
            Image.fromarray(picture).save(images / f"{number}.png")
            (labels / f"{number}.txt").write_text(f"0 {(left + 16) / 64} {(top + 16) / 64} 0.5 0.5\n")
    lines = [f"path: {Path('boxes').resolve()}", "train: images/train", "val: images/val", "names: {0: square}"]
    Path("boxes.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    {function.__name__: function for function in (nanogpt, timm, ultralytics)}[sys.argv[1]]()
