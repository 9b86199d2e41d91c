"""Numbers and statements in the prose of notebook 10 that no output shows, computed and run again."""

import torch
from told import says
from torch import distributed, nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.debug import CommDebugMode
from torch.nn.parallel import DistributedDataParallel

import vgpu
from course.kit.ranks import ranks
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
    assert says("10", "a step sends as much as DDP in float32 does, and no longer 1.5 times as much")


def whole_after_forward():
    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    fully_shard(net[0])
    fully_shard(net)
    net(torch.ones(2, 4, device="cuda"))
    return [isinstance(layer.weight, DTensor) for layer in net]


def test_what_is_whole_after_a_forward():
    with vgpu.virtual_gpus(2):
        assert ranks(2)(whole_after_forward)() == [[True, False]] * 2
    assert says("10", "After a forward without backward, the parameters of the outermost module are still whole")


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
    assert says("10", "`to_empty` also empties buffers") and says("10", "`reset_parameters` may leave them so")


def test_how_long_nccl_waits():
    assert distributed.distributed_c10d._get_default_timeout("nccl").total_seconds() == 600
    assert says("10", "NCCL by itself would wait for ten minutes")


def test_sixteen_bytes_for_every_weight():
    weights = 1000 * 1000
    assert fullest_rank([(1000, 1000)], 8) == 16 * weights // 8 + 8 * weights
    assert says("10", "What sharding divides is 16 bytes for every weight")
    assert says("10", "16 bytes for every weight are 16 GB. Under DDP each rank keeps them all")
    assert says("10", "4 GB more: 20 GB, or 16 GB with `gradient_as_bucket_view=True`")
    assert says("10", "Under `fully_shard` eight ranks keep 2 GB each")
