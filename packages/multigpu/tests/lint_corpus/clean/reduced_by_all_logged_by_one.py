import torch
import torch.distributed as dist


def log(loss, writer, step):
    dist.all_reduce(loss)
    if dist.get_rank() == 0:
        writer.add_scalar("loss", loss / dist.get_world_size(), step)
    dist.barrier()


def send(value, rank):
    if rank == 0:
        box = [value]
        dist.broadcast_object_list(box, src=0)
    else:
        box = receive()
    return box[0]


def receive():
    box = [None]
    dist.broadcast_object_list(box, src=0)
    return box


def gathered(parts, rank, world_size):
    out = [None] * world_size if rank == 0 else None
    dist.gather_object(parts, out, dst=0)
    if rank != 0:
        return []
    return out
