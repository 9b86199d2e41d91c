import torch


def load(args, fetch):
    if args.local_rank not in [-1, 0]:
        torch.distributed.barrier()
    data = fetch(args.data_dir)
    if args.local_rank == 0:
        torch.distributed.barrier()
    return data


def first(rank, fetch):
    if rank == 0:
        data = fetch()
        torch.distributed.barrier()
    else:
        torch.distributed.barrier()
        data = fetch()
    return data
