"""The net of a program: layers on one GPU or two, and what happens between them."""

from __future__ import annotations

from dataclasses import dataclass

from differential.dice import Dice
from differential.layers import BETWEEN, NOT_UNDER_AUTOCAST, WIDTHS, Layer, chain
from differential.program import block

# Only the first draw after a seed is the CPU's: these draw before a dropout might, or at the same time.
_DRAWS = {"attention", "sdpa", "gru", "lstm", "DataParallel"}
_OTHER_CALLS = {"bilinear", "attention", "gru", "lstm"}  # take or give more than one tensor
_ONCE = {"checkpoint", "autocast", "function", "in place", "DataParallel", "tensor hook", "saved on the CPU"}


@dataclass
class Net:
    """What the rest of a program must know of its net."""

    text: str
    start: str  # shape of the input
    first: int  # the GPU of the first layer
    layers: list[Layer]
    drops: bool
    low: bool  # computes in bfloat16, under autocast

    @property
    def plain(self) -> list[str]:
        """Names of the layers that take one tensor and give one."""
        found = enumerate(self.layers)
        return [f"l{k}" for k, one in found if one.call.startswith("{m}({x}") and one.piece not in _OTHER_CALLS]

    def twice(self, pieces: set[str]) -> bool:
        """Whether it can be differentiated twice."""
        return all(layer.twice for layer in self.layers) and not pieces & _ONCE


def draw_net(dice: Dice) -> Net:
    """A class `Net`, and whether it is spread over GPUs: "one GPU", "model parallel" or "DataParallel"."""
    low = dice.chance(0.2, "autocast")
    start = dice.choice(list(WIDTHS))
    layers = chain(dice, start, dice.number(1, 4), low)
    dice.pieces |= {one.piece for one in layers}
    # In nn.DataParallel's threads autocast has its default, float16, whatever the caller chose.
    spread = dice.choice(("one GPU", "one GPU", "model parallel", *([] if low else ["DataParallel"])))
    dice.pieces.add(spread)
    where = [0] * len(layers)
    if spread == "model parallel":
        where = sorted(dice.choice((0, 1)) for _ in layers)
    elif spread == "one GPU" and dice.chance(0.3, "the second GPU"):
        where = [1] * len(layers)
    forward: list[str] = []
    for k, layer in enumerate(layers):
        if spread == "model parallel":
            forward.append(f"x = x.to(gpus[{where[k]}])")
        forward.append(_call(dice, k, layer, {one.piece for one in layers} | {spread}))
        while dice.again(0.45):
            forward.append(_between(dice, low))
    return Net(_text(layers, where, forward), start, where[0], layers, "dropout" in dice.pieces, low)


def _call(dice: Dice, k: int, layer: Layer, fixed: set[str]) -> str:
    call = layer.call.format(m=f"self.l{k}", x="x")
    drops = not fixed & _DRAWS and "dropout" not in dice.pieces and dice.chance(0.25, "dropout")
    if drops:
        call = f"F.dropout({call}, 0.3, self.training)"
    parallel = "DataParallel" in fixed
    # With nn.DataParallel a checkpoint's backward would find the reference without the halves that it had in forward.
    if not (parallel and layer.piece == "batch norm") and dice.chance(0.5 if drops else 0.25, "checkpoint"):
        reentrant = k > 0 and not parallel and dice.chance(0.4, "reentrant checkpoint")
        return f"x = checkpoint(lambda x: {call}, x, use_reentrant={reentrant})"
    return f"x = {call}"


def _between(dice: Dice, low: bool) -> str:
    piece, line = dice.choice([one for one in BETWEEN if not (low and one[0] in NOT_UNDER_AUTOCAST)])
    dice.pieces.add(piece)
    return line


def _text(layers: list[Layer], where: list[int], forward: list[str]) -> str:
    init = [f"self.l{k} = {layer.module}" for k, layer in enumerate(layers)]
    place = [f"self.l{k}.to(gpus[{gpu}])" for k, gpu in enumerate(where)]
    methods = [
        block(["def __init__(self):", block(["super().__init__()", *init], 1)], 1),
        block(["def place(self, gpus):", block(["self.gpus = gpus", *place, "return self"], 1)], 1),
        block(["def forward(self, x):", block(["gpus = self.gpus", *forward, "return x"], 1)], 1),
    ]
    return "class Net(nn.Module):\n" + "\n\n".join(methods) + "\n"
