"""What may happen to a net in a step of training, besides training: moves, copies, hooks, saving, refusals.

Each event is a few lines of a program in which `net`, `run` (the net, spread over GPUs or not), `optimizer`,
`new_optimizer`, `spread`, `gpus`, `step`, `record`, `x` and `loss` stand for what they say.
"""

from __future__ import annotations

from typing import NamedTuple


class Event(NamedTuple):
    """Lines, and the piece that they are."""

    piece: str
    lines: str
    not_with: frozenset[str] = frozenset()  # pieces


_ON_TWO = frozenset(("model parallel",))
_LOW = frozenset(("autocast",))

# Once, before training.
HOOKS = (
    Event("forward hook", "net.{layer}.register_forward_hook(lambda module, given, out: 0.9 * out)"),
    Event("forward hook", "net.{layer}.register_forward_pre_hook(lambda module, given: (0.9 * given[0],))"),
    Event(
        "backward hook",
        "net.{layer}.register_full_backward_hook(\n"
        "    lambda module, to, come: tuple(None if g is None else 0.5 * g for g in to)\n)",
        _LOW,
    ),
    Event("backward hook", "net.{layer}.register_full_backward_pre_hook(lambda module, come: (0.5 * come[0],))", _LOW),
    Event(
        "parameter hook",
        "for p in net.parameters():\n    if p.requires_grad:\n        p.register_hook(lambda g: 0.5 * g)",
    ),
    Event(
        "accumulate hook",
        "def halve(p):\n    p.grad = 0.5 * p.grad\n\n"
        "for p in net.parameters():\n    if p.requires_grad:\n        p.register_post_accumulate_grad_hook(halve)",
    ),
    Event("shared weight", "net.again = net.{layer}", frozenset(("DataParallel",))),  # functional_call goes astray
    Event("frozen", "for p in net.{layer}.parameters():\n    p.requires_grad_(False)"),
)

# After the forward pass and before backward.
BETWEEN = (
    Event(
        "data moved with a graph",
        "for p in net.parameters():\n    home, p.data = p.device, p.data.cpu()\n    p.data = p.data.to(home)",
    ),
    Event("data moved with a graph", "net.cpu()\nnet.place(gpus)"),
    Event("data replaced with a graph", "for p in net.parameters():\n    p.data = p.data.clone()"),
    Event(
        "hook with a graph",
        "for p in net.parameters():\n    if p.requires_grad:\n        p.register_hook(lambda g: g.clamp(-0.01, 0.01))",
    ),
    Event("evaluated with a graph", "with torch.no_grad():\n    net.eval(), run(x), net.train()"),
    Event("zero_grad with a graph", "optimizer.zero_grad()"),
)

# After backward and before the optimizer's step.
GRADIENTS = (
    Event("gradient changed", "for p in net.parameters():\n    if p.grad is not None:\n        p.grad.mul_(0.5)"),
    Event("gradient changed", "for p in net.parameters():\n    if p.grad is not None:\n        p.grad.data.mul_(0.5)"),
    Event("gradient set", "for p in net.parameters():\n    if p.grad is not None:\n        p.grad = p.grad * 0.5"),
    Event(
        "gradient through the CPU",
        "for p in net.parameters():\n    if p.grad is not None:\n        p.grad = p.grad.cpu().mul(0.5).to(p.device)",
    ),
    Event("gradient dropped", "next(net.parameters()).grad = None"),
    Event(
        "gradients as a list",
        "torch._foreach_mul_([p.grad for p in net.parameters() if p.grad is not None], 0.5)",
    ),
    Event("clip", "record(f'{step} norm', nn.utils.clip_grad_norm_(net.parameters(), 0.1))"),
    Event("clip", "record(f'{step} norm', nn.utils.clip_grad_norm_(net.parameters(), 0.1, foreach=True))", _ON_TWO),
    Event("clip", "record(f'{step} norm', nn.utils.clip_grad_norm_(net.parameters(), 0.1, foreach=False))"),
    Event("clip", "nn.utils.clip_grad_value_(net.parameters(), 0.01)"),
)

