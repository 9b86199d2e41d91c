"""From a seed to a program in one process."""

from __future__ import annotations

from differential.dice import Dice
from differential.frame import HALVES, IMPORTS, MAIN, NOTE
from differential.layers import HELPERS
from differential.nets import draw_net
from differential.program import Program
from differential.steps import draw_training


def draw(seed: int) -> Program:
    """The program of a seed."""
    dice = Dice(seed)
    net = draw_net(dice)
    text = f"{net.text}\n\n{draw_training(dice, net, seed)}"
    helpers = "".join(f"\n{helper}" for mark, helper in HELPERS.items() if mark in text)
    halves = f"\n{HALVES}" if "DataParallel" in dice.pieces else ""
    title = f'"""Program {seed} of the differential tester: {", ".join(sorted(dice.pieces))}."""'
    dtype = f"DTYPE = torch.{'float32' if net.low else 'float64'}"
    source = f"{title}\n\n{IMPORTS}\n{dtype}\n{helpers}{halves}\n\n{text}\n\n{NOTE}\n{MAIN}"
    return Program(seed, 1, frozenset(dice.pieces), not net.low, source)
