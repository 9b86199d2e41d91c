"""Made-up data and small configurations for programs of other projects that would otherwise download their data.

`python -m vgpu_third_party_data WHICH`, where WHICH is the name of a function below, writes them into the current
folder, which is the runner's copy of a checkout.
"""

import json
import pickle
import random
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

# Stand-ins for what picotron imports beside torch; none of them uses a GPU.
PICOTRON = {
    "wandb.py": "",
    "flash_attn/__init__.py": "",
    "flash_attn/flash_attn_interface.py": "flash_attn_func = None\n",
    "flash_attn/layers/rotary.py": "apply_rotary_emb = None\n",
    "flash_attn/ops/triton/layer_norm.py": "layer_norm_fn = None\n",
    "transformers.py": """\
import types
import numpy


class AutoTokenizer:
    @classmethod
    def from_pretrained(cls, name):
        return cls()

    def batch_encode_plus(self, texts, **options):
        return {"input_ids": [numpy.array(list(text.encode())) % 64 for text in texts]}


class AutoConfig:
    @staticmethod
    def from_pretrained(name):
        return types.SimpleNamespace(
            vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=4, num_attention_heads=4,
            num_key_value_heads=2, max_position_embeddings=64, rope_theta=10000.0, rms_norm_eps=1e-5,
        )
""",
    "datasets.py": """\
import random

Features = dict


def Sequence(**kinds):
    return kinds


def Value(**kinds):
    return kinds


class Texts(list):
    column_names = ["text"]

    def map(self, function, **options):
        return [{"input_ids": row} for row in function(list(self))["input_ids"]]


def load_dataset(path, split, **options):
    generator = random.Random(0)
    return Texts("".join(generator.choices("abcdefgh ", k=256)) for _ in range(64))
""",
}


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


def picotron():
    """The modules above, a file of weights, and a configuration for each way to be parallel over two GPUs."""
    import safetensors.torch
    import torch

    for name, text in PICOTRON.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text, encoding="utf-8")
    for folder in ("hf_model/made-up", "hf_model_safetensors"):
        Path(folder).mkdir(parents=True)
    Path("hf_model/made-up/config.json").write_text("{}", encoding="utf-8")
    shapes = {"model.embed_tokens": (64, 32), "model.norm": (32,)}
    for layer in range(4):
        begin = f"model.layers.{layer}."
        shapes |= {begin + "input_layernorm": (32,), begin + "post_attention_layernorm": (32,)}
        shapes |= {
            begin + "mlp.gate_proj": (64, 32),
            begin + "mlp.up_proj": (64, 32),
            begin + "mlp.down_proj": (32, 64),
        }
        shapes |= {begin + f"self_attn.{name}_proj": (16 if name in "kv" else 32, 32) for name in "qkvo"}
    weights = {f"{name}.weight": torch.zeros(shape) for name, shape in shapes.items()}
    safetensors.torch.save_file(weights, "hf_model_safetensors/model.safetensors")
    template = json.loads(Path("template/base_config.json").read_text(encoding="utf-8"))
    template["model"] |= {"name": "made-up", "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2}
    template["training"] |= {"total_train_steps": 4, "seq_length": 64, "micro_batch_size": 2, "num_samples": None}
    template["training"]["gradient_accumulation_steps"] = 2
    template["environment"] |= {"FLASH_ATTEN": "0", "HF_TOKEN": "none"}
    for name, size in {"dp": "dp_size", "tp": "tp_size", "cp": "cp_size", "1f1b": "pp_size", "afab": "pp_size"}.items():
        engine = name if size == "pp_size" else "1f1b"
        configuration = template | {"distributed": template["distributed"] | {size: 2, "pp_engine": engine}}
        # With context parallelism picotron's own checkpoint fails: it asks the model for a `module` it does not have.
        configuration["checkpoint"] = template["checkpoint"] | {"save_frequency": 100 if name == "cp" else 4}
        Path(f"{name}.json").write_text(json.dumps(configuration), encoding="utf-8")


def torchtitan():
    """The texts of torchtitan's tests, which some mirrors leave out because of their size."""
    file = Path("tests/assets/c4_test/data.json")
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.exists():
        generator = random.Random(0)
        texts = ("".join(generator.choices("abcdefgh ", k=1024)) for _ in range(256))
        file.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")


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
    {function.__name__: function for function in (nanogpt, timm, picotron, torchtitan, ultralytics)}[sys.argv[1]]()
