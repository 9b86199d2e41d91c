"""Small programs that a card and a virtual GPU are asked to run; the answer is what they say, or their error.

programs.toml holds those of one expression, by group, and whole_programs.py those of several lines.
"""

from __future__ import annotations

import contextlib
import gc
import tomllib
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from record import questions, whole_programs
from record.whole_programs import shown

LINES, LONGEST = 4, 500  # of an error's text; a value has as many letters
_KERNELS = {
    "flash": SDPBackend.FLASH_ATTENTION,
    "mem": SDPBackend.EFFICIENT_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "math": SDPBackend.MATH,
}
Program = Callable[[], object]


def programs() -> dict[str, Program]:
    """The programs by key, `group|program|name`."""
    found = {}
    groups = tomllib.loads(Path(__file__).with_name("programs.toml").read_text(encoding="utf-8"))
    for group, table in groups.items():
        for name, text in table.items():
            for variant, program in _variants(group, _expression(text)):
                found[f"{variant}|program|{name}"] = program
    found.update((f"whole|program|{name}", function) for name, function in whole_programs.WHOLE.items())
    return found


def begin() -> None:
    """Bring the device to the state in which the programs begin: a context, and a product's workspace."""
    gc.freeze()  # what is held now, no later collection looks through
    torch.manual_seed(0)
    ones = torch.ones(8, 8, device="cuda")
    (ones @ ones).sum().item()


def ask(program: Program) -> str:
    """The answer of one program, which begins without the memory that an earlier one has yet to give back."""
    gc.collect()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return questions.answer(lambda: str(program())[:LONGEST], LINES, LONGEST)


def _expression(text: str) -> Program:
    code = compile(text, "programs.toml", "eval")
    return lambda: eval(code, vars(whole_programs))


def _variants(group: str, program: Program) -> Iterator[tuple[str, Program]]:
    if group == "strict":
        yield group, lambda: _strict(program)
    elif group == "cast":
        yield "autocast", lambda: _cast(program, torch.float16)
        yield "autocast_bf16", lambda: _cast(program, torch.bfloat16)
    elif group == "sdpa":
        for name, kernel in _KERNELS.items():
            yield f"sdpa_{name}", lambda kernel=kernel: _attention(program, kernel)
    else:
        yield group, program


def _strict(program: Program) -> str:
    torch.use_deterministic_algorithms(True)
    with contextlib.ExitStack() as stack:
        stack.callback(torch.use_deterministic_algorithms, False)
        result = program()
    return f"ran {shown(result)}" if isinstance(result, torch.Tensor) else "ran"


def _cast(program: Program, dtype: torch.dtype) -> str:
    with torch.autocast("cuda", dtype=dtype):
        result = program()
    return str(result.dtype if isinstance(result, torch.Tensor) else result)


def _attention(program: Callable[[], Any], kernel: SDPBackend) -> str:
    """What the kernel says for itself is in the warnings."""
    with warnings.catch_warnings(record=True) as told, sdpa_kernel(kernel):
        warnings.simplefilter("always")
        try:
            return f"ran {shown(program())}"
        except RuntimeError as error:
            reasons = [str(warning.message).partition("(Triggered")[0][:150] for warning in told]
            return f"RuntimeError {str(error).splitlines()[0]} | {' | '.join(reasons)}"
