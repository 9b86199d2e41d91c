"""Arrays come through as pickle.load gives them; hostile files do nothing but raise."""

import collections
import os
import pickle
import random
import struct
import tracemalloc

import numpy as np
import pytest

from frcnn_lite.export.safe_pickle import UnsafePickleError, load_arrays, read_arrays

ARRAYS = {
    "weight": np.arange(6, dtype=np.float32).reshape(2, 3),
    "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "empty": np.zeros((0, 4), np.float16),
    "scalar": np.array(3, np.int64),
    "big-endian": np.arange(4, dtype=">i2"),
    "flags": np.array([True, False]),
    "names@@": {"weight": "conv2d_0.w_0"},
}


@pytest.mark.parametrize("protocol", [2, 3, 4])
@pytest.mark.parametrize("kind", [dict, collections.OrderedDict])
def test_reads_what_pickle_reads(tmp_path, protocol, kind):
    file = tmp_path / "net.pdparams"
    file.write_bytes(pickle.dumps(kind(ARRAYS), protocol=protocol))
    found = load_arrays(file)
    assert list(found) == list(ARRAYS)
    assert found["names@@"] == ARRAYS["names@@"]
    for name in ARRAYS.keys() - {"names@@"}:
        assert found[name].dtype == ARRAYS[name].dtype
        assert np.array_equal(found[name], ARRAYS[name])


def test_reads_numpy_1_and_python_2():
    new = pickle.dumps({"w": np.ones(2, "f4")}, protocol=2)
    assert np.array_equal(read_arrays(new.replace(b"numpy._core", b"numpy.core"))["w"], [1, 1])
    raw = np.ones(2, "<f4").tobytes()
    state = b"(K\x01K\x02\x85cnumpy\ndtype\nX\x02\0\0\0f4\x89\x88\x87R(K\x03X\1\0\0\0<NNN"
    state += b"J\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb\x89"
    old = b"\x80\x02}X\1\0\0\0wcnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\0\x85U\1b\x87R" + state
    assert np.array_equal(read_arrays(old + b"U" + bytes([len(raw)]) + raw + b"tbs.")["w"], [1, 1])


class Calls:
    """Pickled as a call."""

    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


def global_call(module, name, argument):
    """A call of a global, written by hand: pickle itself would refuse to name what is not there."""
    return f"c{module}\n{name}\n(V{argument}\ntR.".encode()


def huge_array(shape):
    """A pickle that claims `shape` for four bytes."""
    real = pickle.dumps({"w": np.ones(1, "f4")}, protocol=2)
    size = b"".join(b"\x8a\x08" + struct.pack("<q", n) for n in shape)
    return real.replace(b"(K\x01K\x01\x85", b"(K\x01(" + size + b"t", 1)


