"""Train a net on handwritten digits whose layers are divided over the GPUs: tensor parallel, by PyTorch.

torchrun --standalone --nproc-per-node 2 train_tensor_parallel.py     # a process for each GPU; without GPUs, on the CPU
python train_tensor_parallel.py     # one process, which holds all weights
"""

import os

import torch
from sklearn.datasets import load_digits
from torch import distributed, nn
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

EPOCHS, BATCH = 4, 64


class Net(nn.Module):
    """An MLP with a shortcut. `up` is cut by columns and `down` by rows, so ReLU works on each GPU alone."""

    def __init__(self):
        super().__init__()
        self.up, self.down, self.last = nn.Linear(64, 256), nn.Linear(256, 64), nn.Linear(64, 10)

    def forward(self, x):
        return self.last(x + self.down(self.up(x).relu()))


def main():
    if "RANK" not in os.environ:  # not started by torchrun: one rank, alone
        os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE="1", MASTER_ADDR="localhost", MASTER_PORT="0")
    device = torch.device(f"cuda:{os.environ['LOCAL_RANK']}" if torch.cuda.is_available() else "cpu")
    if device.type == "cuda":
        torch.cuda.set_device(device)  # before anything else touches a GPU
    mesh = distributed.init_device_mesh(device.type, (int(os.environ["WORLD_SIZE"]),))  # joins the process group, too
    pixels, labels = (torch.from_numpy(array).to(device) for array in load_digits(return_X_y=True))
    rows = pixels.float() / 16
    torch.manual_seed(0)  # every rank makes the whole net, the same one, and keeps its part of it
    net = Net().to(device)
    parallelize_module(net, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, foreach=False)  # DTensors and plain tensors

    order = torch.Generator().manual_seed(0)  # every rank takes the same batches: layers are divided, rows are not
    for epoch in range(EPOCHS):
        for chosen in torch.randperm(1472, generator=order).to(device).split(BATCH):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(rows[chosen]), labels[chosen]).backward()
            optimizer.step()
        with torch.no_grad():
            right = (net(rows[1472:]).argmax(1) == labels[1472:]).sum().item()  # every rank takes part
        if mesh.get_rank() == 0:
            print(f"epoch {epoch}: {right} of {len(rows) - 1472} right", flush=True)
    if mesh.get_rank() == 0:
        held = sum(layer.weight.to_local().numel() for layer in (net.up, net.down))
        print(f"rank 0 holds {held} of {2 * 64 * 256} weights of the two large layers", flush=True)
    distributed.barrier()  # no rank leaves while another one is still at work
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
