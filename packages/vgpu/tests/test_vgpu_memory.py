"""Memory is counted per device, by storage, and given back with the last view."""

import gc
import re
import subprocess
import sys

import pytest
import torch

import vgpu
from vgpu.machine import host, memory

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
    assert allocated()[0] - before == 4 * 100 * 200 * 4 and tall.shape == wide.shape


def test_resizing_is_counted():
    before = allocated()[0]
    x = torch.zeros(10, device="cuda:0")
    x.resize_(1000)
    assert allocated()[0] - before == 4096
    del x
    assert allocated()[0] == before


def test_a_storage_that_is_resized_itself_is_counted():
    """FSDP keeps the tensors of its parameters, and gives their memory back and takes it by the size of the storage."""
    before = allocated()[0]
    x = torch.arange(1000.0, device="cuda:0")
    storage = x.untyped_storage()
    storage.resize_(0)
    assert allocated()[0] == before
    assert storage.resize_(4000) is storage and allocated()[0] - before == 4096
    x.fill_(2)
    with pytest.raises(torch.OutOfMemoryError):
        storage.resize_(torch.cuda.mem_get_info(0)[1])
    assert allocated()[0] - before == 4096 and x.sum().item() == 2000, "as it was"
    del x, storage
    assert allocated()[0] == before
    plain = torch.ones(3).untyped_storage()
    plain.resize_(0)
    assert plain.nbytes() == 0 and allocated()[0] == before


def test_the_rest_of_the_surface():
    x = torch.zeros(1000, device="cuda:1")
    free, total = torch.cuda.mem_get_info(1)
    assert total - free == torch.cuda.memory_reserved(1) >= torch.cuda.memory_allocated(1) >= x.numel() * 4
    assert "CUDA memory summary" in torch.cuda.memory_summary(1)
    assert torch.cuda.memory_stats(1)["allocated_bytes.all.current"] == torch.cuda.memory_allocated(1)


def test_accumulated_figures():
    kept = torch.zeros(1000, device="cuda:2")
    gc.collect()
    torch.cuda.reset_accumulated_memory_stats(2)
    torch.cuda.reset_peak_memory_stats(2)
    held = torch.cuda.memory_allocated(2)
    x = [torch.zeros(1000, device="cuda:2") for _ in range(3)]
    del x
    stats = torch.accelerator.memory_stats(2)
    figures = [stats[f"allocated_bytes.all.{kind}"] for kind in ("allocated", "freed", "peak", "current")]
    assert figures == [3 * 4096, 3 * 4096, held + 3 * 4096, held]
    torch.accelerator.reset_accumulated_memory_stats(2)
    del kept
    stats = torch.cuda.memory_stats(2)
    assert (stats["active_bytes.all.allocated"], stats["active_bytes.all.freed"]) == (0, 4096)


MIB = 1 << 20


class TestHost:
    """Nobody chooses how much memory the host has, so these ask it; what is allocated here is never written."""

    @pytest.fixture(autouse=True)
    def no_peaks_for_others(self):
        yield
        vgpu.fresh_memory()

    @pytest.mark.parametrize("gpus", [1, 4, 64])
    def test_by_default_all_devices_together_leave_it_some(self, gpus):
        with vgpu.virtual_gpus(gpus, force=True):
            size = torch.cuda.get_device_properties(0).total_memory
            assert memory.LEAST <= size <= memory.MOST
            assert size * gpus <= host.total() or size == memory.LEAST

    def test_more_than_it_has_is_cudas_error(self):
        with vgpu.virtual_gpus(1, force=True, memory=8 * host.total()):
            with pytest.raises(torch.OutOfMemoryError, match=r"CUDA out of memory(.|\n)*it is the host whose memory"):
                torch.empty(2 * host.total(), dtype=torch.uint8, device="cuda")
            assert torch.cuda.memory_stats(0)["num_ooms"] == 1

    def test_so_is_what_only_all_devices_together_ask_for(self):
        part = host.total() // 4
        with vgpu.virtual_gpus(8, force=True, memory=host.total()):
            held = []
            with pytest.raises(torch.OutOfMemoryError, match="it is the host whose memory"):
                for k in range(8):
                    held.append(torch.empty(part, dtype=torch.uint8, device=f"cuda:{k}"))
            assert len(held) < 5
            held.clear()
            assert torch.ones(1000, device="cuda:7").sum() == 1000, "there is room again"

    def test_the_command_line_says_whose_share_it_is(self, tmp_path):
        (tmp_path / "program.py").write_text("pass\n")
        command = [sys.executable, "-m", "vgpu", "--gpus", "2", "--force"]
        said = [
            subprocess.run([*command, *more, "program.py"], cwd=tmp_path, capture_output=True, text=True).stderr
            for more in ((), ("--memory", "64MiB"))
        ]
        assert re.search(
            r"^vgpu: 2 virtual GPUs, \S+ .iB each: a share of this machine's \S+ .iB$", said[0], re.MULTILINE
        )
        assert "vgpu: 2 virtual GPUs, 64 MiB each\n" in said[1]


