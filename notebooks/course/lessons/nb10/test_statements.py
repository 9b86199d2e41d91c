"""Numbers and statements in the prose of notebook 10 that no output shows, computed and run again."""

from collections import Counter

import pytest
import torch
import torch.distributed.checkpoint as dcp
from told import says
from torch import distributed, nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.debug import CommDebugMode
from torch.nn.parallel import DistributedDataParallel

import vgpu
from course.kit.ranks import RanksFailed, ranks
from course.kit.sent import Sent
from course.lessons.nb10.puzzles.fullest_rank import fullest_rank


def sharded(layers, **options):
    net = nn.Sequential(*(nn.Linear(4, 4) for _ in range(4)))
    for layer in net if layers else ():
        fully_shard(layer, **options)
    return fully_shard(net)


def collectives(layers, options):
    """Gathers and reduce_scatters of a step."""
    net = sharded(layers, **options)
    with CommDebugMode() as calls:
        net(torch.ones(2, 4, device="cuda")).sum().backward()
    counts = {str(call): count for call, count in calls.get_comm_counts().items()}
    return [sum(count for call, count in counts.items() if kind in call) for kind in ("allgather", "reduce_scatter")]


def of_two_ranks(layers=True, **options):
    with vgpu.virtual_gpus(2):
        return ranks(2)(collectives)(layers, options)[0]


def hybrid():
    """Collectives of a step, the placement of a weight, and the largest message, on two machines of two GPUs."""
    mesh = init_device_mesh("cuda", (2, 2), mesh_dim_names=("machine", "gpu"))
    net = nn.Sequential(*(nn.Linear(4, 4, bias=False) for _ in range(4)))
    for module in (*net, net):
        fully_shard(module, mesh=mesh)
    with Sent() as sent:
        net(torch.ones(2, 4, device="cuda")).sum().backward()
    return Counter(sent.calls), str(net[0].weight.placements)


def test_what_hybrid_sharding_sends():
    with vgpu.virtual_gpus(4):
        calls, placements = ranks(4)(hybrid)()[0]
    whole = 4 * 4 * 4  # bytes of a weight
    assert calls == {
        f"all_gather of {whole} bytes": 8,
        f"reduce_scatter of {whole} bytes": 4,
        f"all_reduce of {whole // 2} bytes": 4,  # of what a GPU of the machine has, here a half
    }
    assert placements == "(Replicate(), Shard(dim=0))" and says("10", "a weight is `[Replicate(), Shard(0)]`")
    assert says("10", "between machines an `all_reduce` sends a quarter of each gradient")


def frozen():
    """Collectives of a step when one of two layers is frozen, and which weights have a gradient then."""
    net = nn.Sequential(nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False))
    net[0].weight.requires_grad_(False)
    for module in (*net, net):
        fully_shard(module)
    with Sent() as sent:
        net(torch.ones(2, 4, device="cuda", requires_grad=True)).sum().backward()
    calls = Counter(call.partition(" ")[0] for call in sent.calls)
    return calls, [layer.weight.grad is not None for layer in net]


def test_a_frozen_weight_is_gathered_all_the_same():
    with vgpu.virtual_gpus(2):
        assert ranks(2)(frozen)()[0] == ({"all_gather": 4, "reduce_scatter": 1}, [False, True])
    assert says("10", "A *frozen* weight, as under LoRA, takes 4 of them, and is gathered all the same")


class Heads(nn.ModuleList):
    def forward(self, x, objects):
        loss = self[0](x).sum()
        return loss + self[1](x[:objects]).sum() if objects or self.always else loss


def skips(always):
    """Rank 1 has no object in step 2."""
    net = Heads([nn.Linear(4, 2), nn.Linear(4, 4)])
    net.always = always
    for module in (*net, net):
        fully_shard(module)
    for step in (1, 2, 3):
        net(torch.ones(2, 4, device="cuda"), 0 if (distributed.get_rank(), step) == (1, 2) else 2).backward()
    return step


def test_a_rank_that_leaves_a_layer_out_is_apart_from_the_others():
    assert says("10", "rank 0 waits in the gather of this head")
    with vgpu.virtual_gpus(2):
        assert ranks(2)(skips)(True) == [3, 3]
        with pytest.raises(RanksFailed, match="do not call the same collective"):
            ranks(2)(skips)(False)


def scatters(sync):
    """How many reduce_scatters two batches call, and what shape the gradients have after the first."""
    net = sharded(True)
    with Sent() as sent:
        for batch in (0, 1):
            net.set_requires_gradient_sync(sync or batch == 1)
            net(torch.ones(2, 4, device="cuda")).sum().backward()
    return sum("reduce_scatter" in call for call in sent.calls), net[0].weight.grad.full_tensor().cpu()


def test_accumulation_without_sync_sends_once():
    assert says("10", "saves the `reduce_scatter` of all batches but the last")
    with vgpu.virtual_gpus(2):
        (often, first), (once, second) = (ranks(2)(scatters)(sync)[0] for sync in (True, False))
    assert (often, once) == (8, 4)
    torch.testing.assert_close(first, second)


def norms():
    net, own = sharded(True), torch.Generator().manual_seed(distributed.get_rank())
    net(torch.randn(8, 4, generator=own).cuda()).square().sum().backward()
    mine = torch.stack([weight.grad.to_local().norm() for weight in net.parameters()]).norm()
    return mine.item(), nn.utils.clip_grad_norm_(net.parameters(), 1.0).full_tensor().item()


