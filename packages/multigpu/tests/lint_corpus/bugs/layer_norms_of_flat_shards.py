import torch
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


class Lamb(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, wd=0.01):
        super().__init__(params, dict(lr=lr, wd=wd))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                update = p.grad + group["wd"] * p
                w_norm = p.norm()  # BUG FL027
                u_norm = update.norm()  # BUG FL027
                trust = torch.where(u_norm > 0, w_norm / u_norm, torch.ones_like(u_norm))
                p.add_(update * trust, alpha=-group["lr"])


model = FSDP(build_model().cuda(), use_orig_params=True)
optimizer = Lamb(model.parameters(), lr=3e-3)
