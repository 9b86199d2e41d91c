from torch import nn


class Extractor(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body = body
        self.taken = []
        self.body.layer4.register_forward_hook(lambda module, inputs, out: self.taken.append(out))  # BUG FL008

    def forward(self, x):
        return self.body(x)
