"""Numbers of a distribution from the words of Philox, as CUDA's kernels compute them.

The kernels: ATen/native/cuda/DistributionTemplates.h and ATen/core/TransformationHelper.h, over curand's device
functions. Uniform numbers and integers are CUDA's to the last bit. Where CUDA takes an approximation of its hardware
(sine and cosine of the normal numbers, logarithm, exponential, tangent), numbers equal CUDA's to rounding.

Each function fills a tensor on the host in the order of its memory, which is the order in which CUDA's iterators go.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from vgpu.machine import philox

_TURN = float(torch.tensor(2.0**-32) * torch.tensor(2 * math.pi))  # a word as a part of a full turn, in float32
_WIDE_RANGE = 1 << 28  # from here on `random_` takes numbers of 64 bits
_TOP = -(1 << 63)


class _Words(NamedTuple):
    """The words of all threads: four (rounds, threads), of which only those are there that somebody reads."""

    drawn: list[Tensor]
    size: int  # how many elements are filled
    columns: int  # how many of the numbers that a thread draws at once are used

    def in_order(self, numbers: list[Tensor]) -> Tensor:
        """The numbers of one draw after the other, as they lie in memory (size,)."""
        if len(numbers) == 1 or self.columns == 1:
            return numbers[0].reshape(-1)[: self.size]
        return torch.stack(numbers[: self.columns], 1).reshape(-1)[: self.size]


def _draw(generator: philox.Generator, count: int, each: int, needs: int = 1) -> _Words:
    """Draw for `count` elements, `each` of them at once; a number is made of words that come in groups of `needs`."""
    grid = philox.grid(count, each)
    seed, offset = generator.advance(grid.steps)
    columns = min(each, -(-count // grid.threads))
    wanted = -(-columns * (philox.WORDS // each) // needs) * needs
    threads = min(grid.threads, count)
    rounds = [philox.words(seed, offset + k * philox.WORDS, threads, wanted) for k in range(grid.rounds)]
    return _Words([torch.stack(word) for word in zip(*rounds, strict=True)], count, columns)


def write(out: Tensor, numbers: Tensor) -> Tensor:
    """Put numbers (elements of out,) into a tensor in the order of its memory, and return it."""
    view = in_memory(out)
    view.copy_(numbers.view(view.shape))
    return out


def in_memory(out: Tensor, like: Tensor | None = None) -> Tensor:
    """A view whose order is that of the memory of `out`, or of another tensor `like` of its shape."""
    strides = (out if like is None else like).stride()
    return out.permute(sorted(range(out.dim()), key=lambda d: -strides[d]))


def _each(dtype: torch.dtype) -> int:
    """How many numbers CUDA makes of four words: two of double precision."""
    return 2 if dtype == torch.float64 else 4


def _computed_in(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype == torch.float64 else torch.float32


def _rounded(value: float, dtype: torch.dtype) -> float:
    return torch.tensor(value, dtype=dtype).item()


def _times_plus(numbers: Tensor, factor: float, summand: float) -> Tensor:
    """`numbers * factor + summand`, rounded once, as CUDA's compiler fuses it; for float64 rounded twice."""
    if (factor, summand) == (1.0, 0.0):
        return numbers
    return (numbers.double() * factor + summand).to(numbers.dtype)


def unit(word: Tensor) -> Tensor:
    """A word as a number of float32 in (0, 1]."""
    return word.float() * 2.0**-32 + 2.0**-33


def _unit_double(first: Tensor, second: Tensor, scale: float = 2.0**-53) -> Tensor:
    return (first ^ (second << 21)).double() * scale + scale / 2


def uniform_numbers(generator: philox.Generator, count: int, dtype: torch.dtype) -> Tensor:
    """Numbers in (0, 1] (count,): float64 for that dtype, float32 for all others."""
    words = _draw(generator, count, _each(dtype))
    if dtype != torch.float64:
        return words.in_order([unit(word) for word in words.drawn])
    pairs = zip(words.drawn[::2], words.drawn[1::2], strict=True)
    return words.in_order([_unit_double(first, second) for first, second in pairs])


