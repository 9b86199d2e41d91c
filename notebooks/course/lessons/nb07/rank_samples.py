"""Which rank sees which picture, epoch by epoch, and which pictures are seen twice."""

from collections.abc import Sequence

from course.kit.figures.digits import cast, draw_digit
from course.kit.figures.palette import LOST_COLOUR, blend, gpu_colour
from course.kit.figures.svg import FAINT, Canvas, Figure

TILE, GAP, LANE = 34, 6, 46
LEFT, TOP, BETWEEN = 76, 78, 44

Epoch = Sequence[Sequence[int]]  # the samples of each rank, in its order


def rank_samples(epochs: Sequence[Epoch], names: Sequence[str], title: str) -> Figure:
    """A block for each epoch, a lane for each rank, a digit for each sample; what an epoch repeats is hatched.

    epochs: epochs[e][rank] = numbers of the samples, 0..9, that the rank sees; names: what stands above each block.
    """
    if not epochs or len(names) != len(epochs) or len({len(epoch) for epoch in epochs}) != 1:
        raise ValueError(f"want a name for each epoch and as many ranks in all, got {names} for {list(epochs)}")
    longest = max(len(lane) for epoch in epochs for lane in epoch)
    block = longest * (TILE + GAP) + BETWEEN
    height = TOP + len(epochs[0]) * LANE + 30
    canvas = Canvas(max(LEFT + len(epochs) * block, 440), height, title, _describe(epochs, names), at=(16, 28))
    for rank in range(len(epochs[0])):
        canvas.text(16, TOP + rank * LANE + 22, f"rank {rank}", fill=gpu_colour(rank), font_weight="bold")
    for e, (epoch, name) in enumerate(zip(epochs, names, strict=True)):
        x = LEFT + e * block
        canvas.text(x, TOP - 18, name, fill=FAINT)
        twice = repeated(epoch)
        for rank, lane in enumerate(epoch):
            width = len(lane) * (TILE + GAP) + GAP
            y = TOP + rank * LANE
            canvas.rect(x - GAP, y - GAP, width, TILE + 2 * GAP, fill=blend(gpu_colour(rank), 0.18), rx=6)
            for k, sample in enumerate(lane):
                left = x + k * (TILE + GAP)
                draw_digit(canvas, cast()[sample], left, y, TILE, edge=gpu_colour(rank), lost=(rank, k) in twice)
    canvas.text(LEFT, height - 14, "hatched: a sample that this epoch has shown already", size=12, fill=LOST_COLOUR)
    return canvas.figure()


def repeated(epoch: Epoch) -> set[tuple[int, int]]:
    """(rank, position) of every sample that came before in the epoch; ranks take their k-th samples together."""
    seen: set[int] = set()
    twice = set()
    for k in range(max(map(len, epoch))):
        for rank, lane in enumerate(epoch):
            if k < len(lane) and lane[k] in seen:
                twice.add((rank, k))
            if k < len(lane):
                seen.add(lane[k])
    return twice


def _describe(epochs: Sequence[Epoch], names: Sequence[str]) -> str:
    blocks = []
    for epoch, name in zip(epochs, names, strict=True):
        lanes = "; ".join(f"rank {rank}: {', '.join(map(str, lane))}" for rank, lane in enumerate(epoch))
        again = [str(epoch[rank][k]) for rank, k in sorted(repeated(epoch))]
        blocks.append(f"{name}: {lanes}" + (f"; shown again: {', '.join(again)}" if again else ""))
    return ". ".join(blocks) + "."
