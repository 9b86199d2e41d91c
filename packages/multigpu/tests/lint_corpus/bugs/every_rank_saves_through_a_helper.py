import torch
import torch.multiprocessing as mp
from torch import distributed


def save_checkpoint(state, filename="checkpoint.pth.tar"):
    torch.save(state, filename)  # BUG FL020


def worker(rank, world_size, model, epochs):
    distributed.init_process_group("gloo", rank=rank, world_size=world_size)
    for epoch in range(epochs):
        train(model, epoch)
        save_checkpoint({"epoch": epoch, "model": model.state_dict()})


if __name__ == "__main__":
    mp.spawn(worker, args=(4, build(), 10), nprocs=4)
