"""The layers that a net is drawn from, and what happens to activations between them.

A shape is "image" (rows, 4, 6, 6), "tokens" (rows, 5, 8) or "rows" (rows, 8).
"""

from __future__ import annotations

from dataclasses import dataclass

from differential.dice import Dice

WIDTHS = {"image": 4, "tokens": 8, "rows": 8}  # what the last or, of images, the second dimension has


@dataclass(frozen=True)
class Layer:
    """A module, and how it is called: `{m}` is the module, `{x}` what goes in."""

    piece: str
    module: str
    before: str  # shape
    after: str
    call: str = "{m}({x})"
    low: bool = True  # autocast treats it alike on the CPU and on GPUs
    twice: bool = True  # can be differentiated twice


LAYERS = (
    Layer("linear", "nn.Linear(8, 8)", "rows", "rows"),
    Layer("linear", "nn.Linear(8, 8, bias=False)", "tokens", "tokens"),
    Layer("linear", "nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))", "rows", "rows"),
    Layer("bilinear", "nn.Bilinear(8, 8, 8)", "rows", "rows", "{m}({x}, {x})", low=False),
    Layer("conv", "nn.Conv2d(4, 4, 3, padding=1)", "image", "image"),
    Layer("conv", "nn.Conv2d(4, 4, 3, padding=1, groups=2, bias=False)", "image", "image"),
    Layer("conv", "nn.ConvTranspose2d(4, 4, 3, padding=1)", "image", "image"),
    Layer("conv", "nn.Conv1d(5, 5, 3, padding=1)", "tokens", "tokens"),
    Layer("batch norm", "nn.BatchNorm2d(4)", "image", "image", "{m}({x}.to({m}.weight.dtype))"),
    Layer("batch norm", "nn.BatchNorm1d(8, momentum=None)", "rows", "rows", "{m}({x}.to({m}.weight.dtype))"),
    Layer("instance norm", "nn.InstanceNorm2d(4, affine=True)", "image", "image", low=False),
    Layer("group norm", "nn.GroupNorm(2, 4)", "image", "image", "{m}({x}.to({m}.weight.dtype))"),
    Layer("layer norm", "nn.LayerNorm(8)", "rows", "rows", "{m}({x}.to({m}.weight.dtype))"),
    Layer("layer norm", "nn.LayerNorm(8)", "tokens", "tokens", "{m}({x}.to({m}.weight.dtype))"),
    Layer("prelu", "nn.PReLU(4)", "image", "image", low=False),
    Layer("weight norm", "nn.utils.parametrizations.weight_norm(nn.Linear(8, 8))", "rows", "rows", low=False),
    Layer("attention", "nn.MultiheadAttention(8, 2, batch_first=True)", "tokens", "tokens",
          "{m}({x}, {x}, {x}, need_weights=False)[0]", low=False, twice=False),
    Layer("attention", "nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)", "tokens", "tokens",
          low=False, twice=False),
    Layer("sdpa", "nn.Linear(8, 24)", "tokens", "tokens", "attend({m}({x}))", twice=False),
    Layer("gru", "nn.GRU(8, 8, batch_first=True)", "tokens", "tokens", "{m}({x})[0]", low=False, twice=False),
    Layer("lstm", "nn.LSTM(8, 4, bidirectional=True, batch_first=True)", "tokens", "tokens", "{m}({x})[0]",
          low=False, twice=False),
    Layer("pool", "nn.MaxPool2d(3, 1, 1)", "image", "image"),
    Layer("flatten", "nn.Linear(144, 8)", "image", "rows", "{m}({x}.flatten(1))"),
    Layer("flatten", "nn.Linear(40, 8)", "tokens", "rows", "{m}({x}.reshape(len({x}), -1))"),
    Layer("mean over time", "nn.Linear(8, 8)", "tokens", "rows", "{m}({x}.mean(1))"),
    Layer("patches", "nn.Linear(18, 8)", "image", "tokens", "{m}({x}.reshape(len({x}), 8, 18))[:, 1:6]"),
    Layer("embedding bag", "nn.EmbeddingBag(9, 8, mode='sum')", "rows", "rows", "{x} + {m}(codes({x}))", twice=False),
)  # fmt: skip

