"""Read a pickle that may hold NumPy arrays, text and numbers, and nothing else.

A pickle is a program for a small stack machine, and some of its instructions import a name and call it: opening a
foreign `.pdparams` or `.pkl` with `pickle.load` runs whatever its author wanted. Here the program is read by
`pickletools.genops`, which runs nothing, and interpreted by the few instructions below. A global is looked up in a
short table of names that stand for *descriptions* of arrays; nothing is imported, nothing is called.

Memory: bytes are taken only if they are in the file, and an array is a view of its bytes, so a shape cannot ask for
more than the file holds.
"""

import math
import pickletools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

MAX_BYTES = 4 * 2**30
DTYPE = re.compile(r"[fiu][1248]|f16|b1|c8|c16")


class UnsafePickleError(ValueError):
    """The file asks for more than arrays, or is no whole pickle."""


@dataclass
class _Array:
    value: np.ndarray | None = None  # None until BUILD brings shape, type and bytes


@dataclass
class _DType:
    code: str
    order: str = "<"


_MARK = object()
_GLOBALS = {
    "numpy.core.multiarray _reconstruct": "array",  # NumPy 1
    "numpy._core.multiarray _reconstruct": "array",  # NumPy 2
    "numpy ndarray": "ndarray",
    "numpy dtype": "dtype",
    "_codecs encode": "bytes",  # how protocols below 3 write bytes
    "__builtin__ bytes": "no bytes",  # and how they write b""
    "collections OrderedDict": "dict",
}
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_NUMBERS = {"BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT"}
_TEXTS = {"BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "BINSTRING", "SHORT_BINSTRING"}
_LITERALS = {*_NUMBERS, *_TEXTS, "BINBYTES", "SHORT_BINBYTES", "BINBYTES8"}
_EMPTY: dict[str, type] = {"EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


@dataclass(frozen=True)
class _Global:
    kind: str


def load_arrays(file: str | Path, max_bytes: int = MAX_BYTES) -> dict[str, Any]:
    """The dict in a pickle file: text to array, or to a dict of text; arrays are read-only views of the file's bytes.

    Raises FileNotFoundError, and UnsafePickleError naming the instruction and its position for anything else than
    arrays in a dict, for a damaged file, and for one larger than `max_bytes`.
    """
    path = Path(file)
    size = path.stat().st_size
    if size > max_bytes:
        raise UnsafePickleError(f"{path.name} has {size} bytes, more than max_bytes={max_bytes}")
    return read_arrays(path.read_bytes(), path.name)


def read_arrays(data: bytes, name: str = "pickle") -> dict[str, Any]:
    """`load_arrays` of bytes in memory; `name` stands in error messages."""
    machine = _Machine()
    position = None
    try:
        for opcode, argument, position in pickletools.genops(data):  # noqa: B007 - the error names it
            if opcode.name == "STOP":
                break
            machine.run(opcode.name, argument)
        return _checked(machine.result())
    except UnsafePickleError as error:
        raise UnsafePickleError(f"{name}, byte {position}: {error}") from None
    # what a malformed program does to a stack, a memo or an array; genops says ValueError for one cut short
    except (ValueError, TypeError, IndexError, KeyError, AttributeError, OverflowError, MemoryError) as error:
        raise UnsafePickleError(f"{name}, byte {position}: damaged pickle ({type(error).__name__}: {error})") from None


class _Machine:
    """The stack and the memo of a pickle, without import and call."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def run(self, name: str, argument: Any) -> None:
        """One instruction."""
        stack = self.stack
        if name in _LITERALS:
            stack.append(argument)
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name in _EMPTY:
            stack.append(_EMPTY[name]())
        elif name in _TUPLES:
            stack.append(tuple(reversed([stack.pop() for _ in range(_TUPLES[name])])))
        elif name in ("MEMOIZE", "BINPUT", "LONG_BINPUT", "PUT"):
            self.memo[len(self.memo) if argument is None else argument] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET", "GET"):
            stack.append(self.memo[argument])
        elif name not in ("PROTO", "FRAME"):
            self._compose(name, argument)

    def _compose(self, name: str, argument: Any) -> None:
        stack = self.stack
        if name == "MARK":
            stack.append(_MARK)
        elif name == "TUPLE":
            stack.append(tuple(self._above_mark()))
        elif name == "SETITEMS":
            items = self._above_mark()
            _set_items(stack[-1], items[::2], items[1::2])
        elif name == "SETITEM":
            value, key = stack.pop(), stack.pop()
            _set_items(stack[-1], [key], [value])
        elif name == "GLOBAL":
            stack.append(_look_up(argument))
        elif name == "STACK_GLOBAL":
            attribute, module = stack.pop(), stack.pop()
            stack.append(_look_up(f"{module} {attribute}"))
        elif name == "REDUCE":
            arguments, called = stack.pop(), stack.pop()
            stack.append(_describe(called, arguments))
        elif name == "BUILD":
            state = stack.pop()
            _complete(stack[-1], state)
        else:
            raise UnsafePickleError(f"{name} has no business in a file of arrays")

    def _above_mark(self) -> list[Any]:
        items: list[Any] = []
        while (item := self.stack.pop()) is not _MARK:
            items.append(item)
        return items[::-1]

    def result(self) -> Any:
        """What STOP leaves."""
        (value,) = self.stack
        return value


def _look_up(name: str) -> _Global:
    if name not in _GLOBALS:
        raise UnsafePickleError(f"wants {name.replace(' ', '.')!r}; only NumPy arrays are admitted")
    return _Global(_GLOBALS[name])


def _set_items(target: Any, keys: list[Any], values: list[Any]) -> None:
    # text only: to hash a key made of nested tuples can take for ever
    if type(target) is not dict or not all(type(key) is str for key in keys):
        raise UnsafePickleError("keys must be text, in a dict")
    target.update(zip(keys, values, strict=True))


def _describe(called: Any, arguments: Any) -> Any:
    """The description that stands for calling one of the admitted globals."""
    kind = called.kind if isinstance(called, _Global) else None
    if kind == "array" and arguments[0] == _Global("ndarray"):
        return _Array()
    if kind == "dtype" and type(arguments[0]) is str and DTYPE.fullmatch(arguments[0]):
        return _DType(arguments[0])
    if kind == "bytes" and type(arguments[0]) is str and arguments[1:] == ("latin1",):
        return arguments[0].encode("latin1")
    if kind in ("dict", "no bytes") and arguments == ():
        return {} if kind == "dict" else b""
    raise UnsafePickleError(f"calls {kind or 'something that is no function'} in a way that makes no plain array")


def _complete(target: Any, state: Any) -> None:
    """BUILD: fill in a description."""
    if isinstance(target, _DType) and state[1] in ("<", ">", "|") and state[2:5] == (None, None, None):
        target.order = state[1]
    elif isinstance(target, _Array) and target.value is None and isinstance(state[2], _DType):
        target.value = _array(*state)
    else:
        raise UnsafePickleError("BUILD of something that is no plain array")


def _array(_version: int, shape: tuple[int, ...], dtype: _DType, fortran: bool, data: bytes | str) -> np.ndarray:
    raw = data.encode("latin1") if type(data) is str else data  # text: written by Python 2
    kind = np.dtype(dtype.order + dtype.code)
    if type(raw) is not bytes or not all(type(n) is int and n >= 0 for n in shape):
        raise UnsafePickleError("an array needs sizes and bytes")
    if math.prod(shape) * kind.itemsize != len(raw):
        raise UnsafePickleError(f"an array of shape {shape}, {kind}, with {len(raw)} bytes")
    return np.frombuffer(raw, kind).reshape(shape, order="F" if fortran else "C")


def _checked(value: Any) -> dict[str, Any]:
    """Arrays in place of their descriptions, and nothing nested deeper than a dict of text in the dict."""
    if type(value) is not dict:
        raise UnsafePickleError(f"holds a {type(value).__name__}, not a dict of arrays")
    found: dict[str, Any] = {}
    for key, entry in value.items():
        if isinstance(entry, _Array) and entry.value is not None:
            found[key] = entry.value
        elif type(entry) is dict and all(type(text) is str for text in entry.values()):
            found[key] = entry
        else:
            raise UnsafePickleError(f"entry {key!r} is a {type(entry).__name__.strip('_').lower()}, not an array")
    return found
