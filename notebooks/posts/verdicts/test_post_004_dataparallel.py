"""Verdicts on post 004, "Pytorch 相关问题及学习": its lines on DataParallel and on balancing it."""

import io

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel._functions import Scatter
from verdict import verdict

import vgpu
from course.lessons.nb06.balance import BalancedDataParallel
from course.kit.step_trace import Trace, trace_step

NOTEBOOK = "06_memory_balance"
pytestmark = pytest.mark.usefixtures("vgpu_fresh_memory")


class Paint(nn.Module):
    """Ten scores for each of 1024 pixels."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(1024, 64), nn.Linear(64, 10 * 1024)

    def forward(self, x, target=None):
        scores = self.head(self.body(x)).view(-1, 10, 1024)
        return scores if target is None else F.cross_entropy(scores, target, reduction="none").mean(dim=1)


def weights_on(module: nn.Module) -> set[str]:
    return {str(weight.device) for weight in module.parameters()}


def second_step(net: nn.Module, gpus: list[torch.device], inside: bool) -> Trace:
    """Memory of a step with Adam that is not the first, the loss inside the replicas or outside of them."""
    x, target, adam = (
        torch.ones(512, 1024),
        torch.zeros(512, 1024, dtype=torch.int64),
        torch.optim.Adam(net.parameters()),
    )
    for _ in range(2):
        adam.zero_grad()
        with trace_step(net, gpus) as memory:
            memory.mark("before step")
            loss = net(x, target).mean() if inside else F.cross_entropy(net(x), target.cuda())
            loss.backward()
            adam.step()
            memory.mark("after step")
    return memory


@verdict(
    "004",
    "several GPUs, DataParallel",
    claim="`model = nn.DataParallel(model)`, then `model = model.cuda()`.",
    ruling="right",
    because="The wrapper moves what it wraps, in place; `.cuda()` first does the same. All weights are on cuda:0.",
)
def test_wrapping_before_or_after_moving() -> None:
    with vgpu.virtual_gpus(2):
        before, after = nn.DataParallel(nn.Linear(3, 2)).cuda(), nn.DataParallel(nn.Linear(3, 2).cuda())
        assert weights_on(before) == weights_on(after) == {"cuda:0"}
        assert before(torch.zeros(4, 3)).shape == (4, 2)


@verdict(
    "004",
    "several GPUs, DataParallel",
    claim="These lines distribute the model over the GPUs.",
    ruling="incomplete",
    because="Rows are distributed. The model is copied, whole, in every step: between steps cuda:1 holds nothing, "
    "within a step all weights.",
    notebook=NOTEBOOK,
    words="The model is copied, not split",
)
def test_the_model_is_copied_in_every_step() -> None:
    with vgpu.virtual_gpus(2) as gpus:
        net, weights = nn.DataParallel(Paint().cuda(), gpus), sum(w.nbytes for w in Paint().parameters())
        memory = second_step(net, gpus, inside=False)
        assert memory.bytes_after("before step")[1] == memory.bytes_after("after step")[1] == 0
        assert memory.bytes_after("forward body")[1] >= weights


@verdict(
    "004",
    "several GPUs, balance",
    claim="DataParallel uses the memory of the GPUs unequally.",
    ruling="right",
    because="With a large output and the loss outside, cuda:0 held more than four times as much as the next.",
    notebook=NOTEBOOK,
    words="only `cuda:0` holds anything",
)
def test_the_first_gpu_holds_most() -> None:
    with vgpu.virtual_gpus(4) as gpus:
        first, *others = second_step(nn.DataParallel(Paint().cuda(), gpus), gpus, inside=False).peaks
        assert first > 4 * max(others)


@verdict(
    "004",
    "several GPUs, balance",
    claim="The official answer is DistributedDataParallel instead of DataParallel.",
    ruling="incomplete",
    because="PyTorch's docstring recommends it, even for a single machine, and does not mention memory. It helps "
    "there because it gathers nothing on one GPU.",
    notebook="07_ddp_by_hand",
    words="is what PyTorch recommends instead",
)
def test_the_documentation_recommends_ddp() -> None:
    words = " ".join((nn.DataParallel.__doc__ or "").split())
    assert "recommended to use :class:`~torch.nn.parallel.DistributedDataParallel`" in words
    assert "memory" not in words


@verdict(
    "004",
    "several GPUs, balance",
    claim="DistributedDataParallel, too, has unequal memory.",
    ruling="incomplete",
    because="Not by itself: it gathers nothing. A process without set_device works on GPU 0 and opens a context there; "
    "torch.load brings a file back to the GPU it was written on.",
    notebook="07_ddp_by_hand",
    words="A file remembers that rank 0 saved from `cuda:0`",
)
def test_what_fills_the_first_gpu_under_ddp() -> None:
    with vgpu.virtual_gpus(2):
        assert str(torch.ones(1).cuda().device) == "cuda:0"  # as in any process that has not called set_device
        file = io.BytesIO()
        torch.save(nn.Linear(3, 2).cuda().state_dict(), file)
        with torch.cuda.device(1):
            found = {}
            for place in (None, "cpu"):
                file.seek(0)
                found[place] = {str(tensor.device) for tensor in torch.load(file, map_location=place).values()}
        assert found == {None: {"cuda:0"}, "cpu": {"cpu"}}


class Chunks2020(nn.DataParallel):
    """The rule of Balanced-DataParallel in our words: sizes from the first positional argument, or torch's own."""

    def __init__(self, first: int, module: nn.Module, **kwargs) -> None:
        super().__init__(module, **kwargs)
        self.first = first

    def scatter(self, inputs, kwargs, device_ids):
        others = len(self.device_ids) - 1
        size, left_over = divmod(inputs[0].size(self.dim) - self.first, others)
        if self.first >= size:
            return super().scatter(inputs, kwargs, device_ids)
        chunks = [self.first] + [size + (k < left_over) for k in range(others)]
        parts = [Scatter.apply(device_ids, chunks, self.dim, x) for x in inputs]
        return tuple(zip(*parts, strict=True)), tuple({} for _ in device_ids)

    def replicate(self, module, device_ids):
        return super().replicate(module, self.device_ids)  # one on each GPU, whatever the number of parts


