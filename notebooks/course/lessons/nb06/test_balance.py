"""Chunks of chosen sizes, batches split and joined by their samples, and a module called with both."""

from collections import namedtuple
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import vgpu
from course.lessons.nb06.balance import (
    BalancedDataParallel,
    balanced_chunks,
    count_samples,
    gather_samples,
    scatter_samples,
)

Pair = namedtuple("Pair", "left right")


@dataclass(frozen=True)
class Truth:
    boxes: list[Tensor]
    labels: Tensor
    source: str = "digits"
    extra: None = None


@pytest.mark.parametrize("first", [None, 0, 1, 2, 5])
@pytest.mark.parametrize("gpus", range(1, 9))
def test_chunks_hold_all_rows_and_the_first_no_more_than_an_even_share(gpus: int, first: int | None) -> None:
    for rows in range(34):
        sizes = balanced_chunks(rows, gpus, first)
        assert len(sizes) == gpus and sum(sizes) == rows
        own, others = sizes[0], sizes[1:]
        if gpus > 1:
            assert own <= min(others) and max(others) - min(others) <= 1
            assert own == (rows // gpus if first is None else min(first, rows // gpus))


def test_chunks_by_hand() -> None:
    assert balanced_chunks(8, 3, 2) == [2, 3, 3]
    assert balanced_chunks(9, 4, 3) == [2, 3, 2, 2]  # torch makes three parts of it, [3, 3, 3]
    assert balanced_chunks(2, 3, 1) == [0, 1, 1]
    assert balanced_chunks(5, 1, 2) == [5]


@pytest.mark.parametrize("arguments", [(-1, 2), (3, 0), (3, 2, -1)])
def test_impossible_chunks_are_named(arguments: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="`rows` and `first` must be at least 0, `gpus` at least 1, got rows="):
        balanced_chunks(*arguments)


class Rows(nn.Module):
    """Tells how many samples each call got."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, images: list[Tensor], note: str | None = None, *, weights: Tensor) -> dict:
        sums = torch.stack([image.sum() for image in images]) if images else weights.new_zeros(0)
        return {"sums": self.scale * sums * weights, "rows": [len(images)], "note": note}


@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("rows", [0, 1, 2, 3, 7])
def test_lists_keywords_strings_and_short_batches(count: int, rows: int) -> None:
    images = [torch.full((k + 1, 2), 1.0) for k in range(rows)]
    weights = torch.arange(rows) + 1.0
    with vgpu.virtual_gpus(count) as gpus:
        out = BalancedDataParallel(Rows().cuda(), gpus, first=1)(images, "hello", weights=weights)
    assert out["rows"] == [size for size in balanced_chunks(rows, count, 1) if size] or rows == 0
    assert out["sums"].tolist() == [4.0 * (k + 1) ** 2 for k in range(rows)] and out["note"] == "hello"


def test_keywords_alone() -> None:
    net = BalancedDataParallel(Rows(), ["cpu"] * 3, first=1)
    assert net(images=[torch.ones(1)] * 5, weights=torch.ones(5))["rows"] == [1, 2, 2]


def test_on_cpus_gradients_are_those_of_one_call() -> None:
    torch.manual_seed(0)
    net, x = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double(), torch.randn(7, 3).double()
    expected = torch.autograd.grad(net(x).square().sum(), [*net.parameters()])
    found = torch.autograd.grad(BalancedDataParallel(net, ["cpu"] * 3, first=1)(x).square().sum(), [*net.parameters()])
    for mine, its in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, its, rtol=1e-10, atol=1e-12)


def test_a_shared_row_is_an_error_and_not_half_a_batch() -> None:
    net = BalancedDataParallel(nn.Bilinear(2, 2, 1), ["cpu", "cpu"])
    with pytest.raises(ValueError, match=r"batch\['args'\]\[1\] holds 1 samples, batch\['args'\]\[0\] holds 4"):
        net(torch.zeros(4, 2), torch.zeros(1, 2))


def test_state_dict_and_output_device() -> None:
    with vgpu.virtual_gpus(2) as gpus:
        net = BalancedDataParallel(nn.Linear(2, 1).cuda(), gpus, output_device="cpu")
        assert list(net.state_dict()) == list(nn.DataParallel(net.module).state_dict())
        assert net(torch.zeros(3, 2)).device == torch.device("cpu")
    for wrong in ([], ["cpu", "cuda:0"], ["cuda:1", "cuda:1"]):
        with pytest.raises(ValueError, match="`devices` must be different GPUs or several times the CPU"):
            BalancedDataParallel(nn.Linear(2, 1), wrong)
    with pytest.raises(ValueError, match="first=-1"):
        BalancedDataParallel(nn.Linear(2, 1), ["cpu"], first=-1)


def test_runs_out_of_memory_even_and_survives_balanced(request) -> None:
    """The first GPU keeps 8 MB besides its share: too much for an even share of the batch, not for a smaller one."""
    request.getfixturevalue("vgpu_fresh_memory")
    with vgpu.virtual_gpus(4, memory="24MB") as gpus:
        net = nn.Sequential(nn.Linear(4096, 8), nn.Linear(8, 1)).cuda()
        kept = torch.empty(8 << 20, dtype=torch.uint8, device="cuda:0")
        rows = torch.zeros(4400, 4096)
        with pytest.raises(torch.OutOfMemoryError, match="GPU 0"):
            BalancedDataParallel(net, gpus)(rows)
        loss = F.mse_loss(BalancedDataParallel(net, gpus, first=500)(rows), torch.ones(4400, 1, device="cuda"))
        loss.backward()
        assert len(kept) and net[0].weight.grad.device == gpus[0]


def batch_of(rows: int) -> dict:
    """A batch as a detector's loader makes it: no two images or sets of boxes of one size."""
    return {
        "images": [torch.full((3, 8 + k, 9), float(k)) for k in range(rows)],
        "targets": [{"boxes": torch.full((k, 4), float(k)), "name": f"{k}.png"} for k in range(rows)],
        "truth": Truth([torch.zeros(k, 4) for k in range(rows)], torch.arange(rows)),
        "pair": Pair(torch.arange(rows), None),
        "mode": "train",
        "scale": torch.tensor(2.0),
        "factor": 0.5,
    }


@pytest.mark.parametrize(("rows", "sizes"), [(5, [2, 3]), (7, [1, 3, 3]), (2, [0, 1, 1]), (1, [1]), (4, [4, 0])])
def test_every_sample_goes_whole_to_one_device(rows: int, sizes: list[int]) -> None:
    with vgpu.virtual_gpus(3) as gpus:
        batch = batch_of(rows)
        shares = scatter_samples(batch, gpus[: len(sizes)], sizes)
        seen: list[int] = []
        for share, gpu, size in zip(shares, gpus, sizes, strict=False):
            own = [int(image[0, 0, 0]) for image in share["images"]]
            assert len(own) == size == len(share["targets"])
            assert [tuple(image.shape) for image in share["images"]] == [(3, 8 + k, 9) for k in own]
            assert [tuple(target["boxes"].shape) for target in share["targets"]] == [(k, 4) for k in own]
            assert [target["name"] for target in share["targets"]] == [f"{k}.png" for k in own]
            assert [len(boxes) for boxes in share["truth"].boxes] == share["truth"].labels.tolist() == own
            assert share["pair"].left.tolist() == own and share["pair"].right is None
            assert (share["mode"], share["factor"], share["truth"].source) == ("train", 0.5, "digits")
            assert share["scale"].device == gpu
            tensors = [t for t in torch.utils._pytree.tree_leaves(share["images"]) if isinstance(t, Tensor)]
            assert all(t.device == gpu for t in [*tensors, share["truth"].labels, *share["truth"].boxes])
            seen += own
        assert seen == list(range(rows))


def test_scatter_on_cpus() -> None:
    images = [torch.zeros(3, 4 + k) for k in range(3)]
    first, second = scatter_samples((images, {"labels": torch.arange(3), "mode": None}), ["cpu", "cpu"], [1, 2])
    assert [len(image[0]) for image in first[0] + second[0]] == [4, 5, 6]
    assert (first[1]["labels"].tolist(), second[1]["labels"].tolist(), first[1]["mode"]) == ([0], [1, 2], None)


def test_gather_is_the_way_back() -> None:
    batch = batch_of(5)
    del batch["scale"]
    with vgpu.virtual_gpus(3) as gpus:
        joined = gather_samples(scatter_samples(batch, gpus, [1, 2, 2]), "cpu")
    assert [tuple(image.shape) for image in joined["images"]] == [tuple(image.shape) for image in batch["images"]]
    assert [target["name"] for target in joined["targets"]] == [target["name"] for target in batch["targets"]]
    assert joined["truth"].labels.tolist() == joined["pair"].left.tolist() == [0, 1, 2, 3, 4]
    assert isinstance(joined["pair"], Pair) and isinstance(joined["truth"], Truth)
    assert joined["truth"].boxes[3].device == torch.device("cpu")
    assert (joined["mode"], joined["factor"], joined["truth"].extra) == ("train", 0.5, None)


def test_detections_of_unequal_number_stay_with_their_image() -> None:
    """What `nn.DataParallel` makes of 3 and 5 boxes is (8, 4), the border between images lost."""
    shares = [[{"boxes": torch.zeros(3, 4)}], [{"boxes": torch.zeros(5, 4)}, {"boxes": torch.zeros(0, 4)}]]
    assert [len(found["boxes"]) for found in gather_samples(shares, "cpu")] == [3, 5, 0]


def test_losses_of_the_replicas_become_a_vector() -> None:
    assert gather_samples([torch.tensor(1.0), torch.tensor(2.0)], "cpu").tolist() == [1, 2]


def test_gradients_come_back_through_both() -> None:
    x = torch.arange(6.0).view(3, 2).requires_grad_()
    with vgpu.virtual_gpus(2) as gpus:
        shares = scatter_samples(([x[0], x[1], x[2]], x), gpus, [1, 2])
        joined = gather_samples([[a * 3 for a in images] + [b.sum()] for images, b in shares], "cpu")
        torch.stack([part.sum() for part in joined]).sum().backward()
    assert torch.equal(x.grad, torch.full((3, 2), 4.0))


def test_counts() -> None:
    assert count_samples(batch_of(4)) == 4
    assert count_samples(torch.zeros(0, 3)) == 0
    with pytest.raises(ValueError, match=r"batch\['labels'\] holds 3 samples, batch\['images'\] holds 2"):
        count_samples({"images": [torch.zeros(1)] * 2, "labels": torch.zeros(3)})
    with pytest.raises(ValueError, match="no tensor with rows and no list"):
        count_samples(("train", None, torch.tensor(1.0)))


def test_what_does_not_fit_is_named() -> None:
    with pytest.raises(ValueError, match=r"batch\[1\] holds 1 samples, but `sizes` \[2, 2\] add up to 4"):
        scatter_samples((torch.zeros(4, 2), torch.zeros(1, 2)), ["cpu", "cpu"], [2, 2])
    with pytest.raises(ValueError, match="`sizes` must hold a size of 0 or more for each of 2 devices, got"):
        scatter_samples(torch.zeros(4), ["cpu", "cpu"], [4])
    with pytest.raises(TypeError, match="different types: Tensor, list"):
        gather_samples([torch.zeros(1), [0]], "cpu")
    with pytest.raises(TypeError, match=r"replicas returned \[0.5, 0.25\]"):
        gather_samples([0.5, 0.25], "cpu")
    with pytest.raises(ValueError, match="different parts"):
        gather_samples([{"box": torch.zeros(1)}, {}], "cpu")


def test_torch_cuts_the_same_batch_apart() -> None:
    """The reason for this file: torch splits every tensor it finds, through channels and boxes."""
    with vgpu.virtual_gpus(2):
        images = [torch.zeros(3, 10, 10), torch.zeros(3, 12, 8)]
        cut = nn.parallel.scatter(images, [0, 1])
        assert [tuple(image.shape) for image in cut[0]] == [(2, 10, 10), (2, 12, 8)]
