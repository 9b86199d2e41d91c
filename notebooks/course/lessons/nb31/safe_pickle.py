"""Read a pickle that may hold NumPy arrays, text and numbers, and nothing else.

A pickle is a program for a small stack machine, and some of its instructions import a name and call it: opening a
foreign `.pdparams` or `.pkl` with `pickle.load` runs whatever its author wanted. Here the machine of the standard
library runs with the instructions that arrays need and no others, and what a file looks up by name is found in a short
table of *stand-ins*. Nothing is imported, and nothing of NumPy is called before sizes and types have been checked.

Memory and time: bytes are taken only if they are in the file, and an array is a view of its bytes, so a shape cannot
ask for more than the file holds. It is the machine written in Python, `pickle._Unpickler`, whose instructions can be
taken away. `pickle.Unpickler`, written in C, keeps them all, whatever its `find_class` says: nine bytes make it fill
gigabytes with an empty memo, and a key of nested tuples takes it for ever to hash.
"""

import io
import math
import pickle
import pickletools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

MAX_BYTES = 4 * 2**30
DTYPE = re.compile(r"[fiu][1248]|f16|b1|c8|c16")


class UnsafePickleError(ValueError):
    """The file asks for more than arrays, or is not a whole pickle."""


def load_arrays(file: str | Path, max_bytes: int = MAX_BYTES) -> dict[str, Any]:
    """The dict in a pickle file: text to array, or to a dict of text; arrays are read-only views of the file's bytes.

    Raises FileNotFoundError, and UnsafePickleError naming what the file asks for that is not an array in a dict, also
    for a damaged file, and for one larger than `max_bytes`.
    """
    path = Path(file)
    size = path.stat().st_size
    if size > max_bytes:
        raise UnsafePickleError(f"{path.name} has {size} bytes, more than `max_bytes={max_bytes}`")
    return read_arrays(path.read_bytes(), path.name)


def read_arrays(data: bytes, name: str = "pickle") -> dict[str, Any]:
    """`load_arrays` of bytes in memory; `name` stands in error messages."""
    try:
        return _checked(_Machine(io.BytesIO(data), encoding="latin1").load())
    except UnsafePickleError as error:
        raise UnsafePickleError(f"{name}: {error}") from None
    except Exception as error:  # whatever a malformed program does to a stack, a memo or an array
        raise UnsafePickleError(f"{name}: damaged pickle ({type(error).__name__}: {error})") from None


class _Array:
    """Stands for an array; empty until BUILD brings shape, type and bytes."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: np.ndarray | None = None

    def __setstate__(self, state: Any) -> None:
        if self.value is not None or not isinstance(state[2], _DType):
            raise UnsafePickleError("BUILD of something that is not a plain array")
        _version, shape, dtype, fortran, data = state
        raw = data.encode("latin1") if type(data) is str else data  # text: written by Python 2
        kind = np.dtype(dtype.order + dtype.code)
        if type(raw) is not bytes or not all(type(n) is int and n >= 0 for n in shape):
            raise UnsafePickleError("an array needs sizes and bytes")
        if math.prod(shape) * kind.itemsize != len(raw):
            raise UnsafePickleError(f"an array of shape {shape}, {kind}, with {len(raw)} bytes")
        self.value = np.frombuffer(raw, kind).reshape(shape, order="F" if fortran else "C")


class _DType:
    """Stands for the type of an array: a code such as "f4", and a byte order."""

    __slots__ = ("code", "order")

    def __init__(self, code: str) -> None:
        self.code, self.order = code, "<"

    def __setstate__(self, state: Any) -> None:
        if state[1] not in ("<", ">", "|") or state[2:5] != (None, None, None):
            raise UnsafePickleError("BUILD of a type that is not plain")
        self.order = state[1]


class _Global:
    """Stands for what a file looks up by name; called, it gives a stand-in or plain data."""

    __slots__ = ("kind",)

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __call__(self, *arguments: Any) -> Any:
        match self.kind, arguments:
            case "array", (_Global(kind="ndarray"), *_):
                return _Array()
            case "dtype", (str() as code, *_) if DTYPE.fullmatch(code):
                return _DType(code)
            case "bytes", (str() as text, "latin1"):
                return text.encode("latin1")
            case "no bytes", ():
                return b""
            case "dict", ():
                return {}
        raise UnsafePickleError(f"calls {self.kind} in a way that makes no plain array")

    def __setstate__(self, state: Any) -> NoReturn:
        raise UnsafePickleError(f"BUILD of {self.kind}, which is not an array")


_GLOBALS = {
    "numpy.core.multiarray._reconstruct": "array",  # NumPy 1
    "numpy._core.multiarray._reconstruct": "array",  # NumPy 2
    "numpy.ndarray": "ndarray",
    "numpy.dtype": "dtype",
    "_codecs.encode": "bytes",  # how protocols below 3 write bytes
    "__builtin__.bytes": "no bytes",  # and how they write b""
    "collections.OrderedDict": "dict",
}
_INSTRUCTIONS = (
    *("PROTO", "FRAME", "MARK", "STOP", "NONE", "NEWTRUE", "NEWFALSE"),
    *("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT"),
    *("BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "BINSTRING", "SHORT_BINSTRING"),
    *("BINBYTES", "SHORT_BINBYTES", "BINBYTES8"),
    *("EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "EMPTY_DICT"),
    *("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE", "GET", "BINGET", "LONG_BINGET"),
    *("GLOBAL", "STACK_GLOBAL", "REDUCE", "BUILD"),
)


class _Admitted(dict[int, Any]):
    """What each instruction does, by its code; an instruction that is not there is refused by name."""

    def __missing__(self, code: int) -> NoReturn:
        name = {ord(opcode.code): opcode.name for opcode in pickletools.opcodes}.get(code, f"byte {code}")
        raise UnsafePickleError(f"{name} has no business in a file of arrays")


class _Machine(pickle._Unpickler):  # type: ignore[name-defined, misc]
    """The stack and the memo of a pickle, without import."""

    stack: list[Any]
    pop_mark: Callable[[], list[Any]]
    dispatch = _Admitted(
        (code, pickle._Unpickler.dispatch[code])  # type: ignore[attr-defined]
        for code in (getattr(pickle, name)[0] for name in _INSTRUCTIONS)
    )

    def find_class(self, module: str, name: str) -> _Global:
        if f"{module}.{name}" not in _GLOBALS:
            raise UnsafePickleError(f"wants '{module}.{name}'; only NumPy arrays are admitted")
        return _Global(_GLOBALS[f"{module}.{name}"])

    def load_setitem(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self._set([key], [value])

    def load_setitems(self) -> None:
        items = self.pop_mark()
        self._set(items[::2], items[1::2])

    def _set(self, keys: list[Any], values: list[Any]) -> None:
        # text only: to hash a key made of nested tuples can take for ever
        if type(self.stack[-1]) is not dict or not all(type(key) is str for key in keys):
            raise UnsafePickleError("keys must be text, in a dict")
        self.stack[-1].update(zip(keys, values, strict=True))

    dispatch |= {pickle.SETITEM[0]: load_setitem, pickle.SETITEMS[0]: load_setitems}


def _checked(value: Any) -> dict[str, Any]:
    """Arrays in place of their stand-ins, and nothing nested deeper than a dict of text in the dict."""
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
