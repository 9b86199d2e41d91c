"""The operators that draw, with the numbers that a GPU draws: what `random="cuda"` lets run in the CPU's place.

Each kernel takes the arguments of its operator on the host, after the generator. PyTorch's own operator on the CPU
judges the arguments first, and raises for bad ones. How CUDA goes over the elements, and in which file of
aten/src/ATen/native, is said at each. Operators that are not here draw the CPU's numbers: `binomial`, the gamma and
Dirichlet distributions, dropout inside flash and cuDNN's attention and of recurrent layers.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch._C import DispatchKey

from vgpu.attention import kernels as attention_kernels
from vgpu.base.patches import Patches
from vgpu.machine import distributions, philox, rng
from vgpu.tensors.tensor import KINDS

_aten = torch.ops.aten
_DROPOUT = _aten.dropout.default
_VECTOR = 16  # bytes that a thread of the fused dropout loads at once
_MOST_ROWS = 65535  # of blocks in the second direction of a grid

kernels: dict[Any, Callable[..., Any]] = {}  # by operator; empty while the CPU's numbers are wanted


def install(patches: Patches) -> None:
    """Let dropout be the one operator that it is on GPUs; on the CPU autograd takes it apart."""
    if rng.chosen() == "cuda":
        patches.kernel("dropout", _dropout, "AutogradCPU")
        kernels.update(_KERNELS)
        patches.on_restore(kernels.clear)


def run(kernel: Callable[..., Any], ordinal: int, *args: Any, **kwargs: Any) -> Any:
    """Call one of `kernels` for a device; it moves the offset of the generator itself.

    Returns:
        what the operator returns, or NotImplemented for arguments that the kernel has no numbers for.
    """
    with rng.drawing_on(ordinal, kwargs, takes_generator=True, steps=0):
        return kernel(kwargs.pop("generator"), *args, **kwargs)


def _dropout(input: Tensor, p: float, train: bool) -> Tensor:
    if type(input) in KINDS and train and 0 < p < 1 and input.numel():
        return _aten.native_dropout(input, p, True)[0]
    return _DROPOUT._op_dk(DispatchKey.CompositeImplicitAutograd, input, p, train)


def _fill(func: Any, fill: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A kernel for an operator in place, whose arguments are judged on a tensor of one element."""

    def fill_in_place(generator: Any, out: Tensor, *args: Any) -> Tensor:
        judged = out if not out.numel() else out.new_empty(1)
        func(judged, *args, generator=generator)
        return fill(generator, out, *args) if out.numel() else out

    return fill_in_place


