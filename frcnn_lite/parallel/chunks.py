"""How `nn.DataParallel` deals rows out to devices, and what that rule loses when arguments differ in length."""

from collections.abc import Sequence

from torch import Tensor


def chunk_sizes(rows: int, gpus: int) -> list[int]:
    """Rows that each GPU receives of a tensor: the rule of `Tensor.chunk`, which scatter uses.

    Every chunk has ceil(rows / gpus) rows, and the last one what is left over. There can be fewer chunks than GPUs:
    9 rows on 4 GPUs make [3, 3, 3].

    Args:
        rows: of the tensor; 0 make an empty chunk for every GPU.
        gpus: how many there are.

    Raises:
        ValueError: `rows` is negative, or `gpus` less than one.
    """
    if rows < 0 or gpus < 1:
        raise ValueError(f"`rows` must be at least 0 and `gpus` at least 1, got {rows} and {gpus}")
    if rows == 0:
        return [0] * gpus
    size = -(-rows // gpus)
    return [min(size, rows - start) for start in range(0, rows, size)]


def rows_lost(sizes: Sequence[int], gpus: int) -> int:
    """Rows of the *first* argument that no replica ever sees, without an error.

    Scatter chunks each tensor argument on its own and then zips the lists of chunks; zip stops at the shortest. A
    tensor of one row, meant for all, makes one chunk: one replica runs, the other chunks vanish, and
    `rows_lost([10, 1], 2)` is 5 (`torch/nn/parallel/scatter_gather.py`, 0.1 to 2.15).

    This is so for tensors that are all given by position, and for tensors that are all given by name. The two kinds are
    scattered apart: a keyword that makes fewer chunks than the positional tensors make raises an AssertionError beside
    one of them, and beside two or more it can be missing, silently, on the later devices (pytorch issue 16432, 2019).

    Args:
        sizes: number of rows of each tensor argument, at least one of them.
        gpus: how many there are in `device_ids`.

    Raises:
        ValueError: `sizes` is empty.
    """
    if not sizes:
        raise ValueError("`sizes` must hold the number of rows of at least one argument, got none")
    chunks = [chunk_sizes(rows, gpus) for rows in sizes]
    replicas = min(len(chunk) for chunk in chunks)
    return sum(chunks[0][replicas:])


def share(tensor: Tensor, *, like: Tensor) -> Tensor:
    """`tensor` repeated for every row of `like`, so that both are dealt out alike.

    A view: its rows are the same memory, and only the chunk that a device receives is copied there. It must have the
    rows of `like`, not as many as there are GPUs: with 10 rows on 8 GPUs `like` makes 5 chunks and 8 rows make 8.

    Args:
        tensor: (1, ...).
        like: (B, ...).

    Returns:
        (B, ...), with the row of `tensor` B times.

    Raises:
        ValueError: `tensor` does not have exactly one row, or `like` has no dimension of rows.
    """
    if tensor.dim() == 0 or tensor.shape[0] != 1:
        raise ValueError(f"`tensor` must have one row to share, shape (1, ...), got {tuple(tensor.shape)}")
    if like.dim() == 0:
        raise ValueError("`like` must have a dimension of rows, got a 0-d tensor")
    return tensor.expand(like.shape[0], *tensor.shape[1:])
