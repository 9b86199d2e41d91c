"""Numbers in the prose and in the formula of notebook 11 that no output shows, counted in a run."""

import pytest
import torch
import torch.nn.functional as F
from told import cell, says
from torch import distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, Replicate
from torch.distributed.tensor.parallel import ColwiseParallel, PrepareModuleInput, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

from course.kit.memory_kinds import settled
from course.kit.ranks import ranks
from course.kit.sent import Sent
from course.lessons.nb11.plan_bars import Plan

pytestmark = pytest.mark.virtual_gpus(2)
WIDTH, LAYERS, TOKENS = 64, 4, 128
WEIGHTS = 12 * LAYERS * WIDTH**2
COLUMNS, ROWS = ("attention.query", "attention.key", "attention.value", "up"), ("attention.out", "down")
CUTS = {**{name: ColwiseParallel() for name in COLUMNS}, **{name: RowwiseParallel() for name in ROWS}}
ONCE = {"attention": PrepareModuleInput(input_layouts=Replicate(), desired_input_layouts=Replicate())}


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def forward(self, x):
        heads = (part(x).unflatten(2, (-1, 16)).transpose(1, 2) for part in (self.query, self.key, self.value))
        return self.out(F.scaled_dot_product_attention(*heads).transpose(1, 2).flatten(2))


class Block(nn.Module):
    """A block of a transformer, of which the notebook has the formula."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.attention = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH), Attention()
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        x = x + self.attention(self.first(x))
        return x + self.down(torch.relu(self.up(self.second(x))))


def counted(plan):
    """What a rank of two holds and sends in a step of four blocks in float32; under FSDP it gathers bfloat16."""
    net, mesh = nn.Sequential(*(Block() for _ in range(LAYERS))).cuda(), init_device_mesh("cuda", (2,))
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for module in (*net, net):
        if plan == "FSDP":
            fully_shard(module, mesh=mesh, mp_policy=policy)
        elif plan == "tensor" and module is not net:
            parallelize_module(module, mesh, CUTS | ONCE)
    net = DistributedDataParallel(net) if plan == "DDP" else net
    x = torch.randn(8, TOKENS // 8, WIDTH).cuda()[:: 1 if plan == "tensor" else 2]
    before = settled()
    with Sent() as forward:
        y = net(x)
        activations = settled() - before
    with Sent() as backward:
        y.float().square().mean().backward()
    held = sum((p.to_local() if isinstance(p, DTensor) else p).nbytes for p in net.parameters())
    sent = forward.bytes_of_each_gpu(2) + backward.bytes_of_each_gpu(2)
    return {"weights": held, "activations": activations, "sent": sent, "calls": len(forward.calls + backward.calls)}


def plans(*case, **settings):
    names = {"Plan": Plan}
    exec(cell("11", "def plans"), names)
    return names["plans"](*case, **settings)


@pytest.mark.parametrize("plan", ["DDP", "FSDP", "tensor"])
def test_the_formula_is_good_to_a_tenth(plan):
    found = ranks(2)(counted)(plan)[0]
    expected = plans(WEIGHTS, TOKENS, machines=1, gpus=2, network=1.0, layers=LAYERS)[plan]
    bfloat16 = 1 if plan == "FSDP" else 2  # times what the formula says of activations
    assert found["weights"] == pytest.approx(expected.held["weights"], rel=0.1)
    assert found["activations"] == pytest.approx(bfloat16 * expected.held["activations"], rel=0.1)
    assert found["sent"] == pytest.approx((2 if plan == "tensor" else 1) * expected.sends * 450e9, rel=0.1)


def test_hsdp_sends_half_between_two_machines_and_hardly_less_between_many():
    def sends(machines, network):
        table = plans(7e9, 65536, machines, 8, network)
        return table["FSDP"], table["HSDP"]

    fsdp, hsdp = sends(2, 50e9)
    assert fsdp.sends == pytest.approx(15 / 16 * 56e9 / 50e9)
    assert hsdp.sends / fsdp.sends == pytest.approx(8 / 15)
    wide, narrow = sends(2, 400e9)
    assert wide.step == narrow.step > wide.sends
    many, kept = sends(16, 50e9)
    assert kept.sends / many.sends == pytest.approx(15 / 16, rel=0.01)
    assert says("11", "With eight cards a machine (400 GB/s) all of this is hidden, and FSDP takes no longer.")


def test_a_block_divided_in_this_way_sends_four_times_a_step():
    assert ranks(2)(counted)("tensor")[0]["calls"] == 4 * LAYERS
    assert says("11", "as in tensor parallel: four `all_reduce`s for each block in a step")


def test_a_logit_takes_ten_bytes_at_the_peak():
    vocabulary = 8192
    head, hidden = nn.Linear(WIDTH, vocabulary).cuda(), torch.randn(1024, WIDTH).cuda().requires_grad_()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    with torch.autocast("cuda", torch.bfloat16):
        loss = F.cross_entropy(head(hidden), torch.zeros(1024, dtype=torch.long).cuda())
    loss.backward()
    peak = torch.cuda.max_memory_allocated() - before
    assert peak / 1024 / vocabulary == pytest.approx(10, rel=0.05)
    assert says("11", "With its log-softmax and its gradient that is 10 bytes at the peak.")


def test_backward_of_columns_then_rows_adds_up_the_gradients_of_the_input():
    def calls():
        torch.manual_seed(0)
        mlp = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8)).cuda()
        parallelize_module(mlp, init_device_mesh("cuda", (2,)), {"0": ColwiseParallel(), "2": RowwiseParallel()})
        y = mlp(torch.ones(6, 8).cuda().requires_grad_())
        with Sent() as backward:
            y.sum().backward()
        return backward.calls, distributed.get_world_size()

    assert ranks(2)(calls)() == [(["all_reduce of 192 bytes"], 2)] * 2
    assert says("11", "Backward sends once as well")