_REFUSED = """w = next(net.parameters())
product = (w * w.detach().clone().requires_grad_()).sum()
with torch.no_grad():
    {change}
try:
    torch.autograd.grad(product, w, allow_unused=True)
    (2 * w).sum().backward() if w.requires_grad else None
    product.backward()
    record(f"{{step}} refused", False)
except RuntimeError:
    record(f"{{step}} refused", True)"""

# After the optimizer's step.
CHANGES = (
    Event("data in place", "for p in net.parameters():\n    p.data.mul_(0.9)"),
    Event("data replaced", "for p in net.parameters():\n    p.data = p.data * 0.9"),
    Event("data replaced", "for p in net.parameters():\n    p.data = torch.stack([p.data, p.data * 0.9])[1]"),
    Event(
        "data moved",
        "for p in net.parameters():\n    home, p.data = p.device, p.data.cpu()\n    p.data.mul_(0.9)\n"
        "    p.data = p.data.to(home)",
    ),
    Event("net moved", "net.cpu()\nnet.l0.requires_grad_(True)\nnet.place(gpus)"),
    Event("net moved", "net.to(gpus[1])\nnet.place(gpus)"),
    Event("set_", "with torch.no_grad():\n    for p in net.parameters():\n        p.set_(p.clone() * 0.9)"),
    Event(
        "set_",
        "with torch.no_grad():\n    for p in net.parameters():\n        both = torch.cat([p.flatten(), p.flatten()])\n"
        "        p.set_(both.untyped_storage(), p.numel(), p.shape, p.contiguous().stride())",
    ),
    Event(
        "vector",
        "with torch.no_grad():\n    flat = 0.9 * nn.utils.parameters_to_vector(net.parameters())\n"
        "    nn.utils.vector_to_parameters(flat, net.parameters())\n    flat.mul_(0.9)",
        _ON_TWO,
    ),
    Event(
        "copied from the CPU", "with torch.no_grad():\n    for p in net.parameters():\n        p.copy_(p.cpu() * 0.9)"
    ),
    Event(
        "lists",
        "with torch.no_grad():\n    ps = list(net.parameters())\n    torch._foreach_mul_(ps, 0.9)\n"
        "    torch._foreach_lerp_(ps, [p.clone() * 0.5 for p in ps], 0.1)",
    ),
    Event(
        "average",
        "with torch.no_grad():\n    for e, p in zip(average.parameters(), net.parameters()):\n"
        "        e.lerp_(p.to(e.device), 0.5)\n    for name, e in average.named_parameters():\n"
        "        record(f'{step} average {name}', e)",
    ),
    Event(
        "saved and loaded",
        "file = io.BytesIO()\ntorch.save({'net': net.state_dict(), 'optimizer': optimizer.state_dict()}, file)\n"
        "with torch.no_grad():\n    for p in net.parameters():\n        p.add_(1.0)\n"
        "optimizer = new_optimizer(net)\nfile.seek(0)\nloaded = torch.load(file, map_location={where})\n"
        "net.load_state_dict(loaded['net'])\noptimizer.load_state_dict(loaded['optimizer'])",
    ),
    Event(
        "loaded by assignment",
        "kept = {k: v.clone() for k, v in net.state_dict().items()}\nnet.load_state_dict(kept, assign=True)\n"
        "optimizer = new_optimizer(net)",
    ),
    Event("deep copy", "net = copy.deepcopy(net)\nrun, optimizer = spread(net), new_optimizer(net)"),
    Event(
        "deep copy",
        "other = copy.deepcopy(net)\nwith torch.no_grad():\n    for p in other.parameters():\n        p.mul_(0.5)",
    ),
    Event("frozen for a while", "first = next(net.parameters())\nfirst.requires_grad_(not first.requires_grad)"),
    Event("dtype changed", "net.float()\nnet.double()", _LOW),
    Event("refused", _REFUSED.format(change="torch._foreach_mul_([w], 1.0)")),
    Event("refused", _REFUSED.format(change="w.mul_(1.0)")),
    Event("refused", _REFUSED.format(change="w.view(-1)[:1].add_(0.0)")),
    Event("refused", _REFUSED.format(change="w.copy_(w.cpu())")),
    Event("refused", _REFUSED.format(change="torch._foreach_copy_([w], [w.clone()])")),
    Event("refused", _REFUSED.format(change="w.data.mul_(1.0)")),
)
