"""The history of a GPU's memory: who allocated what, in the format that PyTorch's own reader takes."""

import pickle

import pytest
import torch
from torch.cuda import _memory_viz as reader

import vgpu
from vgpu.cuda import snapshots
from vgpu.machine import history, memory, pinned, pools

pytestmark = pytest.mark.usefixtures("gpus", "vgpu_fresh_memory")


@pytest.fixture
def recording(gpus):
    torch.cuda.memory._record_memory_history()
    yield
    torch.cuda.memory._record_memory_history(enabled=None)


def weights():
    return torch.ones(1000, device="cuda:1")


def actions(ordinal=1):
    return [event["action"] for event in torch.cuda.memory._snapshot()["device_traces"][ordinal]]


def test_segments_add_up_to_what_the_counters_say():
    kept = [torch.ones(n, device="cuda:1") for n in (1, 1000, 300_000)]
    segments = [s for s in torch.cuda.memory_snapshot() if s["device"] == 1]
    assert sum(s["total_size"] for s in segments) == torch.cuda.memory_reserved(1)
    assert sum(s["allocated_size"] for s in segments) == torch.cuda.memory_allocated(1)
    blocks = {b["address"]: b for s in segments for b in s["blocks"]}
    assert all(blocks[x.data_ptr()]["requested_size"] == 4 * x.numel() for x in kept)
    assert all(sum(b["size"] for b in s["blocks"]) == s["total_size"] for s in segments)


@pytest.mark.usefixtures("recording")
def test_the_block_of_a_tensor_names_the_lines_that_made_it():
    x = weights()
    (block,) = (
        b for s in torch.cuda.memory._snapshot()["segments"] for b in s["blocks"] if b["address"] == x.data_ptr()
    )
    assert [f["name"] for f in block["frames"][:2]] == [
        "weights",
        "test_the_block_of_a_tensor_names_the_lines_that_made_it",
    ]
    assert {f["filename"] for f in block["frames"][:2]} == {__file__}
    assert (block["state"], block["requested_size"], block["size"]) == ("active_allocated", 4000, 4096)


@pytest.mark.usefixtures("recording")
def test_events_come_in_the_allocators_order_and_with_frames():
    x = weights()
    address = x.data_ptr()
    del x
    events = torch.cuda.memory._snapshot()["device_traces"][1]
    assert [e["action"] for e in events] == [
        "segment_alloc",
        "alloc",
        "free_requested",
        "free_completed",
        "segment_free",
    ]
    assert {e["addr"] for e in events} == {address}
    assert [e["size"] for e in events] == [4096, 4000, 4000, 4000, 4096]
    assert all(e["frames"][0]["filename"] == __file__ for e in events)
    assert actions(0) == ["snapshot"] and actions()[-1] == "snapshot"


@pytest.mark.parametrize(
    ("settings", "in_block", "in_alloc", "in_free"),
    [
        ({"context": "all"}, True, True, True),
        ({"context": "alloc"}, True, True, False),
        ({"context": "state"}, True, False, False),
        ({"context": None}, False, False, False),
    ],
)
def test_for_which_events_there_are_frames(settings, in_block, in_alloc, in_free):
    torch.cuda.memory._record_memory_history(**settings)
    x, y = weights(), weights()
    del y
    found = torch.cuda.memory._snapshot()
    torch.cuda.memory._record_memory_history(enabled=None)
    frames = {e["action"]: bool(e["frames"]) for e in found["device_traces"][1]}
    block = next(b for s in found["segments"] for b in s["blocks"] if b["address"] == x.data_ptr())
    assert (bool(block["frames"]), frames["alloc"], frames["free_requested"]) == (in_block, in_alloc, in_free)


def test_as_many_events_as_were_asked_for_and_none_that_are_skipped():
    torch.cuda.memory._record_memory_history(max_entries=3)
    kept = [weights() for _ in range(3)]
    assert actions() == ["alloc", "segment_alloc", "alloc"]
    torch.cuda.memory._record_memory_history(enabled=None)
    assert actions() == [] and history.current() is None
    torch._C._cuda_record_memory_history("all", "all", "python", 100, False, False, False, ["segment_alloc"])
    kept.append(weights())
    assert actions() == ["alloc"]


@pytest.mark.usefixtures("recording")
def test_a_storage_that_was_there_before_has_its_address_when_it_goes():
    torch.cuda.memory._record_memory_history(enabled=None)
    x = weights()
    address = x.data_ptr()
    torch.cuda.memory._record_memory_history()
    del x
    assert {e["addr"] for e in torch.cuda.memory._snapshot()["device_traces"][1]} == {address}


@pytest.mark.usefixtures("recording")
def test_pytorchs_own_reader_takes_the_file(tmp_path):
    kept, gone = weights(), weights()
    del gone
    with pytest.raises(torch.OutOfMemoryError):
        torch.empty(1 << 44, device="cuda:1")
    before = torch.cuda.memory_snapshot()
    kept = (kept, torch.ones(7_000_000, device="cuda:1"))
    torch.cuda.memory._dump_snapshot(str(tmp_path / "memory.pickle"))
    found = pickle.loads((tmp_path / "memory.pickle").read_bytes())
    assert "raise OutOfMemoryError # 64.0TiB requested" in reader.trace(found)
    assert "total_allocated: 26.7MiB" in reader.segsum(found)
    called = f"test_vgpu_history.py:{weights.__code__.co_firstlineno + 1}:weights 4000"
    assert called in reader.memory(found, format_flamegraph=str)
    assert called in reader.segments(found, format_flamegraph=str)
    assert "only_after" in reader.compare(before, found["segments"], format_flamegraph=str)
    assert "Active Memory Timeline" in reader.trace_plot(found)
    assert "Allocator State History" in reader.segment_plot(found)
    assert len(reader.filter_alloc_free_pairs(found)["device_traces"][1]) < 20


