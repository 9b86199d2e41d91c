"""Train a net on handwritten digits, divided over the ranks (FSDP2). Arguments, if any: folder of checkpoints, epochs.

torchrun --standalone --nproc-per-node 2 train_fsdp2.py run 4     # a process for each GPU; without GPUs, on the CPU
python train_fsdp2.py     # one process
"""

import os
import sys
from pathlib import Path

import torch
import torch.distributed.checkpoint as dcp
from sklearn.datasets import load_digits
from torch import distributed, nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.fsdp import fully_shard


def main(folder="run", epochs=4):
    if "RANK" not in os.environ:  # not started by torchrun: one rank, alone
        os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE="1", MASTER_ADDR="localhost", MASTER_PORT="0")
    device = torch.device(f"cuda:{os.environ['LOCAL_RANK']}" if torch.cuda.is_available() else "cpu")
    if device.type == "cuda":
        torch.cuda.set_device(device)  # before anything else touches a GPU
    mesh = distributed.init_device_mesh(device.type, (int(os.environ["WORLD_SIZE"]),))  # joins the process group, too
    rank, ranks = distributed.get_rank(), distributed.get_world_size()
    pixels, labels = (torch.from_numpy(array) for array in load_digits(return_X_y=True))
    x, y = (pixels.float() / 16).to(device), labels.to(device)

    torch.manual_seed(0)  # all ranks make the same net; a net that fits nowhere is made on the device "meta"
    net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))
    for module in (*net[::2], net):  # from the inside out
        fully_shard(module, mesh=mesh)
    adam = torch.optim.AdamW(net.parameters())  # after fully_shard, which puts new parameters into the net
    saved = sorted(Path(folder).glob("epoch-*/.metadata"))  # written last, so the others are whole
    if saved:
        model, optimizer = get_state_dict(net, adam)
        dcp.load({"model": model, "optimizer": optimizer}, checkpoint_id=saved[-1].parent)
        set_state_dict(net, adam, model_state_dict=model, optim_state_dict=optimizer)

    for epoch in range(int(saved[-1].parent.name[6:]) + 1 if saved else 0, int(epochs)):
        order = torch.randperm(1472, generator=torch.Generator().manual_seed(epoch))
        for rows in order.split(64):
            mine = rows[rank::ranks]  # maybe a row more than on other ranks: backward averages ranks, so take sums
            adam.zero_grad()
            nn.functional.cross_entropy(net(x[mine]), y[mine], reduction="sum").mul(ranks / len(rows)).backward()
            norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0).full_tensor()  # of all parts, on all ranks
            adam.step()
        with torch.no_grad():  # each forward gathers weights, so all ranks call it, each with rows of its own
            right = (net(x[1472 + rank :: ranks]).argmax(1) == y[1472 + rank :: ranks]).sum()
        distributed.all_reduce(right)
        if rank == 0:
            print(f"epoch {epoch}: gradient norm {norm.item():.3f}, {right.item()} of 325 right", flush=True)
        model, optimizer = get_state_dict(net, adam)
        dcp.save({"model": model, "optimizer": optimizer}, checkpoint_id=f"{folder}/epoch-{epoch:03}")
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
