"""Train a net on handwritten digits with DistributedDataParallel. The argument, if any, is the file of its checkpoint.

torchrun --standalone --nproc-per-node 2 train_ddp.py digits.pt     # a process for each GPU; without GPUs, on the CPU
python train_ddp.py     # one process
"""

import os
import sys

import torch
from sklearn.datasets import load_digits
from torch import distributed, nn
from torch.utils.data import DataLoader, DistributedSampler, Subset, TensorDataset

EPOCHS, BATCH = 4, 64  # rows that all ranks together take in one step


def main(path="digits.pt"):
    if "RANK" not in os.environ:  # not started by torchrun: one rank, alone
        os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE="1", MASTER_ADDR="localhost", MASTER_PORT="0")
    device = torch.device(f"cuda:{os.environ['LOCAL_RANK']}" if torch.cuda.is_available() else "cpu")
    if device.type == "cuda":
        torch.cuda.set_device(device)  # before anything else touches a GPU
    distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
    rank, ranks = distributed.get_rank(), distributed.get_world_size()
    pixels, labels = (torch.from_numpy(array) for array in load_digits(return_X_y=True))
    rows = TensorDataset(pixels.float() / 16, labels)
    train, test = Subset(rows, range(1472)), Subset(rows, range(1472, len(rows)))
    sampler = DistributedSampler(train)
    batches = DataLoader(train, BATCH // ranks, sampler=sampler, drop_last=True)
    judged = DataLoader(Subset(test, range(rank, len(test), ranks)), 64)  # each row on one rank, and none twice

    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)).to(device)
    optimizer, begin = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9), 0
    if os.path.exists(path):  # every rank reads it, and puts it onto its own GPU
        kept = torch.load(path, map_location=device, weights_only=True)
        net.load_state_dict(kept["net"])
        optimizer.load_state_dict(kept["optimizer"])
        begin = kept["epoch"] + 1
    ddp = nn.parallel.DistributedDataParallel(net)

    for epoch in range(begin, EPOCHS):
        sampler.set_epoch(epoch)  # a new order, the same on all ranks
        for x, y in batches:
            optimizer.zero_grad()
            nn.functional.cross_entropy(ddp(x.to(device)), y.to(device)).backward()  # averages gradients over the ranks
            optimizer.step()
        with torch.no_grad():
            right = sum((net(x.to(device)).argmax(1) == y.to(device)).sum() for x, y in judged)
        distributed.all_reduce(right)  # on every rank, although one of them prints
        if rank == 0:
            print(f"epoch {epoch}: {right.item()} of {len(test)} right", flush=True)
            torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, path + ".new")
            os.replace(path + ".new", path)  # a run that is killed leaves the old file or the new one
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
