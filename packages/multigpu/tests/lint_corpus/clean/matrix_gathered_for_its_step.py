import torch
from torch.distributed.fsdp import fully_shard


def zeropower(G, steps=5):
    X = G.bfloat16()
    X = X / (X.norm() + 1e-7)
    for _ in range(steps):
        A = X @ X.T
        X = 3.4 * X + (-4.7 * A + 2.0 * A @ A) @ X
    return X


class Muon(torch.optim.Optimizer):
    def __init__(self, params, lr=0.02):
        super().__init__(params, dict(lr=lr))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                full = p.grad.full_tensor()
                update = zeropower(full)
                p.add_(
                    torch.distributed.tensor.distribute_tensor(update, p.device_mesh, p.placements), alpha=-group["lr"]
                )


model = torch.nn.Linear(8, 8).cuda()
fully_shard(model)
opt = Muon(model.parameters())
