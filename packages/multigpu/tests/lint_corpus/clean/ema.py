import torch


class EMA:
    def __init__(self, model, decay):
        self.decay = decay
        self.shadow = {name: p.detach().clone() for name, p in model.named_parameters()}

    @torch.no_grad()
    def update(self, model):
        for name, p in model.named_parameters():
            self.shadow[name].lerp_(p, 1 - self.decay)

    def apply(self, model):
        self.backup = {name: p.data for name, p in model.named_parameters()}
        for name, p in model.named_parameters():
            p.data = self.shadow[name]
