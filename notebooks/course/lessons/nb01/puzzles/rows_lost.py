"""Rows of the first argument that no replica sees, for positional tensors with these numbers of rows."""

from collections.abc import Callable, Sequence
from random import Random

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import also, wrong
from frcnn_lite import parallel

hints = (
    "Cut every argument on its own first, with `parallel.chunk_sizes(rows, gpus)`.",
    "`zip` stops at the shortest list. Lists of what?",
    "`chunks = [parallel.chunk_sizes(rows, gpus) for rows in sizes]`; the first argument's pieces from "
    "position `min(map(len, chunks))` on are lost: add up their rows.",
)


def _even_split(rows: int, gpus: int) -> list[int]:
    return [rows // gpus + (k < rows % gpus) for k in range(min(rows, gpus))]


def _kept(sizes: Sequence[int], gpus: int, split: Callable[[int, int], list[int]]) -> int:
    chunks = [split(rows, gpus) for rows in sizes]
    return sum(chunks[0][: min(map(len, chunks))])


def _first_piece_if(is_cut: Callable[[Sequence[int], int], bool], sizes: Sequence[int], gpus: int) -> int:
    """All rows but those of the first piece, wherever a reader thinks that something is lost."""
    return sizes[0] - parallel.chunk_sizes(sizes[0], gpus)[0] if is_cut(sizes, gpus) else 0


def _has_fewer_rows(sizes: Sequence[int], gpus: int) -> bool:
    return min(sizes) < sizes[0]


def _has_fewer_pieces(sizes: Sequence[int], gpus: int) -> bool:
    pieces = [len(parallel.chunk_sizes(rows, gpus)) for rows in sizes]
    return min(pieces) < pieces[0]


def cases(random: Random) -> Sequence[Case]:
    fixed: list[tuple[list[int], int]] = [
        ([10, 1], 2),
        ([10, 3], 2),
        ([10, 3], 4),
        ([10, 2], 8),
        ([10, 10], 8),
        ([6], 4),
    ]
    drawn = [([random.randint(1, 32) for _ in range(random.randint(1, 3))], random.randint(1, 8)) for _ in range(40)]
    return [Case(pair) for pair in fixed + drawn]


rows_lost = parallel.rows_lost


@wrong
def rows_not_chunks(sizes: Sequence[int], gpus: int) -> int:
    """this is what a function gives that compares numbers of rows. `zip` walks over *pieces*: on 2 GPUs, 10 rows are 2
    pieces and 3 rows are 2 pieces as well, so nothing is lost.

    Source: drawn so in the post of December 2021 in "Further reading"
    """
    return max(0, sizes[0] - min(sizes))


@also(rows_not_chunks)
def _(sizes, gpus):
    return max(sizes) - min(sizes)


@wrong
def half_of_the_batch(sizes, gpus):
    """this is always half of the batch, which is lost where an argument has one row and there are 2 GPUs. On 4 GPUs it
    is 7 of 10 rows, and where all arguments have 10 rows it is none.
    """
    return sizes[0] // 2


@wrong
def only_the_first_piece(sizes, gpus):
    """this is what a function gives that lets only the first piece come back. That is so where an argument has one row;
    with 3 rows on 4 GPUs three replicas run.

    Source: pytorch/pytorch issue 7358, 2018, where the other argument has one row
    """
    return sizes[0] - parallel.chunk_sizes(sizes[0], gpus)[0]


@also(only_the_first_piece)
def _(*given):
    return _first_piece_if(_has_fewer_rows, *given)


@also(only_the_first_piece)
def _(*given):
    return _first_piece_if(_has_fewer_pieces, *given)


@wrong
def the_shortest_argument(sizes, gpus):
    """this is the number of rows of the shortest argument. It decides how many *pieces* are used; the rows that are
    lost are those of the first argument.
    """
    return min(sizes)


@wrong
def every_piece_is_full(sizes: Sequence[int], gpus: int) -> int:
    """this is what a function gives that counts `ceil(rows / gpus)` rows for every piece. The last one has what is
    left: 10 rows on 4 GPUs are 3, 3, 3 and 1.
    """
    return sizes[0] - min(len(parallel.chunk_sizes(rows, gpus)) for rows in sizes) * -(-sizes[0] // gpus)


@wrong
def even_split(sizes, gpus):
    """this is what an even split gives. torch cuts pieces of `ceil(rows / gpus)` rows and lets the last one have
    what is left, so the pieces can differ by more than one row, and there can be fewer pieces than GPUs.

    Source: expected the same way in pytorch/pytorch pull request 930, 2017, and issue 18563, 2019
    """
    return sizes[0] - _kept(sizes, gpus, _even_split)
