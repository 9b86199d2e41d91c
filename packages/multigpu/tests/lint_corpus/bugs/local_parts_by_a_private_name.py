import torch
from torch.distributed.fsdp import fully_shard


@torch.no_grad()
def newton_schulz(g, steps):
    x = g / g.norm()
    for _ in range(steps):
        a = x @ x.mT
        x = 3.4 * x - 4.7 * a @ x + 2.0 * a @ a @ x
    return x


class Shampooish(torch.optim.Optimizer):
    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                g = p.grad._local_tensor
                p._local_tensor.sub_(newton_schulz(g, 5), alpha=group["lr"])  # BUG FL027


fully_shard(model)
opt = Shampooish(model.parameters(), 0.1)
