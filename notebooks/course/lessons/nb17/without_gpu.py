"""Kernels for GPUs, checked on a machine that has none.

`triton_on_cpu` runs Triton's kernels through its interpreter, `launch_with_compiler` runs CUDA source through the C++
compiler, one thread of the grid after another, and `ptx` compiles CUDA source for a GPU, which takes no driver.
"""

import ctypes
import functools
import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np
from torch import Tensor

from course.lessons.nb17.roi_module import roi_module


def triton_on_cpu(name: str) -> ModuleType:
    """A second copy of `triton_<name>.py` whose kernels take tensors on the CPU.

    Raises:
        ImportError: triton is not installed.
    """
    _loop_bounds_for_numpy()
    spec = importlib.util.find_spec(f"frcnn_lite.ops.kernels.triton_{name}")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with mock.patch.dict(os.environ, TRITON_INTERPRET="1"):  # read where a kernel is decorated
        spec.loader.exec_module(module)
    return module


@functools.cache
def _loop_bounds_for_numpy() -> None:
    """Let the interpreter read the bounds of a loop: Triton 3.6, of torch 2.11, asks NumPy 2.4 for what it refuses,
    `int(array)` of an array with one number and a dimension."""
    from triton.runtime import interpreter

    prepare = interpreter._patch_lang_tensor

    def prepare_and_index(tensor: type, scope: Any) -> None:
        prepare(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda bound: int(bound.handle.data.item()))

    interpreter._patch_lang_tensor = prepare_and_index


# What CUDA's compiler knows by itself, and a launch: the arguments of a kernel come as an array of pointers to them.
PRELUDE = r"""
#include <cstddef>
#include <type_traits>
#include <utility>
#define __global__
struct Place { unsigned x, y, z; };
static thread_local Place threadIdx, blockIdx, blockDim, gridDim;

template <class... A, std::size_t... I>
void call(void (*kernel)(A...), void** arguments, std::index_sequence<I...>) {
    kernel(*static_cast<std::remove_reference_t<A>*>(arguments[I])...);
}
template <class... A>
void launch(void (*kernel)(A...), void** arguments, unsigned blocks, unsigned threads) {
    blockDim.x = threads;
    gridDim.x = blocks;
    for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x)
        for (threadIdx.x = 0; threadIdx.x < threads; ++threadIdx.x)
            call(kernel, arguments, std::index_sequence_for<A...>{});
}
"""


def compiler() -> str | None:
    """The machine's C++ compiler, if it has one."""
    return next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), None)


def launch_with_compiler(
    source: str, name: str, macros: tuple[str, ...], threads: int, arguments: Sequence[Any]
) -> None:
    """The `Launch` of `roi_module` for tensors on the CPU or on virtual GPUs: the same source and grid, one thread at a
    time."""
    held = [ctypes.c_void_p(x.data_ptr()) if isinstance(x, Tensor) else np.asarray(x) for x in arguments]
    pointers = [x.ctypes.data if isinstance(x, np.ndarray) else ctypes.addressof(x) for x in held]
    _library(source, name, macros).launch_kernel(
        (ctypes.c_void_p * len(held))(*pointers), roi_module.block_count(threads), roi_module.THREADS
    )


@functools.cache
def _library(source: str, name: str, macros: tuple[str, ...]) -> ctypes.CDLL:
    found = compiler()
    if found is None:
        raise FileNotFoundError("no C++ compiler (c++, g++ or clang++) on PATH")
    export = f'extern "C" void launch_kernel(void** a, unsigned b, unsigned t) {{ launch({name}, a, b, t); }}'
    with tempfile.TemporaryDirectory() as folder:
        file, library = Path(folder, "kernel.cpp"), Path(folder, "kernel.so")
        file.write_text(PRELUDE + source + export, encoding="utf-8")
        options = ["-std=c++17", "-O2", "-shared", "-fPIC", *(f"-D{macro}" for macro in macros)]
        subprocess.run([found, *options, str(file), "-o", str(library)], check=True)
        return ctypes.CDLL(str(library))  # stays loaded when the folder is gone


def ptx(source: str, macros: tuple[str, ...], architecture: str = "compute_80") -> str:
    """CUDA source compiled by NVRTC, which comes with torch's CUDA wheels; the text of the result.

    Raises:
        ImportError: no NVRTC here.
        ValueError: the source does not compile; carries the compiler's log.
    """
    from cuda.bindings import nvrtc

    _, program = nvrtc.nvrtcCreateProgram(source.encode(), b"kernel.cu", 0, [], [])
    options = [f"--gpu-architecture={architecture}".encode(), *(f"-D{macro}".encode() for macro in macros)]
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        log = bytes(nvrtc.nvrtcGetProgramLogSize(program)[1])
        nvrtc.nvrtcGetProgramLog(program, log)
        raise ValueError(log.decode())
    text = bytes(nvrtc.nvrtcGetPTXSize(program)[1])
    nvrtc.nvrtcGetPTX(program, text)
    return text.rstrip(b"\0").decode()
