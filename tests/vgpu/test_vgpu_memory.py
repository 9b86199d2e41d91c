"""Memory is counted per device, by storage, and given back with the last view."""

import pytest
import torch

from frcnn_lite.vgpu import memory

pytestmark = pytest.mark.usefixtures("gpus")


def allocated() -> list[int]:
    torch.cuda.init()  # before it, CUDA reports zero
    return [torch.cuda.memory_allocated(k) for k in range(4)]


def test_storages_count_once_and_until_the_last_view_dies():
    before = allocated()
    x = torch.zeros(1000, device="cuda:1")
    view = x[10:20]
    again = x.view(10, 100)
    assert allocated()[1] - before[1] == 4096, "4000 bytes in blocks of 512"
    assert allocated()[0] == before[0]
    del x, again
    assert allocated()[1] - before[1] == 4096
    del view
    assert allocated() == before


def test_tensors_saved_for_backward_are_held():
    before = allocated()[2]
    x = torch.ones(1000, device="cuda:2", requires_grad=True)
    loss = (x.exp() * 2).sum()
    held = allocated()[2] - before
    assert held >= 2 * 4096, "x and the result of exp"
    del loss
    assert allocated()[2] - before == 4096


def test_peak():
    torch.cuda.reset_peak_memory_stats(3)
    start = torch.cuda.max_memory_allocated(3)
    x = torch.zeros(2048, device="cuda:3")
    del x
    assert torch.cuda.max_memory_allocated(3) - start == 8192
    torch.cuda.reset_peak_memory_stats(3)
    assert torch.cuda.max_memory_allocated(3) == start


def test_expand_costs_nothing_and_repeat_costs_copies():
    x = torch.zeros(1, 100, 200, device="cuda:0")
    before = allocated()[0]
    wide = x.expand(4, -1, -1)
    assert allocated()[0] == before and wide.shape == (4, 100, 200)
    tall = x.repeat(4, 1, 1)
    assert allocated()[0] - before == memory._rounded(4 * 100 * 200 * 4) and tall.shape == wide.shape


def test_resizing_is_counted():
    before = allocated()[0]
    x = torch.zeros(10, device="cuda:0")
    x.resize_(1000)
    assert allocated()[0] - before == 4096
    del x
    assert allocated()[0] == before


def test_the_rest_of_the_surface():
    x = torch.zeros(1000, device="cuda:1")
    free, total = torch.cuda.mem_get_info(1)
    assert total - free == torch.cuda.memory_allocated(1) >= x.numel() * 4
    assert torch.cuda.memory_reserved(1) >= torch.cuda.memory_allocated(1)
    assert "CUDA memory summary" in torch.cuda.memory_summary(1)
    assert torch.cuda.memory_stats(1)["allocated_bytes.all.current"] == torch.cuda.memory_allocated(1)
    torch.cuda.reset_accumulated_memory_stats(1)
