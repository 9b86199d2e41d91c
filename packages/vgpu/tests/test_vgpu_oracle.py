"""A sample of what oracle.py runs in full, and how it runs the test files of a checkout."""

import warnings
import zlib
from pathlib import Path

import pytest

import vgpu

pytest.importorskip("expecttest", reason="PyTorch's own tables need what the extra `test` installs")

import module_check
import opinfo_negative
import oracle


def sampled(name: str, one_in: int) -> bool:
    return zlib.crc32(name.encode()) % one_in == 0


@pytest.mark.parametrize("name", [n for n in module_check.MODULES if sampled(n, 4)])
def test_module(gpus, name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert module_check.check_module(module_check.MODULES[name]) is None


@pytest.mark.parametrize("name", list(module_check.OPTIMIZERS))
def test_optimizer(gpus, name):
    assert module_check.check_optimizer(module_check.OPTIMIZERS[name]) is None


OPS = {opinfo_negative.name_of(op): op for op in opinfo_negative.op_db}


@pytest.mark.parametrize("other", ["cpu", "cuda:0"])
@pytest.mark.parametrize("name", [n for n in OPS if sampled(n, 12) or n in opinfo_negative.FAKE_ERRS])
def test_one_argument_elsewhere(name, other):
    vgpu.enable(2, force=True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            difference = opinfo_negative.check(OPS[name], other)
    finally:
        vgpu.disable()
    assert difference in (None, "-"), difference


@pytest.mark.long
def test_a_file_of_a_checkout(tmp_path: Path, capsys: pytest.CaptureFixture):
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "test_it.py").write_text(
        "import torch\n"
        "def test_passes(): assert torch.ones(1, device='cuda:1').is_cuda\n"
        "def test_nccl_only(): assert False\n"
        "def test_fails(): assert False\n"
    )
    assert oracle.run_file(tmp_path, "test/test_it.py", "") == 1
    out = capsys.readouterr().out
    assert "test_fails" in out and "2 failed, 1 passed" in out and "1 of the failures have a reason" in out
    assert oracle.run_file(tmp_path, "test/test_it.py", "passes") == 0
    assert oracle.run_file(tmp_path, "test/absent.py", "") == 1