# What happens to the activation x between two layers. No piece may change its shape.
BETWEEN = (
    ("activation", "x = x.relu()"),
    ("activation", "x = x.tanh()"),
    ("activation", "x = F.gelu(x)"),
    ("activation", "x = F.silu(x)"),
    ("in place", "x = (x * 1.5).relu_()"),
    ("in place", "x = F.relu(x * 0.5, inplace=True)"),
    ("in place", "x = x.clone()\nx[:, 0] *= 0.5"),
    ("in place", "x = x.clone()\nx[:, 1:3].zero_()"),
    ("in place", "x = x + 0.0\nx.add_(1.0).mul_(0.5)"),
    ("in place", "x = x.clone()\nx.select(1, 0).copy_(x.select(1, 1).detach())"),
    ("in place view", "x = x.clone().unsqueeze_(1).squeeze_(1)"),
    ("in place view", "x = x.clone().transpose_(1, -1).transpose_(1, -1)"),
    ("view", "x = x.transpose(1, -1).contiguous().transpose(1, -1)"),
    ("view", "x = torch.cat([x[:, 2:], x[:, :2]], 1)"),
    ("view", "x = x.flatten().view_as(x)"),
    ("view", "x = torch.stack(x.unbind(1), 1)"),
    ("view", "x = x.as_strided(x.shape, x.contiguous().stride()) if x.is_contiguous() else x"),
    ("view", "x = x + x[:, :1].expand_as(x)"),
    ("view", "x = torch.cat([y * k for k, y in enumerate(x.chunk(2), 1)])"),
    ("index", "x = x.index_select(0, torch.arange(len(x) - 1, -1, -1, device=x.device))"),
    ("index", "x = x[torch.randperm(len(x), generator=torch.Generator().manual_seed(3))]"),
    ("index", "x = torch.where(x > 0, x, 0.1 * x)"),
    ("index", "x = x.masked_fill(x > 1, 1.0)"),
    ("index", "x = torch.zeros_like(x).index_add(0, torch.arange(len(x), device=x.device) // 2, x)"),
    ("index", "x = x.sort(1)[0]"),
    ("index", "x = x.gather(1, x.argsort(1))"),
    ("detach", "x = x + x.detach().square()"),
    ("no grad inside", "with torch.no_grad():\n    scale = x.abs().amax()\nx = x / (1 + scale)"),
    ("tensor hook", "if x.requires_grad:\n    x.register_hook(lambda g: 0.5 * g)"),
    ("tensor hook", "if x.requires_grad:\n    x = x.clone()\n    x.register_hook(lambda g: g.clamp(-0.1, 0.1))"),
    ("function", "x = Scaled.apply(x)"),
    ("number on the CPU", "x = x * torch.tensor(0.7)"),
    ("to the CPU and back", "x = x.cpu().sin().to(x.device)"),
    ("to the CPU and back", "x = x.to('cpu', non_blocking=True).to(x.device)"),
    ("to the other GPU", "x = (2 * x.to(gpus[1])).to(x.device)"),
    ("saved on the CPU", "with torch.autograd.graph.save_on_cpu():\n    x = x * x.sigmoid()"),
    ("dtype", "x = (x.double() * 2).to(x.dtype)"),
    ("complex", "x = torch.view_as_real(torch.view_as_complex(torch.stack([x, x], -1)).conj() * 1j)[..., 0]"),
    ("linalg", "x = torch.einsum('n...,m...->nm', x, x).softmax(1).matmul(x.flatten(1)).view_as(x)"),
    ("number read", "x = x / (1 + x.detach().abs().sum().item())"),
)  # fmt: skip
# Their rules differ from the CPU's autocast to that of GPUs.
NOT_UNDER_AUTOCAST = {"complex", "linalg", "function", "detach", "number read", "dtype", "no grad inside"}

HELPERS = {
    "attend(": '''
def attend(qkv):
    """Scaled dot-product attention with two heads."""
    q, k, v = (t.unflatten(-1, (2, 4)).transpose(1, 2) for t in qkv.chunk(3, -1))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
''',
    "codes(": '''
def codes(x):
    """Two whole numbers below nine for each row, from its values."""
    return (x.detach()[:, :2] * 100).round().long() % 9
''',
    "Scaled.apply": '''
class Scaled(torch.autograd.Function):
    """x times one and its mean, which counts as a number in backward.

    The mean alone would be nothing but rounding where x comes from a layer norm.
    """

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * (1 + x.mean())

    @staticmethod
    def backward(ctx, grad):
        return grad * (1 + ctx.saved_tensors[0].mean())
''',
}


def chain(dice: Dice, start: str, length: int, low: bool) -> list[Layer]:
    """Layers, one fitting the other, that end in "rows"."""
    found: list[Layer] = []
    shape = start
    while len(found) < length or shape != "rows":
        more = len(found) < length
        fitting = [one for one in LAYERS if one.before == shape and (one.low or not low)]
        if not more:
            fitting = [one for one in fitting if one.after == "rows"]
        kinds = sorted({one.piece for one in fitting})
        kind = dice.choice(kinds)
        found.append(dice.choice([one for one in fitting if one.piece == kind]))
        shape = found[-1].after
    return found
