"""Chunks of chosen sizes, and the detector trained through them: equal to one device, last batches included."""

import copy
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import vgpu
from frcnn_lite.parallel import BalancedDataParallel, balanced_chunks, reduce_loss


@pytest.mark.parametrize("first", [None, 0, 1, 2, 5])
@pytest.mark.parametrize("devices", range(1, 9))
def test_chunks_hold_all_rows_and_the_first_no_more_than_an_even_share(devices: int, first: int | None) -> None:
    for rows in range(34):
        sizes = balanced_chunks(rows, devices, first)
        assert len(sizes) == devices and sum(sizes) == rows
        own, others = sizes[0], sizes[1:]
        if devices > 1:
            assert own <= min(others) and max(others) - min(others) <= 1
            assert own == (rows // devices if first is None else min(first, rows // devices))


def test_chunks_by_hand() -> None:
    assert balanced_chunks(8, 3, 2) == [2, 3, 3]
    assert balanced_chunks(9, 4, 3) == [2, 3, 2, 2]  # torch makes three parts of it, [3, 3, 3]
    assert balanced_chunks(2, 3, 1) == [0, 1, 1]
    assert balanced_chunks(5, 1, 2) == [5]


@pytest.mark.parametrize("arguments", [(-1, 2), (3, 0), (3, 2, -1)])
def test_impossible_chunks_are_named(arguments: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="want rows >= 0, devices >= 1, first >= 0"):
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


def test_a_shared_row_is_an_error_and_not_half_a_batch() -> None:
    net = BalancedDataParallel(nn.Bilinear(2, 2, 1), ["cpu", "cpu"])
    with pytest.raises(ValueError, match=r"batch\['args'\]\[1\] holds 1 samples, batch\['args'\]\[0\] holds 4"):
        net(torch.zeros(4, 2), torch.zeros(1, 2))


def test_state_dict_and_output_device() -> None:
    with vgpu.virtual_gpus(2) as gpus:
        net = BalancedDataParallel(nn.Linear(2, 1).cuda(), gpus, output_device="cpu")
        assert list(net.state_dict()) == list(nn.DataParallel(net.module).state_dict())
        assert net(torch.zeros(3, 2)).device == torch.device("cpu")
    with pytest.raises(ValueError, match="devices is empty"):
        BalancedDataParallel(nn.Linear(2, 1), [])
    with pytest.raises(ValueError, match="first=-1"):
        BalancedDataParallel(nn.Linear(2, 1), ["cpu"], first=-1)


def largest_error(many: nn.Module, one: nn.Module) -> float:
    """Over all parameters, length of the difference of the gradients by length of the gradient.

    By lengths and not by entries, and on one thread: the first convolution adds up 20,000 positions in float32. On one
    thread the difference was 5e-6 of the gradient's length and up to 1.1e-5 of its largest entry; on two threads, which
    add up in another order again, 1.1e-5 of the length.
    """
    pairs = zip(many.parameters(), one.parameters(), strict=True)
    return max(((a.grad.cpu() - b.grad).norm() / b.grad.norm()).item() for a, b in pairs)


@pytest.fixture
def one_thread() -> Iterator[None]:
    """What "equal" asks for: as many threads in one computation as in the other (docs/architecture.md)."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
@pytest.mark.parametrize("devices", ["2 GPUs", "3 GPUs", "4 GPUs", "3 CPUs"])
def test_detector_trains_as_on_one_device(devices: str, dtype: torch.dtype, tolerance: float) -> None:
    """First steps with a full batch and with a short last one; then an epoch of both, followed by the optimizer."""
    pytest.importorskip("sklearn", reason="the digits are scikit-learn's")
    from frcnn_lite.data import DigitScenes, collate
    from frcnn_lite.detection import FasterRCNN, FasterRCNNConfig

    count, kind = int(devices[0]), devices[2:]
    scenes = DigitScenes("train", length=7, seed=0)
    loader = [collate([scenes[k] for k in own]) for own in (range(5), range(5, 7))]  # 5 images, then 2
    torch.manual_seed(0)
    start = FasterRCNN(FasterRCNNConfig()).to(dtype)
    for parameter in start.parameters():  # residual blocks start at zero, where half of the gradients vanish
        parameter.data += 0.05

    def step(net: nn.Module, k: int) -> Tensor:
        batch, seeds = loader[k], torch.arange(len(loader[k].labels)) + 10 * k
        parts = net(batch.images.to(dtype), batch.boxes.to(dtype), batch.labels, seeds=seeds)
        loss = torch.stack(list(reduce_loss(*parts).values())).sum()
        loss.backward()
        return loss.detach().cpu()

    with vgpu.virtual_gpus(4) as gpus:
        places = gpus[:count] if kind == "GPUs" else ["cpu"] * count
        for k in range(2):
            one, many = copy.deepcopy(start), copy.deepcopy(start).to(places[0])
            torch.testing.assert_close(
                step(BalancedDataParallel(many, places, first=1), k), step(one, k), rtol=tolerance, atol=0
            )
            assert largest_error(many, one) <= tolerance
        if devices == "3 GPUs" and dtype is torch.float64:
            assert curve(many, BalancedDataParallel(many, places, first=1), step) == pytest.approx(
                curve(one, one, step), rel=1e-3
            )


def curve(model: nn.Module, net: nn.Module, step) -> list[float]:
    """Losses of two epochs."""
    optimizer, losses = torch.optim.SGD(model.parameters(), lr=0.001), []
    for k in (0, 1, 0, 1):
        optimizer.zero_grad()
        losses.append(step(net, k).item())
        optimizer.step()
    assert losses[2:] != losses[:2]
    return losses


@pytest.mark.usefixtures("vgpu_fresh_memory")
def test_runs_out_of_memory_even_and_survives_balanced() -> None:
    """The first GPU keeps 8 MB besides its share: too much for an even share of the batch, not for a smaller one."""
    with vgpu.virtual_gpus(4, memory="24MB") as gpus:
        net = nn.Sequential(nn.Linear(4096, 8), nn.Linear(8, 1)).cuda()
        kept = torch.empty(8 << 20, dtype=torch.uint8, device="cuda:0")
        rows = torch.zeros(4400, 4096)
        with pytest.raises(torch.OutOfMemoryError, match="GPU 0"):
            BalancedDataParallel(net, gpus)(rows)
        loss = F.mse_loss(BalancedDataParallel(net, gpus, first=500)(rows), torch.ones(4400, 1, device="cuda"))
        loss.backward()
        assert len(kept) and net[0].weight.grad.device == gpus[0]