def hostile():
    """Name and bytes of each file; `flag` is what a successful attack would create."""
    shell = "touch flag"
    code = "open('flag', 'w')"
    good = pickle.dumps({"w": np.ones(2, "f4")}, protocol=2)
    nested = Calls(eval, code)
    for _ in range(5):
        nested = Calls(getattr, nested, "x")
    yield "os.system", pickle.dumps(Calls(os.system, shell))
    yield "os.system in a dict", pickle.dumps({"w": Calls(os.system, shell)})
    yield "builtins.eval", pickle.dumps(Calls(eval, code))
    yield "builtins.exec, protocol 0", global_call("builtins", "exec", code)
    yield "python 2 eval", global_call("__builtin__", "eval", code)
    yield "subprocess", global_call("subprocess", "getoutput", shell)
    yield "dotted attribute", b"\x80\x04\x8c\x05numpy\x94\x8c\x0fndarray.__class_\x94\x93."
    yield "dotted import", b"\x80\x04\x8c\x05numpy\x94\x8c\x0bf2py.os.sys\x94\x93."
    yield "numpy.load", global_call("numpy", "load", "flag")
    yield "numpy's runstring", global_call("numpy.testing._private.utils", "runstring", code)
    yield "nested reduce", pickle.dumps(nested)
    yield "as the state of an array", good[:-2] + pickle.dumps(Calls(os.system, shell), protocol=2)[2:-1] + b"b."
    yield "as the class of an array", b"cnumpy.core.multiarray\n_reconstruct\n(cos\nsystem\nK\x00U\x01btR."
    yield "as the type of an array", b"cnumpy\ndtype\n(cos\nsystem\ntR."
    yield "object array", pickle.dumps({"w": np.array([Calls(os.system, shell)], dtype=object)})
    yield "dtype with fields", pickle.dumps({"w": np.zeros(1, dtype=[("a", "f4")])})
    yield "memo: a call under another name", b"\x80\x02cos\nsystem\nq\x000cnumpy\ndtype\nq\x00h\x00U\x02f4\x85R."
    yield "memo: forward reference", b"\x80\x02h\x07."
    yield "memo: huge index", b"\x80\x02}r\xff\xff\xff\xffX\1\0\0\0wj\xff\xff\xff\xffs."
    yield "memo: a dict inside itself", b"\x80\x02}q\x00X\1\0\0\0wh\x00s."
    yield "nested tuples as key", b"\x80\x02})" + b"q\x00h\x00\x86" * 64 + b"Ns."
    yield "deep nesting", b"\x80\x02" + b"(" * 100_000 + b"t" * 100_000 + b"."
    yield "persistent id", b"Pflag\n."
    yield "extension registry", b"\x80\x02\x82\x01."
    yield "INST", b"(Vtouch flag\nios\nsystem\n."
    yield "OBJ", b"(cos\nsystem\nVtouch flag\no."
    yield "NEWOBJ", b"\x80\x02cos\nsystem\nVtouch flag\n\x85\x81."
    yield "huge bytes", b"\x80\x04\x8e" + struct.pack("<Q", 2**62) + b"x."
    yield "huge text", b"\x80\x04\x8d" + struct.pack("<Q", 2**40) + b"x."
    yield "huge long", b"\x80\x02\x8b\xff\xff\xff\x7f1."
    yield "huge frame", b"\x80\x04\x95" + struct.pack("<Q", 2**63) + b"."
    yield "huge decimal", b"I" + b"9" * 1_000_000 + b"\n."
    yield "huge shape", huge_array([10**12])
    yield "shape that overflows", huge_array([2**62, 2**62])
    yield "shape of nothing times much", huge_array([0, 2**62])
    yield "negative shape", huge_array([-1])
    yield "cut short", good[:-10]
    yield "no stop", good[:-1]
    yield "nothing", b""
    yield "a list", pickle.dumps([1, 2])
    yield "not a pickle", b"PK\x03\x04 this is a zip file"
    yield (
        "array never filled",
        b"\x80\x02}X\1\0\0\0wcnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\0\x85U\1b\x87Rs.",
    )


CORPUS = list(hostile())


@pytest.mark.parametrize(("name", "data"), CORPUS, ids=[name for name, _ in CORPUS])
def test_hostile_file_raises_and_does_nothing(tmp_path, monkeypatch, name, data):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "foreign.pdparams"
    file.write_bytes(data)
    tracemalloc.start()
    with pytest.raises(UnsafePickleError, match=r"foreign\.pdparams, byte"):
        load_arrays(file)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [path.name for path in tmp_path.iterdir()] == ["foreign.pdparams"]
    assert peak < 100 * 2**20


def test_corpus_would_work_elsewhere(tmp_path, monkeypatch):
    """The attacks are real: pickle.load creates the file that ours never does."""
    monkeypatch.chdir(tmp_path)
    dangerous = dict(CORPUS)
    pickle.loads(dangerous["builtins.eval"])
    assert (tmp_path / "flag").exists()


def test_message_names_what_was_asked_for():
    with pytest.raises(UnsafePickleError, match=r"wants '(posix|nt)\.system'; only NumPy arrays are admitted"):
        read_arrays(dict(CORPUS)["os.system"])


def test_limit_on_size(tmp_path):
    file = tmp_path / "net.pdparams"
    file.write_bytes(pickle.dumps({"w": np.zeros(100)}))
    with pytest.raises(UnsafePickleError, match="more than max_bytes=100"):
        load_arrays(file, max_bytes=100)


def test_random_damage_raises_or_reads_arrays():
    """Ten thousand damaged copies: nothing but the two outcomes."""
    draw = random.Random(0)
    good = pickle.dumps(ARRAYS, protocol=4)
    refused = 0
    for _ in range(10_000):
        data = bytearray(good)
        for _ in range(draw.randint(1, 6)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        try:
            found = read_arrays(bytes(data[: draw.randint(1, len(data))] if draw.random() < 0.2 else data))
        except UnsafePickleError:
            refused += 1
        else:
            assert all(isinstance(value, np.ndarray | dict) for value in found.values())
    assert refused > 2_000
