"""The whole of PyTorch's own oracles on virtual GPUs; `make oracle PYTORCH=DIR` adds the tests of a checkout of yours.

python packages/vgpu/tools/oracle.py [--pytorch DIR] [--quick]

Without a checkout: OpInfo (float32, float64, complex64), the negative form, modules and optimizers, all in the wheel.
With one, at the release that is installed: its multi-GPU test files, unmodified, on two virtual GPUs.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent

TABLES = [
    ["opinfo_check.py", "--dtype", "float32"],
    ["opinfo_check.py", "--dtype", "float64"],
    ["opinfo_check.py", "--dtype", "complex64"],
    ["opinfo_negative.py"],
    ["opinfo_negative.py", "--other", "cuda:0"],
    ["module_check.py"],
    ["-m", "record", "check"],
]
# A file of the checkout, and the tests of it that concern several devices or the device of a tensor.
FILES = {
    "test/distributed/test_data_parallel.py": "",
    "test/test_cuda_multigpu.py": "",
    "test/test_cuda.py": "(device or stream or event or seed or out_of_memory or memory_fraction or mismatch) "
    "and not graph and not large and not threads",
    "test/test_autograd.py": "device or multi_gpu or cross_device",
    "test/test_nn.py": "replicate or parallel or cuda",
    "test/test_torch.py": "device or cuda",
    "test/test_serialization.py": "cuda or map_location",
}
# Tests that cannot pass, by parts of their names in lower case. This list only ever shrinks.
REASONS = {
    "there is no NCCL, cuDNN or CUDA runtime": "nccl external_stream gru_grad lstm_grad emit_nvtx vitals sync_warning",
    "backward runs in the calling thread, on its stream": "reentrant_parent single_threaded "
    "streaming_backwards_sync::end streaming_backwards_callback streaming_backwards_multiple",
    "the allocator's blocks are not simulated": "multigpu::test_memory_stats::end test_record_stream::end",
    "compressed sparse layouts are not simulated": "weightcsr weightcsc",
    "C++ takes the tensors for CPU tensors": "composite_implicit_and multiple_dispatch_registrations foward_mode_ad "
    "multipledispatchcuda::test_view_copy lazy_clone overwrite_module",
    "CPU kernels: no device-side asserts, other dtypes and rounding, deterministic": "out_of_bounds_class launch_fail "
    "grid_sample_half grid_sample_bfloat nonsupported_dtypes cuda_half nondeterministic_alert sync_batchnorm",
    "storages carry no type of CUDA": "typed_storage storage_setitem tensor_storage_type storage_meta",
}


def reason(test: str) -> str | None:
    """Why a test cannot pass, or None."""
    name = test.lower() + "::end"
    return next((why for why, parts in REASONS.items() if any(part in name for part in parts.split())), None)


def run_tables() -> int:
    """Print one line for each table, after the lines of what does not agree."""
    codes = []
    for table in TABLES:
        # Python puts the folder of a file that it runs on its path, and for a module the working directory.
        program = table if table[0] == "-m" else [str(HERE / table[0]), *table[1:]]
        command = [sys.executable, *program]
        codes.append(subprocess.run(command, cwd=HERE).returncode)
    return max(codes)


def run_file(checkout: Path, name: str, only: str) -> int:
    """Run one test file of a checkout; return how many of its tests failed without a reason."""
    path = checkout / name
    if not path.is_file():
        print(f"{name}: not in {checkout}")
        return 1
    virtual = [sys.executable, "-m", "vgpu", "--gpus", "2", "--force", "-m", "pytest"]
    options = ["-q", "-rfE", "--tb=line", "-p", "no:cacheprovider", "--noconftest", *(["-k", only] if only else [])]
    done = subprocess.run([*virtual, *options, path.name], cwd=path.parent, capture_output=True, text=True)
    failed = re.findall(r"^(?:FAILED|ERROR) \S+?::(\S+)", done.stdout, re.MULTILINE)
    unexplained = [test for test in failed if reason(test) is None]
    for test in unexplained:
        print(f"  {test}")
    last = done.stdout.strip().splitlines()[-1] if done.stdout.strip() else done.stderr[-300:]
    print(f"{name}: {last}; {len(failed) - len(unexplained)} of the failures have a reason", flush=True)
    return len(unexplained) if done.returncode in (0, 1) else max(1, len(unexplained))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pytorch", type=Path, help="a checkout of pytorch/pytorch at the release that is installed")
    parser.add_argument("--quick", action="store_true", help="leave out the tables of the wheel")
    options = parser.parse_args()
    print(f"torch {torch.__version__}")
    code = 0 if options.quick else run_tables()
    if options.pytorch is not None:
        code = max(code, sum(run_file(options.pytorch, name, only) for name, only in FILES.items()) and 1)
    return code


if __name__ == "__main__":
    sys.exit(main())