def test_norms_of_parts_differ_and_the_norm_of_all_does_not():
    assert says("10", "a loop of your own over `to_local()` computes a different norm on each rank")
    with vgpu.virtual_gpus(2):
        (mine, all_of_them), (other, again) = ranks(2)(norms)()
    assert mine != other and max(mine, other) < all_of_them == again


def blank_net():
    with torch.device("meta"):
        net = nn.Sequential(nn.Linear(10, 10), nn.Linear(10, 10))
    for module in (*net, net):
        fully_shard(module)
    return net.to_empty(device="cuda")


def saves(folder):
    net = blank_net()
    for layer in net:
        layer.reset_parameters()
    adam = torch.optim.AdamW(net.parameters())
    net(torch.ones(2, 10, device="cuda")).square().mean().backward()
    adam.step()
    model, optimizer = get_state_dict(net, adam)
    dcp.save({"model": model, "optimizer": optimizer}, checkpoint_id=folder)
    return what_a_rank_has(net, adam)


def loads(folder):
    net = blank_net()
    adam = torch.optim.AdamW(net.parameters())
    model, optimizer = get_state_dict(net, adam)  # first makes a state of the right shapes, for dcp.load to fill
    dcp.load({"model": model, "optimizer": optimizer}, checkpoint_id=folder)
    set_state_dict(net, adam, model_state_dict=model, optim_state_dict=optimizer)
    return what_a_rank_has(net, adam)


def what_a_rank_has(net, adam):
    """Its rows of the first weight, the whole weight, and AdamW's first moment of it."""
    first = net[0].weight
    return len(first.to_local()), first.full_tensor().detach().cpu(), adam.state[first]["exp_avg"].full_tensor().cpu()


def test_a_checkpoint_of_four_ranks_is_read_by_two(tmp_path):
    assert says("10", "and a different number of ranks can read them")
    with vgpu.virtual_gpus(4):
        saved, loaded = ranks(4)(saves)(tmp_path), ranks(2)(loads)(tmp_path)
    assert [rows for rows, *_ in saved] == [3, 3, 3, 1] and [rows for rows, *_ in loaded] == [5, 5]
    assert all(weight.equal(saved[0][1]) and moment.equal(saved[0][2]) for _, weight, moment in loaded)


def test_what_each_plan_sends():
    assert of_two_ranks() == [8, 4]  # an all_reduce is a gather and a reduce_scatter: 4 of each would be DDP's
    assert of_two_ranks(reshard_after_forward=False) == [4, 4]
    assert of_two_ranks(layers=False) == [1, 1]
    assert says("10", "FSDP sends half as much again") and says("10", "it sends as much as DDP, and needs more memory")
    assert says("10", "so all layers are one group")


def bytes_of_a_step(dtype):
    """Under fully_shard with gathers in `dtype` and sums in float32, and under DDP in float32."""
    policy = MixedPrecisionPolicy(param_dtype=dtype, reduce_dtype=torch.float32)
    nets, sent = [sharded(True, mp_policy=policy), DistributedDataParallel(nn.Linear(4, 4).cuda())], []
    for net in nets:
        with Sent() as found:
            net(torch.ones(2, 4, device="cuda")).float().sum().backward()
        sent.append(found.bytes_of_each_gpu(2))
    return sent[0] / (4 * sent[1])  # four layers against one


def test_what_mixed_precision_sends():
    with vgpu.virtual_gpus(2):
        for dtype, ratio in ((torch.float32, 1.5), (torch.bfloat16, 1.0)):
            assert ranks(2)(bytes_of_a_step)(dtype) == [ratio, ratio]
    assert says("10", "As much, 1.0 times: a gather costs half, so (0.5 + 0.5 + 1) / 2.")


def whole_after_forward():
    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    fully_shard(net[0])
    fully_shard(net)
    net(torch.ones(2, 4, device="cuda"))
    return [isinstance(layer.weight, DTensor) for layer in net]


def test_what_is_whole_after_a_forward():
    with vgpu.virtual_gpus(2):
        assert ranks(2)(whole_after_forward)() == [[True, False]] * 2
    assert says("10", "whose parameters stay whole after a forward without backward")


def test_an_emptied_buffer_stays_empty():
    norm = nn.Linear(2, 2)
    norm.register_buffer("positions", torch.arange(4.0))
    torch.use_deterministic_algorithms(True)  # fills what is empty with NaN
    try:
        norm.to("meta").to_empty(device="cpu")
    finally:
        torch.use_deterministic_algorithms(False)
    norm.reset_parameters()
    assert norm.positions.isnan().all() and not norm.weight.isnan().any()
    assert says("10", "`to_empty` also empties buffers")


def test_sixteen_bytes_for_every_weight():
    weights = 1000 * 1000
    assert fullest_rank([(1000, 1000)], 8) == 16 * weights // 8 + 8 * weights
    assert says("10", "What sharding divides is 16 bytes for every weight")
    assert says("10", "16 bytes for every weight are 16 GB. Under DDP each rank keeps them all")
    assert says("10", "4 GB more: 20 GB, or 16 GB with `gradient_as_bucket_view=True`")
    assert says("10", "Under `fully_shard` eight ranks keep 2 GB each")
