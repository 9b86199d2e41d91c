"""An einsum equation read aloud: what each letter is, what is summed, and which nest of loops it stands for."""

import math
import re
from dataclasses import dataclass
from string import ascii_uppercase


@dataclass(frozen=True)
class Index:
    """One letter: its size, the operands that carry it, those that stretch a 1 to reach it, and whether it is summed.

    `stretched` is where einsum is silent about a mistake: an axis of size 1 fits every size.
    """

    name: str
    size: int
    operands: tuple[int, ...]
    stretched: tuple[int, ...]
    summed: bool


@dataclass(frozen=True)
class EinsumReading:
    """An equation with its shapes, taken apart. `indices` holds the kept letters in output order, then the summed."""

    terms: tuple[str, ...]
    output: str
    shapes: tuple[tuple[int, ...], ...]
    indices: tuple[Index, ...]

    @property
    def equation(self) -> str:
        return f"{','.join(self.terms)}->{self.output}"

    @property
    def output_shape(self) -> tuple[int, ...]:
        return tuple(index.size for index in self.indices if not index.summed)

    @property
    def multiply_adds(self) -> int:
        """Turns of the innermost loop: the product of all sizes."""
        return math.prod(index.size for index in self.indices)

    def read_aloud(self) -> str:
        """The equation in words, one line a letter."""
        lines = [f"{self.equation}: {_shapes(self.shapes)} -> {self.output_shape}"]
        for index in self.indices:
            carriers = " and ".join(ascii_uppercase[k] for k in index.operands)
            fate = "summed away" if index.summed else "kept"
            lines.append(f"  {index.name} ({index.size}): in {carriers}, {fate}{_role(index)}")
            for k in index.stretched:
                lines.append(f"      careful: {ascii_uppercase[k]} has 1 here, stretched to {index.size}")
        return "\n".join(lines)

    def loop_nest(self) -> str:
        """Python source of `contract(A, B, ..., out)`, which adds the result into `out`, a tensor of zeros."""
        operands = ascii_uppercase[: len(self.terms)]
        lines = [f"def contract({', '.join(operands)}, out):"]
        for depth, index in enumerate(self.indices, start=1):
            note = "  # summed" if index.summed else ""
            lines.append(f"{'    ' * depth}for {index.name} in range({index.size}):{note}")
        factors = " * ".join(
            _element(operand, term, shape, self)
            for operand, term, shape in zip(operands, self.terms, self.shapes, strict=True)
        )
        target = f"out[{', '.join(self.output)}]" if self.output else "out[()]"
        lines.append(f"{'    ' * (len(self.indices) + 1)}{target} += {factors}")
        return "\n".join(lines)


def explain(equation: str, *shapes: tuple[int, ...]) -> EinsumReading:
    """Read `equation` for operands of `shapes`; sizes in, no tensors needed.

    Without `->` the output holds the letters that occur once, in alphabetical order, as in NumPy and torch.
    Raises ValueError, in the words of the equation, for what einsum would refuse: a wrong number of operands or axes,
    two sizes for one letter, an output letter from nowhere or twice. Ellipses are not read.
    """
    terms, output = _split(equation)
    if len(terms) != len(shapes):
        raise ValueError(f"`shapes`: expected {len(terms)}, one for each of {terms}, got {len(shapes)}")
    for k, (term, shape) in enumerate(zip(terms, shapes, strict=True)):
        if len(term) != len(shape):
            operand = ascii_uppercase[k]
            raise ValueError(f"`shapes`: expected {len(term)} axes ({term}) for operand {operand}, got {tuple(shape)}")
    for letter in output:
        if output.count(letter) > 1 or not any(letter in term for term in terms):
            raise ValueError(f"`equation`: expected each output letter once, from an input, got {letter} in {output}")
    summed = sorted({letter for term in terms for letter in term} - set(output), key="".join(terms).index)
    indices = tuple(_index(letter, terms, shapes, letter not in output) for letter in [*output, *summed])
    return EinsumReading(terms, output, tuple(map(tuple, shapes)), indices)


def _split(equation: str) -> tuple[tuple[str, ...], str]:
    compact = equation.replace(" ", "")
    if not re.fullmatch(r"[a-zA-Z]*(,[a-zA-Z]*)*(->[a-zA-Z]*)?", compact):
        raise ValueError(f"`equation`: expected letters, commas and at most one ->, got {equation!r}")
    inputs, arrow, output = compact.partition("->")
    if not arrow:
        output = "".join(sorted(letter for letter in set(inputs) - {","} if inputs.count(letter) == 1))
    return tuple(inputs.split(",")), output


def _index(letter: str, terms: tuple[str, ...], shapes: tuple[tuple[int, ...], ...], summed: bool) -> Index:
    """Collect every axis the letter names; all must agree, but for axes of size 1."""
    axes = [
        (k, size)
        for k, (term, shape) in enumerate(zip(terms, shapes, strict=True))
        for name, size in zip(term, shape, strict=True)
        if name == letter
    ]
    sizes = sorted({size for _, size in axes if size != 1}) or [1]
    if len(sizes) > 1:
        where = ", ".join(f"{size} in {ascii_uppercase[k]}" for k, size in axes)
        raise ValueError(f"`shapes`: expected one size for {letter}, got {where}")
    operands = tuple(dict.fromkeys(k for k, _ in axes))
    stretched = tuple(dict.fromkeys(k for k, size in axes if size != sizes[0]))
    return Index(letter, sizes[0], operands, stretched, summed)


def _role(index: Index) -> str:
    """What the letter does, in the terms of a batched matrix product."""
    if len(index.operands) > 1:
        return ": a dot product runs along it" if index.summed else ": a batch axis, paired element by element"
    return ": an axis added up before any product" if index.summed else ": carried to the output"


def _element(operand: str, term: str, shape: tuple[int, ...], reading: EinsumReading) -> str:
    sizes = {index.name: index.size for index in reading.indices}
    places = [letter if size == sizes[letter] else "0" for letter, size in zip(term, shape, strict=True)]
    return f"{operand}[{', '.join(places)}]" if places else f"{operand}[()]"


def _shapes(shapes: tuple[tuple[int, ...], ...]) -> str:
    return ", ".join(f"{ascii_uppercase[k]} {shape}" for k, shape in enumerate(shapes))