def _like(fill: Callable[..., Tensor], *before: Any) -> Callable[..., Tensor]:
    """A kernel for an operator that fills a tensor like its first argument; `fill` is that of one in place."""

    def fill_a_new_one(generator: Any, like: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return fill(generator, torch.empty_like(like, **kwargs), *before, *args)

    return fill_a_new_one


def _bernoulli(generator: Any, p: Tensor) -> Tensor:
    return _bernoulli_into(generator, torch.empty_like(p), p)


def _bernoulli_into(generator: Any, out: Tensor, p: Tensor) -> Tensor:
    """A thread has four elements that lie beside each other, and 1 is drawn up to p itself (Distributions.cu)."""
    _aten.bernoulli(p, generator=generator)
    if not out.numel():
        return out
    seed, offset = generator.advance(10)
    drawn = philox.words(seed, offset, -(-out.numel() // philox.WORDS))
    units = torch.stack([distributions.unit(word) for word in drawn], 1).flatten()[: out.numel()]
    p = p.to(torch.float64 if out.dtype == torch.float64 else torch.float32).expand(out.shape)
    return distributions.write(out, units <= distributions.in_memory(p, out).reshape(-1))


def _poisson(generator: Any, rates: Tensor) -> Tensor:
    """A thread has one element, and multiplies uniform numbers until e**rate is used up (curand_poisson.h).

    From a rate of 64 on curand has other ways, which are not here.
    """
    if not rates.numel() or not bool(((rates >= 0) & (rates < 64)).all()):
        return NotImplemented
    left = distributions.in_memory(rates).reshape(-1).float().exp()
    seed, offset = generator.advance(20)
    found = torch.zeros_like(left)
    for unit in _in_turn(seed, offset, left.numel()):
        left = left * unit
        if not bool((left > 1).any()):
            break
        found += left > 1
    return distributions.write(torch.empty_like(rates), found)


def _in_turn(seed: int, offset: int, threads: int) -> Iterator[Tensor]:
    """The uniform numbers that each thread draws one after the other."""
    while True:
        for word in philox.words(seed, offset, threads):
            yield distributions.unit(word)
        offset += philox.WORDS


def _multinomial(generator: Any, weights: Tensor, samples: int, replacement: bool = False) -> Tensor:
    """Without replacement, or for one sample: the largest quotients by exponential numbers (Distributions.cpp)."""
    judged = weights.float() if weights.dtype == torch.float16 else weights
    out = _aten.multinomial(judged, samples, replacement, generator=generator)
    if not out.numel():
        return out
    if replacement and samples > 1:
        rows = weights.view(-1, weights.size(-1))
        return _with_replacement(generator, rows, samples).view(out.shape)
    quotients = weights / distributions.exponential(generator, torch.empty_like(weights))
    if samples == 1:
        return quotients.argmax(-1, keepdim=True)
    return quotients.topk(samples)[1]


def _with_replacement(generator: Any, rows: Tensor, samples: int) -> Tensor:
    """Blocks of 128 threads, one thread for each sample, look uniform numbers up in sums (MultinomialKernel.cu)."""
    share = rows / rows.sum(1, keepdim=True)
    height = min(len(rows), _MOST_ROWS)
    width = -(-samples // 128) * 128
    rounds = -(-len(rows) // height)
    seed, offset = generator.advance(rounds * philox.WORDS)
    drawn = [philox.words(seed, offset + k * philox.WORDS, height * width, 1)[0] for k in range(rounds)]
    units = distributions.unit(torch.cat(drawn)).view(-1, width)[: len(rows), :samples].to(rows.dtype)
    place = torch.searchsorted(share.cumsum(1), units.contiguous()).clamp(max=rows.size(1) - 1)
    possible = torch.where(share > 0, torch.arange(rows.size(1)), 0).cummax(1)[0]
    return possible.gather(1, place)


def _randperm(generator: Any, n: int, *, out: Tensor) -> Tensor:
    """Sort random keys, of as many bits as make equal ones unlikely, and shuffle what has equal keys (Randperm.cu)."""
    _aten.randperm.generator_out(n, generator=generator, out=out)
    if not n:
        return out
    bits = min(64, math.ceil(math.log2(n - (6 * float(n) * n + 1) / (12 * math.log(0.9)))))
    dtype = torch.int32 if bits <= 32 else torch.int64
    limits = torch.iinfo(dtype)
    keys = distributions.integers(generator, torch.empty(n, dtype=dtype), limits.min, limits.max)
    if bits < limits.bits:
        keys &= (1 << bits) - 1
    keys, order = keys.sort(stable=True)
    seed, offset = generator.advance(n)
    for start, size in _islands(keys):
        _shuffle(order[start : start + size], seed, offset, start)
    return out.copy_(order)


def _islands(keys: Tensor) -> Iterator[tuple[int, int]]:
    """Start and size of every group of equal keys in a sorted tensor."""
    _, sizes = keys.unique_consecutive(return_counts=True)
    starts = sizes.cumsum(0) - sizes
    several = sizes > 1
    return zip(starts[several].tolist(), sizes[several].tolist(), strict=True)


def _shuffle(part: Tensor, seed: int, offset: int, thread: int) -> None:
    """What one thread does with its island: the shuffle of Fisher and Yates, from the end."""
    for last in range(len(part) - 1, 0, -1):
        used = len(part) - 1 - last
        word = philox.words(seed, offset + used // philox.WORDS * philox.WORDS, 1, first=thread)[used % philox.WORDS]
        other = int(word) % (last + 1)
        part[[last, other]] = part[[other, last]]


def _native_dropout(generator: Any, input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """A thread has the elements that it loads at once, or elements a grid apart (Dropout.cu)."""
    out, mask = torch.empty_like(input), torch.empty_like(input, dtype=torch.bool)
    if p == 1 or not input.numel():
        return out.zero_(), mask.zero_()
    wide = torch.float64 if input.dtype == torch.float64 else torch.float32
    keep = torch.tensor(1 - p, dtype=wide)
    width = _vector(input)
    if width > 1:
        distributions.write(mask, _beside_each_other(generator, input.numel(), width) < keep)
    else:
        mask.copy_((distributions.uniform_numbers(generator, input.numel(), torch.float32) < keep).view(mask.shape))
    return out.copy_(input.to(wide) * mask * (1 / keep)), mask


def _vector(input: Tensor) -> int:
    """How many elements a thread loads at once: what fits, leaves no rest and starts where it may; 1 for gaps."""
    if input.stride() != torch.empty_like(input).stride():
        return 1
    width = _VECTOR // input.element_size()
    while input.storage_offset() % width or input.numel() % width:
        width //= 2
    return width


def _beside_each_other(generator: Any, count: int, width: int) -> Tensor:
    """Uniform numbers for elements that a thread has `width` of in a row; of four words it may use but two."""
    grid = philox.grid(count)
    seed, offset = generator.advance(grid.steps)
    used, draws = min(width, philox.WORDS), -(-width // philox.WORDS)
    threads = min(grid.threads, count // width)
    rows = []
    for turn in range(-(-count // (grid.threads * width))):
        at = offset + turn * draws * philox.WORDS
        drawn = [philox.words(seed, at + k * philox.WORDS, threads, used) for k in range(draws)]
        rows.append(torch.stack([word for words in drawn for word in words], 1).flatten())
    return distributions.unit(torch.cat(rows)[:count])


def _rrelu(generator: Any, input: Tensor, noise: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, *_: Any) -> Tensor:
    """The slopes of what is not positive go into `noise` (RreluWithNoise.cu)."""
    if not input.numel():
        return torch.empty_like(input)
    units = distributions.uniform_numbers(generator, input.numel(), input.dtype).to(input.dtype).view(input.shape)
    slopes = (units.double() * (upper - lower) + lower).to(input.dtype)
    noise.copy_(torch.where(input <= 0, slopes, 1))
    return torch.where(input <= 0, input * slopes, input)


def _rrelu_in_place(generator: Any, input: Tensor, *args: Any) -> Tensor:
    return input.copy_(_rrelu(generator, input, *args))


def _attention(generator: Any, query: Tensor, key: Tensor, *args: Any, **kwargs: Any) -> tuple:
    """Dropout of the memory-efficient operator: a number for each pair of a query and a key (attention.cu)."""
    drawn_at = generator.advance(query.shape[:3].numel() * key.size(2))
    return attention_kernels.efficient(query, key, *args, **kwargs, drawn_at=drawn_at)


def _normal(func: Any, generator: Any, mean: Tensor | float, std: Tensor | float) -> Tensor:
    """Numbers of mean 0 first; what is a tensor comes on top of them (DistributionTemplates.h)."""
    out = func(mean, std, generator=generator).contiguous()
    if not out.numel():
        return out
    if isinstance(std, Tensor):
        return distributions.normal(generator, out).mul_(std).add_(mean)
    return distributions.normal(generator, out, 0, std).add_(mean)


def _kernels() -> dict[Any, Callable[..., Any]]:
    in_place = {name: _fill(_overload(name), fill) for name, fill in distributions.FILLS.items()}
    named: dict[str, Callable[..., Any]] = {
        **in_place,
        "bernoulli": _bernoulli,
        "bernoulli.p": _like(in_place["bernoulli_.float"]),
        "bernoulli_.Tensor": _bernoulli_into,
        "poisson": _poisson,
        "multinomial": _multinomial,
        "_scaled_dot_product_efficient_attention": _attention,
        "randperm.out": _randperm,
        "randperm.generator_out": _randperm,
        "native_dropout": _native_dropout,
        "rrelu_with_noise": _rrelu,
        "rrelu_with_noise_": _rrelu_in_place,
        "rand_like": _like(in_place["uniform_"]),
        "rand_like.generator": _like(in_place["uniform_"]),
        "randn_like": _like(in_place["normal_"]),
        "randn_like.generator": _like(in_place["normal_"]),
        "randint_like": _like(in_place["random_.from"], 0),
        "randint_like.generator": _like(in_place["random_.from"], 0),
        "randint_like.low_dtype": _like(in_place["random_.from"]),
        "randint_like.low_generator_dtype": _like(in_place["random_.from"]),
    }
    for name in ("normal.Tensor_float", "normal.float_Tensor", "normal.Tensor_Tensor"):
        named[name] = functools.partial(_normal, _overload(name))
    # Those with generators came with later versions of PyTorch.
    return {_overload(name): found for name, found in named.items() if _overload(name) is not None}


def _overload(name: str) -> Any:
    packet, _, overload = name.partition(".")
    return getattr(getattr(_aten, packet), overload or "default", None)


_KERNELS = _kernels()