def normal_numbers(generator: philox.Generator, count: int, dtype: torch.dtype) -> Tensor:
    """Numbers of mean 0 and deviation 1 (count,), by the method of Box and Muller: two from two uniform ones."""
    if dtype == torch.float64:
        words = _draw(generator, count, 2, needs=4)
        a, b, c, d = words.drawn
        length, angle = _unit_double(a, b), _unit_double(c, d, 2.0**-52) * math.pi
        return words.in_order(_around(length, angle))
    words = _draw(generator, count, 4, needs=2)
    numbers = []
    for first, second in zip(words.drawn[::2], words.drawn[1::2], strict=True):
        numbers += _around(unit(first), _times_plus(second.float(), _TURN, _TURN / 2))
    return words.in_order(numbers)


def _around(length: Tensor, angle: Tensor) -> list[Tensor]:
    radius = (-2 * length.log()).sqrt()
    return [angle.sin() * radius, angle.cos() * radius]


def _real(out: Tensor) -> Tensor:
    return torch.view_as_real(out) if out.is_complex() else out


def uniform(generator: philox.Generator, out: Tensor, low: float = 0, high: float = 1) -> Tensor:
    """`out.uniform_(low, high)`. CUDA draws in (0, 1], and turns the upper end into the lower."""
    real = _real(out)
    units = uniform_numbers(generator, real.numel(), real.dtype)
    low, high = _rounded(low, real.dtype), _rounded(high, real.dtype)
    span = 1.0 if (low, high) == (0.0, 1.0) else _rounded(high - low, real.dtype)
    numbers = _times_plus(units, span, low).to(real.dtype)
    write(real, numbers.masked_fill_(numbers == high, low))
    return out


def normal(generator: philox.Generator, out: Tensor, mean: float = 0, std: float = 1) -> Tensor:
    """`out.normal_(mean, std)`. Half of the variance of a complex number is in each of its parts."""
    real = _real(out)
    wide = _computed_in(real.dtype)
    std = _rounded(std / math.sqrt(2) if out.is_complex() else std, wide)
    write(real, _times_plus(normal_numbers(generator, real.numel(), real.dtype), std, _rounded(mean, wide)))
    return out


def log_normal(generator: philox.Generator, out: Tensor, mean: float = 1, std: float = 2) -> Tensor:
    """`out.log_normal_(mean, std)`."""
    wide = _computed_in(out.dtype)
    normals = normal_numbers(generator, out.numel(), out.dtype)
    return write(out, _times_plus(normals, _rounded(std, wide), _rounded(mean, wide)).exp())


def exponential(generator: philox.Generator, out: Tensor, lambd: float = 1) -> Tensor:
    """`out.exponential_(lambd)`, without zeros: a number so near to 1 counts as half an epsilon below it."""
    units = uniform_numbers(generator, out.numel(), out.dtype)
    least = torch.finfo(units.dtype).eps / 2
    logarithms = units.log().masked_fill_(units >= 1 - least, -least)
    return write(out, logarithms * (-1 / torch.tensor(lambd, dtype=units.dtype)))


def cauchy(generator: philox.Generator, out: Tensor, median: float = 0, sigma: float = 1) -> Tensor:
    """`out.cauchy_(median, sigma)`."""
    units = uniform_numbers(generator, out.numel(), out.dtype)
    if units.dtype == torch.float32:  # the tangent of its hardware overflows at both ends
        least = torch.finfo(torch.float32).eps
        units = units.clamp(least, 1 - least)
    wide = units.dtype
    return write(out, _times_plus(((units - 0.5) * math.pi).tan(), _rounded(sigma, wide), _rounded(median, wide)))


