"""What the ranks of `test_ranks.py` do: spawned processes can import this file, its folder being on pytest's path."""

import torch

from frcnn_lite import parallel
from frcnn_lite.data import DigitScenes, collate
from frcnn_lite.detection import FasterRCNNConfig
from frcnn_lite.engine import build_model, evaluate, train
from frcnn_lite.engine.devices import main_device, spread


def gradients(rows, dtype, gpus):
    """Losses and gradients of one step over pictures `rows`, shared out where there are ranks; all on the CPU."""
    model = build_model(FasterRCNNConfig(), seed=0).to(dtype)
    for parameter in model.parameters():  # residual blocks start at zero, where half of the gradients vanish
        parameter.data += 0.05
    net, device = spread(model, gpus), main_device(gpus)
    mine = [rows[row] for row in parallel.rows_of_rank(len(rows))]
    scenes = DigitScenes("train", 100, size=64)
    images, boxes, labels, _ = collate([scenes[row] for row in mine]).to(device)
    parts = net(images.to(dtype), boxes.to(dtype), labels, torch.tensor(mine, device=device))
    own, losses = parallel.reduce_loss_over_ranks(parts.sums, parts.counts)
    sum(own.values()).backward()
    return {
        "losses": {name: loss.item() for name, loss in losses.items()},
        "own": {name: loss.item() for name, loss in own.items()},
        "gradients": [parameter.grad.cpu() for parameter in model.parameters()],
    }


def talk(device):
    """One of each collective."""
    rank = parallel.rank_and_size()[0]
    said = {
        "sum": parallel.sum_over_ranks(torch.tensor([rank, 1.0], device=device)),
        "any": (parallel.any_rank(rank == 1), parallel.any_rank(False)),
        "merged": parallel.merge_rows([f"{row} by {rank}" for row in parallel.rows_of_rank(5)]),
        "from main": parallel.from_main_rank(lambda: f"made by {rank}"),
    }
    try:
        parallel.from_main_rank(refuse)
    except FileExistsError as error:
        said["error"] = str(error)
    return said


def refuse():
    raise FileExistsError("there is a run already")


def stop_rank_one(record):
    if record["step"] == 1 and parallel.rank_and_size()[0] == 1:
        raise KeyboardInterrupt


def attempt(function, *args):
    try:
        function(*args)
    except (ValueError, FloatingPointError) as error:
        return str(error)
    return None


def lesson(config, few, folder):
    """All that the tests ask of two ranks on two GPUs or on the CPU, in one pair of processes."""
    with parallel.process_group() as device:
        stopped = train(config, folder / "stopped", progress=False, on_step=stop_rank_one)
        whole = train(config, folder / "whole", progress=False)
        said = {
            "talk": talk(device),
            torch.float64: gradients(range(5), torch.float64, gpus=2),
            torch.float32: gradients(range(5), torch.float32, gpus=2),
            "whole": whole,
            "stopped": stopped,
            "resumed": train(config, folder / "stopped", progress=False, resume=True),
            "evaluation": evaluate(build_model(FasterRCNNConfig(), seed=0).to(device), DigitScenes("test", 5, size=64)),
            "three GPUs": attempt(main_device, 3),
        }
    with parallel.process_group("cpu"):  # NCCL takes no tensors of the CPU, on which `few` trains
        return {**said, "batch of one": attempt(train, few, folder / "few")}
