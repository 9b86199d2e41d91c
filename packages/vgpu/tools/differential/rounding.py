"""Whether a difference is only rounding: the plain CPU against itself, with other last bits in the weights.

Some programs make a large number out of a rounding error. A bias before batch norm has a gradient of zero but for
rounding, and an optimizer that divides by the size of a gradient makes a step out of it. In such a program two correct
machines differ, so a difference says something only where it is larger than what one machine shows on its own.
"""

from __future__ import annotations

import re
from dataclasses import replace

from differential import run
from differential.compare import differs, error
from differential.program import Program
from differential.record import Record

TIMES = 5  # so often the weights are changed, by different signs
LARGER = 10.0  # a difference of so many times what the CPU differs from itself is more than rounding

# A last bit of float64; under autocast one of bfloat16, to which the operators round each weight.
EXACT_BIT, LOW_BIT = 2.0**-52, 2.0**-9

CHANGE = '''
def change_last_bits(net, bit, seed):
    """Make each weight larger or smaller by the fraction `bit`."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in net.parameters():
            signs = torch.randint(0, 2, p.shape, generator=generator, dtype=torch.float64) * 2 - 1
            p.mul_((1 + bit * signs).to(p.dtype))
'''


def changed(program: Program, seed: int) -> Program:
    """The same program of one process, whose net starts with other last bits."""
    bit = EXACT_BIT if program.exact else LOW_BIT
    call = f"    change_last_bits(net, {bit!r}, {seed})\n"
    source, found = re.subn(r"^    net = Net\(\).*\n", lambda line: line[0] + call, program.source, flags=re.MULTILINE)
    if found != 1:
        raise ValueError(f"program {program.seed} makes its net in {found} places instead of one")
    return replace(program, source=source + CHANGE)


def explains(program: Program, expected: Record, found: Record) -> bool:
    """Whether no value differs by more than ten times what the CPU differs from itself.

    `expected` is the record of the CPU. A program that raises, or that misses a value, is never explained.
    """
    if expected.raised != found.raised or expected.values.keys() != found.values.keys():
        return False
    different = [name for name, value in expected.values.items() if differs(value, found.values[name], program.exact)]
    others = run.on_cpu([changed(program, seed) for seed in range(TIMES)])
    if any(other.values.keys() != expected.values.keys() for other in others):
        return False
    for name in different:
        own = max(error(expected.values[name], other.values[name]) for other in others)
        if not error(expected.values[name], found.values[name]) <= LARGER * own:
            return False
    return True