@verdict(
    "004",
    "several GPUs, balance, the link",
    claim="Balanced-DataParallel is a way to balance it.",
    ruling="incomplete",
    because="Its chunks are right for full batches given by position. It stops at batches of fewer parts than GPUs, at "
    "keywords and lists; on one GPU it divides by zero; and with the loss outside it saves next to nothing.",
    notebook=NOTEBOOK,
    words="BalancedDataParallel",
)
def test_balanced_chunks_of_2020() -> None:
    with vgpu.virtual_gpus(4) as gpus:
        net = Chunks2020(50, Paint().cuda(), device_ids=gpus)
        assert net(torch.zeros(512, 1024)).shape == (512, 10, 1024)
        with pytest.raises(AssertionError):
            Chunks2020(3, nn.Linear(2, 1).cuda(), device_ids=gpus)(torch.zeros(9, 2))
        with pytest.raises(IndexError):
            net(x=torch.zeros(512, 1024))
        with pytest.raises(AttributeError, match="'list' object has no attribute 'size'"):
            net([torch.zeros(1024)] * 512)
        with pytest.raises(ZeroDivisionError):
            Chunks2020(1, nn.Linear(2, 1).cuda(), device_ids=gpus[:1])(torch.zeros(9, 2))
        even = second_step(nn.DataParallel(Paint().cuda(), gpus), gpus, inside=False)
        fewer = second_step(Chunks2020(8, Paint().cuda(), device_ids=gpus), gpus, inside=False)
        assert fewer.peaks[0] > 0.9 * even.peaks[0]


@verdict(
    "004",
    "several GPUs, balance, the link",
    claim="A smaller part for the first GPU makes memory equal.",
    ruling="right",
    because="Once the loss is on the replicas: then weights, gradients and optimizer are all that cuda:0 has besides, "
    "and rows outweigh them. The fullest GPU held at most 1.1 times what the emptiest did.",
)
def test_balanced_chunks_with_the_loss_on_the_replicas() -> None:
    with vgpu.virtual_gpus(4) as gpus:
        spread = {}
        for first in (None, 90):
            peaks = second_step(BalancedDataParallel(Paint().cuda(), gpus, first=first), gpus, inside=True).peaks
            spread[first] = max(peaks) / min(peaks)
        assert spread[90] < 1.1 < spread[None], spread