def test_who_waits_for_the_end_of_memory_is_called_before_the_error():
    seen = []
    torch._C._cuda_attach_out_of_memory_observer(lambda *told: seen.append(told))
    with pytest.raises(torch.OutOfMemoryError):
        torch.empty(1 << 44, device="cuda:1")
    (ordinal, asked, total, free) = seen[0]
    assert (ordinal, asked) == (1, 4 << 44) and free <= total == torch.cuda.get_device_properties(1).total_memory
    vgpu.disable()
    assert not memory.observers


@pytest.mark.usefixtures("recording")
def test_what_a_program_says_itself_is_in_the_events():
    torch.cuda.memory._set_memory_metadata("forward")
    x = weights()
    torch._C._cuda_setMemoryMetadata("")
    snapshots.annotate(x.untyped_storage().data_ptr(), "the weights")
    events = torch.cuda.memory._snapshot()["device_traces"][1]
    assert [(e["action"], e["user_metadata"]) for e in events[-2:]] == [
        ("alloc", "forward"),
        ("annotate", "the weights"),
    ]
    assert events[-1]["addr"] == x.data_ptr() and events[-1]["frames"][0]["filename"] == __file__
    with pytest.raises(RuntimeError, match="annotateMemory: no live allocation found at pointer 0x1"):
        snapshots.annotate(1, "nothing")
    torch.cuda.memory._record_memory_history(enabled=None)
    snapshots.annotate(1, "nobody records this")


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"enabled": "some"}, "expected state to be 'state', 'all', or None"),
        ({"context": "some"}, "expected context to be 'state', 'alloc', 'all', or None"),
        ({"stacks": "some"}, "expected stacks to be 'python', or 'all'"),
    ],
)
def test_a_setting_that_there_is_not(bad, words):
    with pytest.raises(RuntimeError, match=words):
        torch.cuda.memory._record_memory_history(**bad)


def test_nothing_is_recorded_after_the_gpus_are_gone():
    torch.cuda.memory._record_memory_history()
    vgpu.disable()
    assert history.current() is None


def test_a_pool_has_the_storages_of_its_block():
    pool, other = torch.cuda.MemPool(), torch.cuda.MemPool()
    before = weights()
    with torch.cuda.use_mem_pool(pool, device="cuda:1"):
        assert pool.use_count() == 2 and not torch._C._cuda_isHistoryEnabled()
        mine, elsewhere = weights(), torch.ones(1, device="cuda:0")
        with torch.cuda.use_mem_pool(other, device="cuda:1"):
            inner = weights()
        again = weights()
    after = weights()
    assert pool.use_count() == 1 and pool.id != other.id and memory.recorder is None
    found = {s["address"]: s["segment_pool_id"] for s in torch.cuda.memory_snapshot()}
    assert [found[x.data_ptr()] for x in (before, mine, inner, again, after, elsewhere)] == [
        (0, 0),
        pool.id,
        other.id,
        pool.id,
        (0, 0),
        (0, 0),
    ]
    assert {s["address"] for s in pool.snapshot()} == {mine.data_ptr(), again.data_ptr()}
    del mine
    assert len(pool.snapshot()) == 1 and torch.cuda.memory_snapshot((7, 7)) == []
    with pytest.raises(NotImplementedError, match="memory pools with an allocator of their own"):
        torch.cuda.MemPool(object())


@pytest.mark.usefixtures("recording")
def test_a_pool_while_a_history_is_recorded():
    with torch.cuda.use_mem_pool(torch.cuda.MemPool(), device="cuda:1"):
        x = weights()
        torch.cuda.memory._record_memory_history(enabled=None)
        y = weights()
    assert memory.recorder is None and x.device == y.device


def test_pinned_memory_is_counted_in_powers_of_two_and_kept_for_the_next():
    pinned.empty_cache()
    torch.cuda.init()
    torch.cuda.reset_accumulated_host_memory_stats()
    torch.cuda.reset_peak_host_memory_stats()
    before = torch.cuda.host_memory_stats()
    x = torch.ones(100).pin_memory()
    held = torch.cuda.host_memory_stats()
    assert held["active_bytes.current"] - before["active_bytes.current"] == 512
    assert held["allocated_bytes.allocated"] == 512 and held["num_host_alloc"] == 1
    del x
    freed = torch.cuda.host_memory_stats()
    assert freed["active_bytes.current"] == before["active_bytes.current"]
    assert freed["allocated_bytes.current"] == held["allocated_bytes.current"]
    again = torch.ones(120).pin_memory()
    assert again.is_pinned() and torch.cuda.host_memory_stats()["num_host_alloc"] == 1


def test_a_pool_that_was_never_left_is_forgotten_with_the_gpus():
    block = torch.cuda.use_mem_pool(torch.cuda.MemPool())
    block.__enter__()
    assert memory.recorder is not None
    vgpu.disable()
    assert memory.recorder is None
    vgpu.enable(4, force=True)
    assert pools.current(0) == pools.DEFAULT
