import torch
import torch.distributed as dist


class Ring:
    def __init__(self):
        dist.init_process_group("nccl")
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        torch.cuda.set_device(self.rank % torch.cuda.device_count())
        self.group = self._some([0, 1])

    def _some(self, ranks):
        if self.rank in ranks:
            return dist.new_group(ranks)  # BUG FL017

    def pass_on(self, x):
        after = (self.rank + 1) % self.size
        got = torch.empty_like(x)
        dist.send(x, after)  # BUG FL036
        dist.recv(got, (self.rank - 1) % self.size)
        return got

    def count(self, seen):
        told = torch.tensor([float(seen)])  # BUG FL037
        dist.all_reduce(told)
        return told.item()

    def save(self, step):
        if self.rank == 0:
            self._write(step)  # BUG FL017

    def _write(self, step):
        print("saved", step)
        dist.barrier()
