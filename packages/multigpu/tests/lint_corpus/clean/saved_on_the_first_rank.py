import os

import torch
import torch.distributed as dist


def save(state, path):
    torch.save(state, path)


def save_quietly(state, path):
    if dist.get_rank() != 0:
        return
    torch.save(state, path)


def main(args, model, optimizer, epochs):
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    torch.cuda.set_device(rank)
    writes = rank == 0
    for epoch in range(epochs):
        train(model, epoch)
        if writes:
            torch.save(model.state_dict(), args.path)
        if rank == 0 and epoch % 10 == 0:
            save(model.state_dict(), args.path)
        save_quietly(model.state_dict(), args.path)
        mine = os.path.join(args.folder, f"optimizer_{rank}.pt")
        torch.save(optimizer.state_dict(), mine)
        dist.barrier()
