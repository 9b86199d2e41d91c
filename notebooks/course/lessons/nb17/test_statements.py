"""Numbers and statements in the prose of notebook 17 that no output shows, and the repaired module of post 001."""

import pytest
import torch
from told import cell, says
from torch import nn

from course.lessons.nb17 import cupy_of_2017, without_gpu
from course.lessons.nb17.launched import launched
from course.lessons.nb17.roi_module import roi_module
from frcnn_lite import ops

pytestmark = pytest.mark.virtual_gpus(2)


def test_the_blocks_of_a_launch():
    assert roi_module.THREADS == 1024 and roi_module.block_count(1568) == 2 and 2 * 1024 - 1568 == 480
    assert says("17", "For 1568 outputs it takes two blocks") and says("17", "480 threads have no output of their own")


def test_the_reads_of_a_thread_for_each_cell():
    assert 32 * 32 * 32 * 6 * 6 == 1_179_648 and 32 * 6 * 6 == 1152
    assert says("17", "1,179,648 reads against 1,152 additions")


def test_launches_are_operations_that_compute():
    x = torch.zeros(3, 4)
    assert launched(lambda: (x.t()[0], torch.empty(3), x.device)) == 0
    assert launched(lambda: (x + 1).mul_(2)) == 2


def test_which_kernel_the_stand_in_notes():
    printed = cupy_of_2017.load()["RoIPooling2D"](2, 2, 1.0)
    with torch.cuda.device(1):
        printed(torch.rand(1, 1, 4, 4).cuda(), torch.tensor([[0.0, 0, 0, 3, 3]]).cuda())
    assert cupy_of_2017.launched[-1] == (0, 1)
    assert cell("17", "loaded_on, _ = cupy_of_2017.launched[-1]")


@pytest.mark.skipif(without_gpu.compiler() is None, reason="no C++ compiler to run the CUDA source with")
def test_the_repaired_module_under_data_parallel():
    """Each replica has regions of its own images, counted from 0; forward and backward are those of one GPU."""
    module = roi_module.RoIPooling2D(2, 2, 1.0, launch=without_gpu.launch_with_compiler)
    features = torch.rand(2, 3, 8, 8)
    rois = torch.tensor([[0.0, 0, 0, 5, 5], [0, 2, 1, 7, 6]])
    found, right = (features.clone().cuda().requires_grad_() for _ in range(2))
    pooled = nn.DataParallel(module)(found, rois)
    alone = torch.cat([ops.roi_pool(right[k : k + 1], rois[k : k + 1].cuda(), 2, 1.0) for k in (0, 1)])
    assert torch.equal(pooled, alone)
    weights = torch.rand(pooled.shape, device="cuda")
    for out in (pooled, alone):
        (out * weights).sum().backward()
    assert found.grad is not None and right.grad is not None and torch.equal(found.grad, right.grad)


@pytest.mark.skipif(without_gpu.compiler() is None, reason="no C++ compiler to run the CUDA source with")
def test_the_test_of_the_module_finds_a_wrong_one(monkeypatch):
    assert roi_module.test_roi_module(without_gpu.launch_with_compiler) == 2
    kept = roi_module.pool

    def of_a_view(features, *bins, **given):  # the strides are not asked
        memory = features.detach().as_strided(features.shape, torch.empty(features.shape).stride())
        return kept(memory, *bins, **given)

    monkeypatch.setattr(roi_module, "pool", of_a_view)
    with pytest.raises(AssertionError, match="channels_last"):
        roi_module.test_roi_module(without_gpu.launch_with_compiler)
