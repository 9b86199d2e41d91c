import os

import torch
import torch.distributed as dist


def main(args, model, loader, epochs):
    dist.init_process_group("nccl")
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    model = torch.nn.parallel.DistributedDataParallel(model.to(rank), device_ids=[rank])
    best = 0.0
    for epoch in range(epochs):
        accuracy = run(model, loader)
        if accuracy > best:
            best = accuracy
            torch.save(model.module.state_dict(), os.path.join(args.output_dir, "best.pth"))  # BUG FL020
        if rank == 0:
            print(epoch, accuracy)
