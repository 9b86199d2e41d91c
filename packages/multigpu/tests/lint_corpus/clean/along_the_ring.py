import torch
import torch.distributed as dist


class Ring:
    def __init__(self):
        dist.init_process_group("nccl")
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        torch.cuda.set_device(self.rank % torch.cuda.device_count())
        self.group = self._some([0, 1])

    def _some(self, ranks):
        group = dist.new_group(ranks)
        if self.rank in ranks:
            return group
        return None

    def _own(self, ranks):
        if self.rank in ranks:
            return dist.new_group(ranks, use_local_synchronization=True)
        return None

    def pass_on(self, x):
        after, before = (self.rank + 1) % self.size, (self.rank - 1) % self.size
        got = torch.empty_like(x)
        if self.rank % 2 == 0:
            dist.send(x, after)
            dist.recv(got, before)
        else:
            dist.recv(got, before)
            dist.send(x, after)
        return got

    def next_stage(self, x):
        got = torch.empty_like(x)
        if self.rank > 0:
            dist.recv(got, self.rank - 1)
        dist.send(x + got, (self.rank + 1) % self.size)

    def count(self, seen):
        told = torch.tensor([float(seen)], device="cuda")
        dist.all_reduce(told)
        later = torch.zeros(1)
        later = later.cuda()
        dist.all_reduce(later)
        return told.item() + later.item()

    def save(self, step):
        if self.rank == 0:
            print("saved", step)
        self._write(step)

    def _write(self, step):
        dist.barrier()
