"""RoI max pooling in plain torch, from a doubling table: a bin of any size takes four reads.

`table[a, b]` holds at each cell the largest feature of the window of 2**a rows and 2**b columns that starts there, made
from two windows of half the size. A bin is covered by four windows, one in each corner; that they overlap does not
matter to a maximum. (The sparse table of range-minimum queries, in two dimensions: Bender and Farach-Colton, "The LCA
problem revisited", 2000.)

The library does not pool like this: the table holds one number for every cell and every size of window, which costs
more than reading the cells of the bins.
"""

import torch
from torch import Tensor

TABLE_NUMBERS = 2**24
"""Numbers that the table may hold; as many channels are pooled at a time as this allows."""


def table_pool(features: Tensor, images: Tensor, rows: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
    """Values, of the features' dtype, and argmax, int32, (R, C, ph, pw), by the rules of `frcnn_lite.ops.roi_pool`.

    Args:
        features: (N, C, H, W) floating.
        images, rows, columns: (R,), (R, ph, 2) and (R, pw, 2) int64 of `frcnn_lite.ops.roi_bins`.
    """
    n, c, h, w = features.shape
    values = features.new_empty(rows.shape[0], c, rows.shape[1], columns.shape[1])
    argmax = torch.empty_like(values, dtype=torch.int32)
    step = max(1, TABLE_NUMBERS // max(1, n * h * w * h.bit_length() * w.bit_length()))
    for start in range(0, c, step):
        chosen = slice(start, start + step)
        values[:, chosen], argmax[:, chosen] = _pool_channels(features[:, chosen], images, rows, columns)
    return values, argmax


def _pool_channels(features: Tensor, images: Tensor, rows: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
    n, c, h, w = features.shape
    # Rule 4: the lowest float32 in float64, too; the dtype's own where that is higher.
    lowest = max(torch.finfo(torch.float32).min, torch.finfo(features.dtype).min)
    best, where = (x.view(-1, c) for x in _table(features, lowest))
    (a, tops), (b, lefts) = windows(rows, h), windows(columns, w)
    level = (a[:, :, None] * w.bit_length() + b[:, None, :]) * n + images.view(-1, 1, 1)  # (R, ph, pw)

    def corner(top: Tensor, left: Tensor) -> tuple[Tensor, Tensor]:
        place = ((level * h + top[:, :, None]) * w + left[:, None, :]).flatten()
        return best.index_select(0, place), where.index_select(0, place)

    upper, lower = (_first_largest(corner(top, lefts[0]), corner(top, lefts[1])) for top in tops)
    values, argmax = (x.view(*level.shape, c).permute(0, 3, 1, 2) for x in _first_largest(upper, lower))
    filled = (rows[..., 1] > rows[..., 0])[:, None, :, None] & (columns[..., 1] > columns[..., 0])[:, None, None, :]
    return values.where(filled, 0), argmax.where(filled & (values > lowest), -1)


def _table(features: Tensor, lowest: float) -> tuple[Tensor, Tensor]:
    """Largest features and their positions, each (levels of rows, levels of columns, N, H, W, C)."""
    n, c, h, w = features.shape
    best = features.where(features > lowest, lowest).permute(0, 2, 3, 1)  # NaN would win every maximum of torch
    where = torch.arange(h * w, dtype=torch.int32, device=features.device).view(1, h, w, 1).expand(n, h, w, c)
    table = []
    for a in range(h.bit_length()):
        if a:
            best, where = _doubled(best, where, dim=1, by=2 ** (a - 1))
        level = best, where
        for b in range(w.bit_length()):
            if b:
                level = _doubled(*level, dim=2, by=2 ** (b - 1))
            table.append(level)
    shape = (h.bit_length(), w.bit_length(), n, h, w, c)
    return torch.stack([v for v, _ in table]).view(shape), torch.stack([i for _, i in table]).view(shape)


def _doubled(best: Tensor, where: Tensor, dim: int, by: int) -> tuple[Tensor, Tensor]:
    """Windows of twice the size; one that would leave the map is cut at its edge."""
    size = best.shape[dim]
    later = (torch.arange(size, device=best.device) + by).clamp(max=size - 1)
    return _first_largest((best, where), (best.index_select(dim, later), where.index_select(dim, later)))


def _first_largest(one: tuple[Tensor, Tensor], other: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """The larger of two (feature, position) pairs, and of equal features the one at the lower position."""
    (a, at), (b, there) = one, other
    second = (b > a) | ((b == a) & (there < at))
    return b.where(second, a), there.where(second, at)


def windows(bins: Tensor, limit: int) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Exponent of the largest power of two in each bin (..., 2), and the two starts from which it covers the bin."""
    start, end = bins.unbind(-1)
    size = (end - start).clamp(min=1)
    exponent = torch.frexp(size.float()).exponent.long() - 1  # exact, which the logarithm of a device need not be
    starts = start, end - 2**exponent
    # Only those of an empty bin lie outside the map: it is masked afterwards, but must be read somewhere.
    return exponent, (starts[0].clamp(0, limit - 1), starts[1].clamp(0, limit - 1))
