import torch
import torch.multiprocessing as mp


def run(rank, world_size):
    torch.cuda.set_device(rank)
    torch.distributed.init_process_group("nccl", rank=rank, world_size=world_size)
    device = torch.device("cuda", rank)
    model = torch.nn.Linear(2, 2).to(device)
    model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank])
    model(torch.ones(1, 2, device=device)).sum().backward()


if __name__ == "__main__":
    mp.spawn(run, args=(torch.cuda.device_count(),), nprocs=torch.cuda.device_count())
