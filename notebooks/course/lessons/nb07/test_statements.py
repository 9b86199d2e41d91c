"""Numbers and statements in the prose of notebook 07 that no output shows, computed and run again."""

import pytest
import torch
import torch.nn.functional as F
from told import output, says
from torch import distributed, nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.parallel import DistributedDataParallel

from course.kit.files import SCRIPTS
from course.kit.ranks import RanksFailed, ranks
from course.lessons.nb07.puzzles.normalise import normalise

pytestmark = pytest.mark.virtual_gpus(2)


def test_weights_and_buffers_are_those_of_rank_0_also_in_eval_mode():
    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.full((1,), float(distributed.get_rank())))
            self.register_buffer("seen", torch.zeros(1))

        def forward(self, x):
            return x * self.weight + self.seen

    def look():
        net = Counts().cuda()
        ddp, own = DistributedDataParallel(net).eval(), float(distributed.get_rank())
        begins_with = net.weight.item()
        net.seen += own
        ddp(torch.ones(1).cuda())
        return begins_with, net.seen.item()

    assert ranks(2)(look)() == [(0.0, 0.0), (0.0, 0.0)]
    assert says(
        "07", "DDP sends the buffers of rank 0 to all ranks before each forward of training, and also before the first"
    )
    assert says("07", "The first `ddp(x)` after a training step sends buffers, also in `eval()` mode.")
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
    refused = ranks(2, device="cpu")(lambda: nn.SyncBatchNorm(1)(rows))
    with pytest.raises(RanksFailed, match="SyncBatchNorm expected input tensor to be on GPU"):
        refused()
    assert says("07", "It asks for GPUs, and virtual ones will do.")


def test_a_sum_over_four_ranks_gives_a_quarter():
    def gradient(rows):
        ddp = DistributedDataParallel(nn.Linear(1, 1, bias=False))
        ddp(rows[distributed.get_rank() :: distributed.get_world_size()]).sum().backward()
        return ddp.module.weight.grad.item()

    rows = torch.arange(8.0).view(8, 1)
    assert [ranks(count, device="cpu")(gradient)(rows)[0] / rows.sum().item() for count in (2, 4)] == [0.5, 0.25]
    assert says("07", "two ranks give half of the gradient of one process, and four give a quarter")


def test_no_sync_around_backward_alone_sends_every_time():
    def messages(around_forward):
        ddp, sent = DistributedDataParallel(nn.Linear(1, 1)), []

        def send(state, bucket):
            sent.append(bucket.index())
            return allreduce_hook(distributed.group.WORLD, bucket)

        ddp.register_comm_hook(None, send)
        if around_forward:
            with ddp.no_sync():
                ddp(torch.ones(1, 1)).sum().backward()
        else:
            loss = ddp(torch.ones(1, 1)).sum()
            with ddp.no_sync():
                loss.backward()
        return len(sent)

    on_ranks = ranks(2, device="cpu")(messages)
    assert (on_ranks(True), on_ranks(False)) == ([0, 0], [1, 1])
    assert says("07", "For the same reason `no_sync` belongs around forward *and* backward.")


def test_the_first_step_has_one_bucket_and_the_default_is_25_mib():
    def buckets():
        net = nn.Sequential(nn.Linear(30, 30), nn.Linear(30, 30))
        ddp, sent = DistributedDataParallel(net, bucket_cap_mb=0.001), []

        def send(state, bucket):
            sent.append(bucket.index())
            return allreduce_hook(distributed.group.WORLD, bucket)

        ddp.register_comm_hook(None, send)
        for _ in range(2):
            ddp(torch.ones(1, 30)).sum().backward()
        return sent, DistributedDataParallel(nn.Linear(1, 1)).bucket_bytes_cap

    assert ranks(2, device="cpu")(buckets)() == [([0, 0, 1], 25 * 2**20)] * 2
    assert says("07", "*Today* (torch 2.11 to 2.15) the first step of a run has a single bucket.")
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
