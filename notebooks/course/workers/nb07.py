"""What the ranks of notebook 07 do: each function is one run of two processes."""

import os
import re
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, distributed, nn
from torch.distributed import GradBucket
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.distributed.nn.functional import all_reduce
from torch.nn.parallel import DistributedDataParallel

from frcnn_lite.data import DigitScenes
from frcnn_lite.engine import TrainConfig, load_weights, train
from frcnn_lite.engine.evaluate import judge
from frcnn_lite.parallel import is_main_rank, process_group, rank_and_size, reduce_loss_over_ranks, rows_of_rank

Told = dict[str, Any]


def introduce() -> Told:
    """What the environment tells a rank, and where a GPU tensor without a number goes, before and after set_device."""
    told: Told = {name: int(os.environ[name]) for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE")}
    told["before"] = str(torch.ones(3, device="cuda").device)  # noqa: FL001 to see
    with process_group() as device:
        own = torch.ones(3, device="cuda")  # noqa: FL001 to see
        distributed.all_reduce(own)
        return {**told, "device": str(device), "after": str(own.device), "sum": own.tolist()}


def digit_net() -> nn.Linear:
    """Ten scores from 64 pixels; the same weights at every call."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return nn.Linear(64, 10).double()


def loss_of(kind: str, logits: Tensor, labels: Tensor) -> Tensor:
    """ "mean" or "sum" over the rows that are here, or "global": over all ranks' rows, divided once."""
    losses = F.cross_entropy(logits, labels, reduction="none")
    if kind == "global":
        return reduce_loss_over_ranks(losses, torch.ones_like(losses))[0]
    return losses.sum() if kind == "sum" else losses.mean()


def gradients(pixels: Tensor, labels: Tensor, kinds: tuple[tuple[str, int], ...]) -> dict[tuple[str, int], Told]:
    """The gradient after backward() and before step(), for each loss and number of rows, on this rank's share."""
    with process_group() as device:
        told: dict[tuple[str, int], Told] = {}
        for kind, rows in kinds:
            net = digit_net().to(device)
            ddp = DistributedDataParallel(net, device_ids=[device] if device.type == "cuda" else None)
            share = list(rows_of_rank(rows))
            x, y = pixels[share].to(device), labels[share].to(device)
            own = torch.autograd.grad(loss_of(kind, net(x), y), net.weight)[0]  # not through DDP
            loss = loss_of(kind, ddp(x), y)
            loss.backward()
            told[kind, rows] = {"own": own.cpu(), "ddp": _gradient(net), "loss": loss.item()}  # noqa: FL009 three
        return told


def accumulate(pixels: Tensor, labels: Tensor, ways: tuple[str, ...]) -> Told:
    """Gradients of one step in two micro-batches, and how many messages it took, for each way of doing it."""
    with process_group() as device:
        return {way: _accumulate(way, pixels.to(device), labels.to(device)) for way in ways}


def _accumulate(way: str, pixels: Tensor, labels: Tensor) -> Told:
    net = digit_net().to(pixels.device)
    ddp = DistributedDataParallel(net)
    messages: list[GradBucket] = []

    def send(state: None, bucket: GradBucket) -> torch.futures.Future[Tensor]:
        messages.append(bucket)
        assert distributed.group.WORLD is not None
        return allreduce_hook(distributed.group.WORLD, bucket)

    ddp.register_comm_hook(None, send)
    share = list(rows_of_rank(len(labels)))
    for rows, last in ((share[:3], False), (share[3:], True)):
        with ddp.no_sync() if way == "no_sync" and not last else nullcontext():
            losses = F.cross_entropy(ddp(pixels[rows]), labels[rows], reduction="sum")
            if way == "flag before backward":
                ddp.require_backward_grad_sync = last
            (losses * rank_and_size()[1] / len(labels)).backward()
    return {"gradient": _gradient(net), "messages": len(messages)}


def _gradient(net: nn.Linear) -> Tensor:
    assert net.weight.grad is not None
    return net.weight.grad.cpu()


class BatchNormOverRanks(nn.BatchNorm1d):
    """nn.SyncBatchNorm in a few lines, on any device: mean and variance of the rows of all ranks."""

    running_mean: Tensor
    momentum: float

    def forward(self, x: Tensor) -> Tensor:
        rows = x.new_full((1, x.shape[1]), len(x))
        total, squares, rows = all_reduce(torch.stack([x.sum(0), x.square().sum(0), rows[0]]))  # with a gradient
        mean = total / rows
        variance = squares / rows - mean.square()
        with torch.no_grad():
            self.running_mean.lerp_(mean, self.momentum)
        return (x - mean) * (variance + self.eps).rsqrt() * self.weight + self.bias


def statistics(pixels: Tensor) -> Told:
    """Batch norm on this rank's rows: its buffers, and what it computes when the statistics are those of all ranks."""
    with process_group() as device:
        x = pixels[list(rows_of_rank(len(pixels)))].to(device)
        plain = nn.BatchNorm1d(64, momentum=1.0).double().to(device)
        over_ranks = BatchNormOverRanks(64, momentum=1.0).double().to(device)
        found: list[Tensor] = []
        plain.register_forward_pre_hook(lambda norm, _: found.append(_mean(norm)))
        ddp = DistributedDataParallel(plain)
        output = ddp(x)
        left = _mean(plain)
        ddp(x)
        told = {"output": output.detach().cpu(), "left behind": left, "found next": found[1]}
        told["over ranks"] = over_ranks(x).detach().cpu()
        told["their mean"] = _mean(over_ranks)
        told["torch on the CPU"] = _attempt(lambda: nn.SyncBatchNorm(64).double()(pixels))
        synced = nn.SyncBatchNorm(64, momentum=1.0).double().to(device)
        told["synced"] = synced(x).detach().cpu()
        told["its mean"] = _mean(synced)
        return told


def _mean(norm: nn.Module) -> Tensor:
    return norm.state_dict()["running_mean"].clone().cpu()


def _attempt(call: Callable[[], Any]) -> str:
    try:
        call()
    except (ValueError, RuntimeError) as error:
        return f"{type(error).__name__}: {re.split(' with arg| or XPU', str(error))[0]}"
    return "runs"


def save_and_load(folder: Path) -> Told:
    """Rank 0 saves, all wait for it, all load: the names in the file, and the device a weight comes back to."""
    with process_group() as device:
        ddp = DistributedDataParallel(digit_net().to(device))
        if is_main_rank():
            torch.save(ddp.state_dict(), folder / "wrapped.pt")
            torch.save(ddp.module.state_dict(), folder / "bare.pt")
        distributed.barrier()
        files = {
            name: torch.load(folder / f"{name}.pt", weights_only=True)  # noqa: FL014 where it comes back to is the question
            for name in ("wrapped", "bare")
        }
        told: Told = {name: list(state) for name, state in files.items()}
        told["without map_location"] = str(files["bare"]["weight"].device)
        placed = torch.load(folder / "bare.pt", map_location=device, weights_only=True)
        return {**told, "with map_location": str(placed["weight"].device)}


def detector(config: TrainConfig, folder: Path, weights: Path, pictures: int) -> Told:
    """Train a little, then judge the trained detector of file `weights` on `pictures` test pictures."""
    with process_group() as device:
        result = train(config, folder, progress=False)
        model = load_weights(weights).to(device)
        judged = judge(model, DigitScenes("test", pictures))
        return {"losses": result.losses, "judged": judged, "rows": list(rows_of_rank(pictures))}