def geometric(generator: philox.Generator, out: Tensor, p: float) -> Tensor:
    """`out.geometric_(p)`."""
    units = uniform_numbers(generator, out.numel(), out.dtype)
    success = torch.tensor(p, dtype=units.dtype)
    never = torch.log1p(-success) if units.dtype == torch.float64 else (1 - success).log()
    return write(out, (units.log() / never).ceil())


def bernoulli(generator: philox.Generator, out: Tensor, p: float = 0.5) -> Tensor:
    """`out.bernoulli_(p)`."""
    units = uniform_numbers(generator, out.numel(), out.dtype)
    return write(out, units < _rounded(p, units.dtype))


def below(generator: philox.Generator, out: Tensor, low: int, span: int, wide: bool) -> Tensor:
    """Integers from `low` to `low + span - 1` into `out`; `wide` takes 64 bits for each of them."""
    words = _draw(generator, out.numel(), 2 if wide else 4)
    if wide:
        pairs = zip(words.drawn[::2], words.drawn[1::2], strict=True)
        numbers = words.in_order([(first << 32) | second for first, second in pairs])
        return write(out, _modulo(numbers, span) + low)
    return write(out, words.in_order(words.drawn) % span + low)


def _modulo(numbers: Tensor, span: int) -> Tensor:
    """The rest of a division of unsigned numbers of 64 bits, which int64 holds with another sign."""
    if span == 1 << 64:
        return numbers
    if span < 1 << 62:
        halves = ((numbers >> 1) & ~_TOP) % span
        return (halves * 2 + (numbers & 1)) % span
    signed = span - (1 << 64) if span >= 1 << 63 else span
    for _ in range(3):
        numbers = torch.where((numbers ^ _TOP) < (signed ^ _TOP), numbers, numbers - signed)
    return numbers


def integers(generator: philox.Generator, out: Tensor, low: int, high: int | None) -> Tensor:
    """`out.random_(low, high)`: up to `high` (not included), or up to what the dtype holds."""
    if high is None and low == _TOP:
        return below(generator, out, 0, 1 << 64, wide=True)
    if out.is_floating_point():
        low = _nearest_inside(low, out.dtype, 1)
        high = _last_exact(out.dtype) + 1 if high is None else _nearest_inside(high, out.dtype, -1)
    elif high is None:
        high = 2 if out.dtype == torch.bool else torch.iinfo(out.dtype).max + 1
    span = high - low
    return below(generator, out, low, span, span >= _WIDE_RANGE)


def _last_exact(dtype: torch.dtype) -> int:
    """The integer up to which a floating dtype holds all of them."""
    return int(2 / torch.finfo(dtype).eps)


def _nearest_inside(end: int, dtype: torch.dtype, towards: int) -> int:
    """An end of a range, moved inwards where the dtype would round a number of the range out of it."""
    neighbour = int(torch.tensor(end + towards, dtype=torch.int64).to(dtype))
    if neighbour >= end if towards > 0 else neighbour < end:
        return end
    size = abs(end + towards).bit_length() - 1
    return neighbour + towards * (1 << (size - _last_exact(dtype).bit_length() + 2))


def any_integers(generator: philox.Generator, out: Tensor) -> Tensor:
    """`out.random_()`: from 0 to what the dtype holds exactly."""
    if out.is_floating_point():
        span = _last_exact(out.dtype) + 1
    else:
        span = 2 if out.dtype == torch.bool else torch.iinfo(out.dtype).max + 1
    return below(generator, out, 0, span, out.dtype in (torch.int64, torch.float64))


FILLS: dict[str, Callable[..., Tensor]] = {
    "uniform_": uniform,
    "normal_": normal,
    "log_normal_": log_normal,
    "exponential_": exponential,
    "cauchy_": cauchy,
    "geometric_": geometric,
    "bernoulli_.float": bernoulli,
    "random_": any_integers,
    "random_.to": lambda generator, out, high: integers(generator, out, 0, high),
    "random_.from": integers,
}
