"""Arrays come through as pickle.load gives them; hostile files do nothing but raise."""

import collections
import os
import pickle
import random
import struct
import sys
import tracemalloc

import numpy as np
import pytest

from course.lessons.nb31.safe_pickle import UnsafePickleError, load_arrays, read_arrays

ARRAYS = {
    "weight": np.arange(6, dtype=np.float32).reshape(2, 3),
    "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "empty": np.zeros((0, 4), np.float16),
    "scalar": np.array(3, np.int64),
    "big-endian": np.arange(4, dtype=">i2"),
    "flags": np.array([True, False]),
    "names@@": {"weight": "conv2d_0.w_0"},
}


# An array of two ones as NumPy 1 and Python 2 wrote it: an empty array in a dict, and what BUILD fills it with.
OLD = b"\x80\x02}X\1\0\0\0wcnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\0\x85U\1b\x87R"
STATE = (
    b"(K\x01K\x02\x85cnumpy\ndtype\nX\x02\0\0\0f4\x89\x88\x87R(K\x03X\1\0\0\0<NNN"
    b"J\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb\x89U\x08" + np.ones(2, "<f4").tobytes() + b"tb"
)


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
    assert np.array_equal(read_arrays(OLD + STATE + b"s.")["w"], [1, 1])


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
    yield "INST", b"(X\x0a\0\0\0touch flagios\nsystem\n."
    yield "OBJ", b"(cos\nsystem\nX\x0a\0\0\0touch flago."
    yield "NEWOBJ", b"\x80\x02cos\nsystem\nVtouch flag\n\x85\x81."
    yield "NEWOBJ of what is admitted", b"\x80\x02ccollections\nOrderedDict\n)\x81."
    yield "NEWOBJ_EX", b"\x80\x04ccollections\nOrderedDict\n)}\x92."
    yield "OBJ of what is admitted", b"\x80\x02(ccollections\nOrderedDict\no."
    yield "persistent id on the stack", b"\x80\x02U\x04flagQ."
    yield "extension registry, four bytes", b"\x80\x02\x84\x01\x00\x00\x00."
    yield "DUP", b"\x80\x02}2."
    yield "a set with nested tuples", b"\x80\x04\x8f()" + b"\x94h\x00\x86" * 64 + b"\x90."
    yield "a bytearray", b"\x80\x05\x96" + struct.pack("<Q", 1) + b"x."
    yield "a buffer from outside", b"\x80\x05\x97\x98."
    yield "a list that grows", b"\x80\x02](U\x01ae."
    yield "LONG4", b"\x80\x02\x8b\x01\x00\x00\x00\x01."
    yield "builtins.getattr", b"\x80\x02cbuiltins\ngetattr\ncnumpy\nndarray\nU\x09__class__\x86R."
    yield "importlib", global_call("importlib", "import_module", "this")
    yield "a module that nobody has imported", global_call("antigravity", "fly", "")
    yield "attributes of what is admitted", b"\x80\x04\x8c\x05numpy\x8c\x0dndarray.dumps\x93."
    yield "a call of a result", b"\x80\x02ccollections\nOrderedDict\n)R)R."
    yield "a call of an array", b"\x80\x02cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\nK\0tR)R."
    yield "a call of text", b"\x80\x02U\x06system(U\x04flagtR."
    yield "a dict of arguments", b"\x80\x02ccollections\nOrderedDict\n}U\x01aU\x01bs\x85R."
    yield "a codec that unpacks", b"\x80\x02c_codecs\nencode\n(X\1\0\0\0xU\x04zlibtR."
    yield "a codec by another name", b"\x80\x02c_codecs\nencode\n(X\1\0\0\0xU\x05rot13tR."
    yield "BUILD of what is looked up", b"\x80\x02cnumpy\ndtype\n}X\x04\0\0\0kindX\1\0\0\0xsb."
    yield "BUILD with slots", b"\x80\x02cnumpy\ndtype\nN}X\x04\0\0\0kindX\5\0\0\0arrays\x86b."
    yield "BUILD of a dict", b"\x80\x02}}X\7\0\0\0__dict__X\1\0\0\0xsb."
    yield "BUILD of text", b"\x80\x02U\x01aN}X\1\0\0\0aX\1\0\0\0xs\x86b."
    yield "BUILD of an array twice", OLD + STATE + STATE + b"s."
    yield "ten thousand calls in each other", b"\x80\x02" + b"cos\nsystem\n(" * 10_000 + b"tR" * 10_000 + b"."
    yield "memo: places that would take gigabytes", b"\x80\x02}r\x00\x00\x00\x20X\1\0\0\0wK\1s."
    yield "memo: a negative place", b"\x80\x02}p-1\n."
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
    with pytest.raises(UnsafePickleError, match=r"^foreign\.pdparams: "):
        load_arrays(file)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert not {"this", "antigravity"} & sys.modules.keys()
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


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("INST", "foreign: INST has no business in a file of arrays"),
        ("persistent id", "foreign: PERSID has no business"),
        ("extension registry", "foreign: EXT1 has no business"),
        ("nested tuples as key", "foreign: keys must be text, in a dict"),
        ("not a pickle", "foreign: PERSID has no business"),  # a zip file begins with P
        ("a call of a result", "foreign: damaged pickle .TypeError"),
        ("BUILD with slots", "foreign: BUILD of dtype, which is not an array"),
        ("a codec that unpacks", "foreign: calls bytes in a way that makes no plain array"),
        ("nothing", "foreign: damaged pickle .EOFError"),
    ],
)
def test_messages_name_what_is_refused(name, words):
    with pytest.raises(UnsafePickleError, match=f"^{words}"):
        read_arrays(dict(CORPUS)[name], "foreign")


def test_limit_on_size(tmp_path):
    file = tmp_path / "net.pdparams"
    file.write_bytes(pickle.dumps({"w": np.zeros(100)}))
    with pytest.raises(UnsafePickleError, match="more than `max_bytes=100`"):
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
