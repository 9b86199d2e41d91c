"""A small network in PaddlePaddle, its weights and one of its outputs: `python make.py`, with paddlepaddle 3.3.1.

Writes, beside this file, `dynamic.pdparams` (names of the layers), `static.pdparams` (names of a static graph, as
`fluid.io.load_program_state` gives them) and `output.npz` (an input `x` and what Paddle makes of it, `y`).
"""

import argparse
from pathlib import Path

import numpy as np
import paddle
from paddle import nn

HERE = Path(__file__).resolve().parent


class Backbone(nn.Layer):
    """A convolution without bias and one with, BatchNorm and PReLU."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2D(1, 4, 3, padding=1, bias_attr=False), nn.BatchNorm2D(4), nn.ReLU())
        self.conv = nn.Conv2D(4, 6, 3, stride=2)
        self.act = nn.PReLU(6)

    def forward(self, x):
        return self.act(self.conv(self.stem(x))).mean([2, 3])


class Net(nn.Layer):
    """`hidden` is square, so that a forgotten transpose fits; `aux_fc` serves training alone."""

    def __init__(self):
        super().__init__()
        self.backbone = Backbone()
        self.hidden = nn.Linear(6, 6)
        self.norm = nn.LayerNorm(6)
        self.fc = nn.Linear(6, 10)
        self.aux_fc = nn.Linear(6, 2)

    def forward(self, x):
        return self.fc(self.norm(self.hidden(self.backbone(x))))


def main():
    """Draw weights, none of them 0 or 1, run the network, save."""
    argparse.ArgumentParser(description=__doc__.partition("\n")[0]).parse_args()
    random = np.random.RandomState(0)
    net = Net()
    net.eval()
    for name, tensor in net.state_dict().items():
        values = 0.5 + random.rand(*tensor.shape) if "_variance" in name else random.randn(*tensor.shape)
        tensor.set_value(values.astype("float32"))
    x = random.randn(3, 1, 9, 9).astype("float32")
    np.savez(HERE / "output.npz", x=x, y=net(paddle.to_tensor(x)).numpy())
    paddle.save(net.state_dict(), str(HERE / "dynamic.pdparams"))
    paddle.save({tensor.name: tensor.numpy() for tensor in net.state_dict().values()}, str(HERE / "static.pdparams"))


if __name__ == "__main__":
    main()
