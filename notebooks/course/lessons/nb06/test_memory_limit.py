"""GPUs with a limit, on virtual GPUs."""

import pytest
import torch

import vgpu
from course.lessons.nb06.memory_limit import with_limit

pytestmark = pytest.mark.usefixtures("vgpu_fresh_memory")


def fill(floats: int, device: str) -> None:
    torch.zeros(floats, device=device).add(1)


def test_the_limit_holds_for_each_gpu_and_is_lifted(capsys):
    with vgpu.virtual_gpus(2):
        assert with_limit(12_000_000, fill, 1_000_000, "cuda:1")
        assert capsys.readouterr().out == "done\n"
        assert not with_limit(12_000_000, fill, 2_000_000, "cuda:1")
        assert capsys.readouterr().out == "OutOfMemoryError: CUDA out of memory. Tried to allocate 7.63 MiB. GPU 1\n"
        assert torch.cuda.max_memory_allocated(1) == 8_000_000  # what was there when it ended
        assert torch.cuda.memory_allocated(1) == 0
        fill(4_000_000, "cuda:1")


def test_backward_that_fails_leaves_nothing_behind(capsys):
    def take():
        w = torch.ones(1_000_000, device="cuda:0", requires_grad=True)
        w.exp().sum().backward()

    with vgpu.virtual_gpus(1):
        assert with_limit(13_000_000, take)
        assert not with_limit(11_000_000, take)
        assert torch.cuda.memory_allocated(0) == 0


def test_other_errors_are_raised_and_the_limit_is_lifted():
    def take():
        raise RuntimeError("no")

    with vgpu.virtual_gpus(1):
        with pytest.raises(RuntimeError, match="no"):
            with_limit(12_000_000, take)
        fill(4_000_000, "cuda:0")
