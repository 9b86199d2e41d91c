"""One call of an exercise and what comes out, drawn: each tensor is a box in the colour of its GPU."""

import re
from html import escape
from random import Random

from course.kit.figures.palette import CPU_COLOUR, gpu_colour
from course.kit.learn.card import Card
from course.kit.learn.exercise import Exercise, show
from course.kit.learn.surroundings import Surroundings, seed_all

SEED = 0
BOX = "border:2px solid {};border-radius:4px;padding:0 0.3em;white-space:nowrap"
DEVICE = re.compile(r"device\(type='cuda', index=(\d)\)")
TENSOR = re.compile(r"&lt;(?:tensor|array) (\([^)]*\))(?: on cuda:(\d))?(?: of ([^&]*))?&gt;")


def example(exercise: Exercise) -> Card:
    """The first case of an exercise, called with the reference. `text` has the same in one sentence."""
    around = Surroundings()
    try:
        seed_all(SEED)
        case = exercise.cases(Random(SEED))[0]
        seed_all(SEED)
        call, result = case.show(exercise.name), show(case.call(exercise.reference))
    finally:
        around.restore()
    call, result = (DEVICE.sub(r"cuda:\1", words.rstrip(" ,")).replace("-0.000", "0.000") for words in (call, result))
    html = (
        f"<p style='line-height:1.7'>For example<br><code>{_drawn(call)}</code><br>→ <code>{_drawn(result)}</code></p>"
    )
    return Card(html, f"For example: {call} → {result}")


def _drawn(words: str) -> str:
    return TENSOR.sub(_box, escape(words, quote=False))


def _box(tensor: re.Match[str]) -> str:
    """Its shape and its GPU's name in a frame of that GPU's colour, grey for the CPU; then its numbers, if shown."""
    shape, gpu, numbers = tensor.groups()
    colour, place = (CPU_COLOUR, "") if gpu is None else (gpu_colour(int(gpu)), f" cuda:{gpu}")
    return f'<span style="{BOX.format(colour)}">{shape}{place}</span>{"" if numbers is None else f" {numbers}"}'
