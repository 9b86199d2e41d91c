"""Numbers and statements in the prose of notebook 07 that no output shows, computed and run again."""

import subprocess
import sys
from contextlib import nullcontext

import pytest
import torch
import torch.nn.functional as F
from told import output, says
from torch import distributed, nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.parallel import DistributedDataParallel

from course.kit.files import SCRIPTS
from course.kit.ranks import ranks
from course.lessons.nb07.puzzles.normalise import normalise

pytestmark = pytest.mark.virtual_gpus(2)
# Graphs of a net of three layers of 1 MiB, alone and under DDP. A process of its own, because dynamo compiles nothing
# while a dispatch mode is active, such as that of virtual GPUs, which PYTHONPATH would hand down to it (so -E).
COUNTS_GRAPHS = """
import torch
from torch import distributed, nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(512, 512) for _ in range(3))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def count(model):
    graphs = []
    compiled = torch.compile(model, backend=lambda graph, _: graphs.append(graph) or graph.forward)
    compiled(torch.ones(1, 512)).sum().backward()
    print(len(graphs))


distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
count(Net())
count(nn.parallel.DistributedDataParallel(Net(), bucket_cap_mb=1))
distributed.destroy_process_group()
"""


def test_weights_and_buffers_are_those_of_rank_0():
    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.full((1,), float(distributed.get_rank())))
            self.register_buffer("seen", torch.zeros(1))

        def forward(self, x):
            return x * self.weight + self.seen

    def look():
        net = Counts().cuda()
        ddp, own = DistributedDataParallel(net), float(distributed.get_rank())
        begins_with = net.weight.item()
        net.seen += own
        ddp(torch.ones(1).cuda())
        trained = net.seen.item()
        net.seen += own
        with torch.no_grad():
            ddp.eval()(torch.ones(1).cuda())
        return begins_with, trained, net.seen.item()

    assert ranks(2)(look)() == [(0.0, 0.0, 0.0)] * 2
    assert says("07", "Before each forward, in evaluation too, DDP sends those of rank 0 to all")
    assert says("07", "When DDP wraps a net, it sends the weights and buffers of rank 0 to all others")


def test_sync_batch_norm_is_the_exercise_and_one_process():
    rows = torch.tensor([[1.0], [2.0], [4.0], [9.0], [7.0]])

    def both():
        x = rows[:3].cuda() if distributed.get_rank() == 0 else rows[3:].cuda()
        net = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.BatchNorm1d(1))).cuda()
        return normalise(x).cpu(), DistributedDataParallel(net)(x).detach().cpu()

    by_hand, torchs = (torch.cat(parts) for parts in zip(*ranks(2)(both)(), strict=True))
    expected = F.batch_norm(rows, None, None, training=True)
    torch.testing.assert_close(by_hand, expected)
    torch.testing.assert_close(torchs, expected)
    assert says("07", "`nn.SyncBatchNorm` takes those of all ranks.")


def test_a_sum_over_four_ranks_gives_a_quarter():
    def gradient(rows):
        ddp = DistributedDataParallel(nn.Linear(1, 1, bias=False))
        ddp(rows[distributed.get_rank() :: distributed.get_world_size()]).sum().backward()
        return ddp.module.weight.grad.item()

    rows = torch.arange(8.0).view(8, 1)
    assert [ranks(count, device="cpu")(gradient)(rows)[0] / rows.sum().item() for count in (2, 4)] == [0.5, 0.25]
    assert says("07", "two ranks give half of the gradient of one process, and four give a quarter")


def counted(ddp):
    """The indices of the buckets that `ddp` sends from now on."""
    sent = []

    def send(state, bucket):
        sent.append(bucket.index())
        return allreduce_hook(distributed.group.WORLD, bucket)

    ddp.register_comm_hook(None, send)
    return sent


def test_the_forward_decides_whether_backward_sends():
    def messages(how):
        ddp = DistributedDataParallel(nn.Linear(1, 1))
        sent = counted(ddp)
        with ddp.no_sync() if how == "around both" else nullcontext():
            loss = ddp(torch.ones(1, 1)).sum()
            if how == "flag":
                ddp.require_backward_grad_sync = False
            with ddp.no_sync() if how == "around backward" else nullcontext():
                loss.backward()
        return len(sent)

    on_ranks = ranks(2, device="cpu")(messages)
    assert on_ranks("around both") == [0, 0]
    assert on_ranks("around backward") == on_ranks("flag") == [1, 1]
    assert says("07", "so `no_sync` belongs around forward *and* backward.")
    assert says("07", "`require_backward_grad_sync`, changed in between, comes one micro-batch late")


def test_the_compiler_cuts_its_graph_where_buckets_end(tmp_path):
    program = tmp_path / "graphs.py"
    program.write_text(COUNTS_GRAPHS, encoding="utf-8")
    ran = subprocess.run([sys.executable, "-E", program], cwd=tmp_path, capture_output=True, text=True)
    assert ran.stdout.split() == ["1", "3"], ran.stderr
    assert says("07", "wrap first, then `torch.compile(ddp)`. Then the compiler cuts its graph where DDP's buckets end")


def test_a_bucket_has_25_mib_by_default():
    def size():
        return DistributedDataParallel(nn.Linear(1, 1)).bucket_bytes_cap

    assert ranks(2, device="cpu")(size)() == [25 * 2**20] * 2
    assert says("07", "into *buckets*, of 25 MiB by default")


def test_over_gloo_nobody_notices_that_two_ranks_use_one_gpu():
    def begin():
        distributed.init_process_group("gloo")
        x = torch.ones(1, device="cuda:0")
        distributed.all_reduce(x)
        distributed.destroy_process_group()
        return x.item()

    assert ranks(2, joined=False)(begin)() == [2.0, 2.0]
    assert says("07", "Over gloo nobody notices")


def test_the_script_is_shown_whole_and_has_run():
    text, _, ran = output("07", "subprocess.run").partition("--- run on two GPUs:")
    assert text.strip() == (SCRIPTS / "train_ddp.py").read_text(encoding="utf-8").strip()
    assert ran.strip().startswith("4 epochs")