class TestCapacity:
    @pytest.fixture(autouse=True)
    def nothing_left_to_free(self):
        gc.collect()

    def test_more_than_the_device_has_raises_cudas_own_error(self):
        """On cuda:11, which no other test of this process has left a tensor on: the figures are exact."""
        with vgpu.virtual_gpus(12, memory="64MiB"):
            assert torch.cuda.get_device_properties(11).total_memory == 64 * MIB
            held = torch.empty(40 * MIB, dtype=torch.uint8, device="cuda:11")
            words = (
                r"CUDA out of memory\. Tried to allocate 32\.00 MiB\. GPU 11 has a total capacity of 64\.00 MiB of "
                r"which 24\.00 MiB is free\. .* Of the allocated memory 40\.00 MiB is allocated by PyTorch, and "
                r"0 bytes is reserved by PyTorch but unallocated\."
            )
            with pytest.raises(torch.cuda.OutOfMemoryError, match=words) as caught:
                torch.empty(32 * MIB, dtype=torch.uint8, device="cuda:11")
            assert isinstance(caught.value, RuntimeError) and caught.type is torch.OutOfMemoryError
            assert torch.cuda.memory_stats(11)["num_ooms"] == 1
            torch.empty(32 * MIB, dtype=torch.uint8, device="cuda:10")
            del held
            torch.empty(60 * MIB, dtype=torch.uint8, device="cuda:11")
        assert torch.cuda.get_device_properties(0).total_memory == memory.share(4), "the outer machine again"

    def test_not_every_byte_is_the_programs(self):
        """The driver keeps some, as on any GPU: two halves do not fit, and what was refused fits after the first."""
        with vgpu.virtual_gpus(13, memory="64MiB"):
            half = torch.empty(32 * MIB, dtype=torch.uint8, device="cuda:12")
            with pytest.raises(torch.OutOfMemoryError):
                torch.empty(32 * MIB, dtype=torch.uint8, device="cuda:12")
            assert len(half) and torch.cuda.mem_get_info(12)[0] <= 32 * MIB
            del half
            torch.empty(32 * MIB, dtype=torch.uint8, device="cuda:12")
        with vgpu.virtual_gpus(13, memory="1MiB"):  # less than the allocator asks for at once
            small = torch.empty(1024, dtype=torch.uint8, device="cuda:12")
            torch.cuda.empty_cache()
            assert len(small) and 0 < torch.cuda.mem_get_info(12)[0] < MIB

    def test_activations_count(self):
        with vgpu.virtual_gpus(1, memory=8 * MIB):
            x = torch.ones(MIB // 4, device="cuda", requires_grad=True)
            with torch.no_grad():
                for _ in range(20):
                    y = x.exp().exp()
            with pytest.raises(torch.OutOfMemoryError):
                y = x
                for _ in range(20):
                    y = y.exp()

    def test_the_cache_is_kept_until_it_is_emptied(self):
        with vgpu.virtual_gpus(1, memory="1 GiB"):
            torch.cuda.init()  # before it, all figures are zero, as on real hardware
            torch.cuda.empty_cache()
            start = torch.cuda.memory_reserved()
            big = torch.empty(100 * MIB, dtype=torch.uint8, device="cuda")
            del big
            assert torch.cuda.memory_reserved() - start == 100 * MIB == torch.cuda.max_memory_reserved() - start
            torch.cuda.empty_cache()
            assert torch.cuda.memory_reserved() == start and torch.cuda.max_memory_reserved() > start
            torch.cuda.reset_peak_memory_stats()
            assert torch.cuda.max_memory_reserved() == start

    def test_gather_holds_no_part_twice(self):
        with vgpu.virtual_gpus(2):
            parts = [torch.empty(MIB, dtype=torch.uint8, device=f"cuda:{k}") for k in (0, 1)]
            start = torch.cuda.memory_allocated(0)
            torch.cuda.reset_peak_memory_stats(0)
            joined = torch.nn.parallel.gather(parts, 0)
            assert torch.cuda.max_memory_allocated(0) - start == joined.nbytes == 2 * MIB

    def test_a_fraction_of_it(self):
        with vgpu.virtual_gpus(1, memory="64MiB"):
            torch.cuda.set_per_process_memory_fraction(0.5)
            with pytest.raises(torch.OutOfMemoryError, match=r"32\.00 MiB allowed;"):
                torch.empty(40 * MIB, dtype=torch.uint8, device="cuda")

    def test_spawned_and_started_programs_have_it_too(self, tmp_path):
        script = tmp_path / "script.py"
        script.write_text(
            "import subprocess, sys, torch\n"
            "print(torch.cuda.get_device_properties(0).total_memory >> 20, flush=True)\n"
            "if len(sys.argv) > 1: subprocess.run([sys.executable, __file__])\n"
        )
        command = [sys.executable, "-m", "vgpu", "--force", "--memory", "64MiB", str(script), "again"]
        assert subprocess.run(command, capture_output=True, text=True, timeout=600).stdout.split() == ["64", "64"]

    @pytest.mark.parametrize(
        ("text", "nbytes"),
        [(4096, 4096), ("4096", 4096), ("1.5k", 1536), ("2m", 2 * MIB), ("2 MB", 2_000_000), ("3GiB", 3 << 30)],
    )
    def test_amounts(self, text, nbytes):
        assert memory.parse_bytes(text) == nbytes

    @pytest.mark.parametrize("text", ["", "much", "-1MiB", "5 apples", "0", 0, "1e400"])
    def test_impossible_amounts_are_named(self, text):
        with pytest.raises(ValueError, match="memory must be"):
            memory.parse_bytes(text)

    @pytest.mark.parametrize("text", [1.5, True, [1]])
    def test_other_types_are_named(self, text):
        with pytest.raises(TypeError, match="memory must be a number of bytes or text such as '64MiB', got"):
            memory.parse_bytes(text)
