"""The training of a program: hooks before it, three steps, and what happens to the net in one of them."""

from __future__ import annotations

from differential import events
from differential.dice import Dice
from differential.nets import Net
from differential.program import block

# The others divide by the size of a gradient. That of a bias before batch norm is zero but for rounding, and with
# PyTorch's `eps` of 1e-8 or 1e-10 the steps that it makes would differ by more than rounding does.
OPTIMIZERS = (
    "torch.optim.SGD(net.parameters(), lr=0.05{more})",
    "torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.01{more})",
    "torch.optim.Adam(net.parameters(), lr=0.01, eps=1e-6{more})",
    "torch.optim.AdamW(net.parameters(), lr=0.01, eps=1e-6, amsgrad=True{more})",
    "torch.optim.RMSprop(net.parameters(), lr=0.01, eps=1e-6, centered=True{more})",
    "torch.optim.Adagrad(net.parameters(), lr=0.01, eps=1e-6{more})",
    "torch.optim.NAdam(net.parameters(), lr=0.01, eps=1e-6{more})",
    "torch.optim.Adadelta(net.parameters(){more})",
    "torch.optim.Adamax(net.parameters(), lr=0.01, eps=1e-6{more})",
    "torch.optim.RAdam(net.parameters(), lr=0.01, eps=1e-6{more})",
)
FUSED = (".SGD", ".Adam(", ".AdamW", ".Adagrad")
LOSSES = (
    "out.to(DTYPE).square().mean()",
    "F.cross_entropy(out.to(DTYPE), (batch.flatten(1)[:, 0] > 0).long().to(out.device))",
    "F.mse_loss(out.to(DTYPE), target.to(out.device))",
    "F.smooth_l1_loss(out.to(DTYPE), target.to(out.device), reduction='sum') / 50",
    "-F.logsigmoid(out.to(DTYPE)).mean() + 0.1 * out.to(DTYPE).logsumexp(1).mean()",
)
_SHAPES = {"image": "4, 6, 6", "tokens": "5, 8", "rows": "8"}


def draw_training(dice: Dice, net: Net, seed: int) -> str:
    """The function `program(gpus, record)`."""
    setup = ["kind = gpus[0].type", f"torch.manual_seed({seed})", "net = Net().to(DTYPE).place(gpus)"]
    while net.plain and dice.again(0.25):
        setup.append(dice.event(events.HOOKS).format(layer=dice.choice(net.plain)))
    changes = _changes(dice)
    if "average" in dice.pieces:
        setup.append("average = copy.deepcopy(net)")
    if net.low and dice.chance(0.4, "GradScaler"):
        setup.append("scaler = torch.amp.GradScaler(kind, init_scale=64.0, growth_interval=2)")
    both = "lambda net: nn.DataParallel(net, [0, 1]) if kind == 'cuda' else Halves(net)"
    setup += [
        f"spread = {both if 'DataParallel' in dice.pieces else 'lambda net: net'}",
        f"new_optimizer = lambda net: {_optimizer(dice, net)}",
        "run, optimizer = spread(net), new_optimizer(net)",
    ]
    step = [*_batch(dice, net), *_gradients(dice, net), *_update(dice), "note(record, step, net, optimizer)", *changes]
    lines = [*setup, "for step in range(3):", block(step, 1), "note(record, 'end', net, optimizer)"]
    return f"def program(gpus, record):\n{block(lines, 1)}"


def _optimizer(dice: Dice, net: Net) -> str:
    # Of a gradient that is zero but for the rounding of bfloat16, all optimizers but SGD would make a large step.
    chosen = dice.choice(OPTIMIZERS[:2] if net.low else OPTIMIZERS)
    ways = ["", "", ", foreach=True", ", foreach=False"]
    if any(name in chosen for name in FUSED):
        ways.append(", fused=True")
    more = dice.choice(ways)
    dice.pieces.add(f"optimizer{more}")
    return chosen.format(more=more)


def _batch(dice: Dice, net: Net) -> list[str]:
    rows = dice.choice((8, 8, 6, 7, 5))
    lines = [
        "torch.manual_seed(1000 + step)",
        f"batch = torch.randn({rows}, {_SHAPES[net.start]}, dtype=DTYPE)",
        f"target = torch.randn({rows}, 8, dtype=DTYPE)",
        f"x = batch.to(gpus[{net.first}])",
    ]
    if dice.chance(0.25, "gradient of the input"):
        lines.append("x.requires_grad_()")
    return [*lines, dice.choice(("optimizer.zero_grad()", "optimizer.zero_grad(set_to_none=False)", "net.zero_grad()"))]


def _gradients(dice: Dice, net: Net) -> list[str]:
    """Forward and backward, once or twice."""
    lines = _forward(dice, net)
    if net.low:
        lines = ["with torch.autocast(kind, torch.bfloat16):", block(lines, 1)]
    lines.append(f"loss = {dice.choice(LOSSES)}")
    if net.twice(dice.pieces) and dice.chance(0.2, "gradient penalty"):
        lines += [
            "ps = [p for p in net.parameters() if p.requires_grad]",
            "found = torch.autograd.grad(loss, ps, create_graph=True, allow_unused=True)",
            "loss = loss + sum(g.square().sum().to(loss.device) for g in found if g is not None)",
        ]
    if dice.again(0.3):
        lines.append(dice.event(events.BETWEEN))
    total = "scaler.scale(loss)" if "GradScaler" in dice.pieces else "loss"
    if dice.chance(0.1, "backward twice"):
        lines.append(f"{total}.backward(retain_graph=True)")
    lines += [f"{total}.backward()", "record(f'{step} loss', loss)"]
    return ["for _ in range(2):", block(lines, 1)] if dice.chance(0.2, "accumulation") else lines


def _forward(dice: Dice, net: Net) -> list[str]:
    """The forward pass, perhaps after one that evaluates."""
    seeded = ["torch.manual_seed(100 + step)"] if net.drops else []
    lines: list[str] = []
    if dice.chance(0.3, "evaluated before"):
        # nn.DataParallel's threads are not in inference mode, so its replicas' buffers could not change.
        mode = "no_grad" if "DataParallel" in dice.pieces else dice.choice(("no_grad", "inference_mode"))
        dice.pieces.add(mode)
        lines = [f"with torch.{mode}():", block([*seeded, "record(f'{step} evaluated', run(x))"], 1)]
        if dice.chance(0.4, "eval"):
            lines = ["net.eval()", *lines, "net.train()"]
    return [*lines, *seeded, "out = run(x)"]


def _update(dice: Dice) -> list[str]:
    """What happens to gradients, and the optimizer's step."""
    lines = [dice.event(events.GRADIENTS) for _ in range(dice.choice((0, 0, 1, 2)))]
    if "GradScaler" in dice.pieces:
        lines = ["scaler.unscale_(optimizer)", *lines] if lines else []
        lines += ["scaler.step(optimizer)", "scaler.update()", "record(f'{step} scale', scaler.get_scale())"]
    else:
        lines.append("optimizer.step()")
    if "gradient of the input" in dice.pieces:
        lines.append("record(f'{step} x.grad', x.grad)")
    return lines


def _changes(dice: Dice) -> list[str]:
    """What happens to the net after one of the steps."""
    lines = [dice.event(events.CHANGES) for _ in range(dice.choice((0, 1, 1, 2)))]
    where = dice.choice(("None", "'cpu'", "gpus[1]"))
    lines = [line.replace("{where}", where) for line in lines]
    return [f"if step == {dice.number(0, 2)}:", block(lines, 1)] if lines else []
