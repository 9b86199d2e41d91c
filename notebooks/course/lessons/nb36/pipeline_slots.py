"""A pipeline at work: which stage computes which micro-batch when, forward and backward, and when it is idle."""

from collections.abc import Sequence

from course.kit.figures.palette import blend, gpu_colour, ink_on
from course.kit.figures.svg import FAINT, INK, RULE, Canvas, Figure

Slot = tuple[str, int] | None  # "F" or "B" and the number of the micro-batch; None for idle
LEFT, TOP, WIDTH, HEIGHT, ROW = 86, 52, 30, 26, 34


def pipeline_slots(stages: Sequence[Sequence[Slot]], title: str) -> Figure:
    """Draw stage -> time -> slot. Stage k runs on cuda:k; forward is tinted, backward is full, idle is empty.

    Raises ValueError when stages differ in length or there is none.
    """
    lengths = {len(stage) for stage in stages}
    if len(lengths) != 1 or lengths == {0}:
        raise ValueError(f"`stages` must have equally many slots, got {sorted(lengths)}")
    slots = lengths.pop()
    busy = sum(slot is not None for stage in stages for slot in stage)
    told = f"idle: {slots * len(stages) - busy} of {slots * len(stages)} slots"
    caption = f"time goes to the right; F forward, B backward, and the micro-batch; {told}"
    width = max(LEFT + slots * WIDTH + 20, 40 + 9.5 * len(title), LEFT + 6.6 * len(caption))
    canvas = Canvas(width, TOP + ROW * len(stages) + 34, title, _describe(stages, told), at=(16, 28))
    for k, stage in enumerate(stages):
        y = TOP + k * ROW
        canvas.rect(14, y + 3, 62, 20, fill=gpu_colour(k), rx=10)
        canvas.text(45, y + 17.5, f"cuda:{k}", size=12, anchor="middle", fill=ink_on(gpu_colour(k)))
        for time, slot in enumerate(stage):
            x = LEFT + time * WIDTH
            if slot is None:
                canvas.rect(x, y, WIDTH - 2, HEIGHT, fill="none", stroke=RULE)
                continue
            colour = blend(gpu_colour(k), 0.3) if slot[0] == "F" else gpu_colour(k)
            canvas.rect(x, y, WIDTH - 2, HEIGHT, fill=colour, stroke=INK, stroke_width=0.6)
            words = f"{slot[0]}{slot[1]}"
            canvas.text(x + WIDTH / 2 - 1, y + 17, words, size=11, anchor="middle", fill=ink_on(colour))
    bottom = TOP + ROW * len(stages) + 14
    canvas.text(LEFT, bottom, caption, size=12, fill=FAINT)
    return canvas.figure()


def _describe(stages: Sequence[Sequence[Slot]], told: str) -> str:
    rows = [
        f"cuda:{k}: {' '.join('-' if slot is None else f'{slot[0]}{slot[1]}' for slot in stage)}"
        for k, stage in enumerate(stages)
    ]
    return "; ".join(rows) + f"; {told}."
