import torch.distributed as dist


def norm(total, rank, tp_rank, dp_group):
    if tp_rank == 0:
        dist.all_reduce(total, group=dp_group)
    if rank == 0:
        dist.all_reduce(total, dist.ReduceOp.SUM, dp_group)
    if rank == 0 or dist.get_world_size() > 1:
        dist.barrier()
    return total
