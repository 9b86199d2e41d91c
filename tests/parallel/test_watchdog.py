"""The watchdog: what it makes of positions, what it sees in a process that is alone, and that it ends what hangs.

What two and three ranks are told stands in test_watchdog_on_ranks.py.
"""

import os
import pickle
import subprocess
import sys
import threading
import time

import pytest
import torch
from torch import distributed
from torch.distributed import distributed_c10d
from torch.multiprocessing.reductions import StorageWeakRef

from frcnn_lite.parallel.watchdog import (
    COLLECTIVES,
    CollectiveHang,
    Entered,
    Position,
    Watchdog,
    diagnose,
)

WORLD = (0, 1, 2)


def entered(number, name="all_reduce", tensor="(3,) float32", group=WORLD, step=None):
    return Entered(number, name, step, tensor, f"train.py:{number}", group)


def waiting(rank, *calls, step=None):
    return Position(rank, "waiting", step, calls[-1], calls, "train.py:9")


def test_the_rank_that_left_is_waited_for():
    calls = [entered(number, step=number) for number in (1, 2, 3, 4)]
    left = Position(1, "left", 3, None, tuple(calls[:3]))
    words = diagnose([waiting(0, *calls), left, waiting(2, *calls)])
    first, *rest = words.splitlines()
    assert first == "rank 0 waits in all_reduce #4 of step 4 for rank 1"
    assert rest[0] == "  rank 0 waits in all_reduce #4 of (3,) float32, step 4, at train.py:4"
    assert rest[1].startswith("  rank 1 left after step 3; its last collective was all_reduce #3")


def test_a_rank_that_goes_on_elsewhere_is_told_with_its_place():
    positions = [waiting(0, entered(1)), Position(1, "running", 7, None, (), "evaluate.py:20")]
    assert "rank 1 is in step 7, at evaluate.py:20; it has entered no collective" in diagnose(positions)


def test_a_rank_that_left_by_an_exception_says_which():
    words = str(Position(1, "left", 3, why="FloatingPointError"))
    assert words == "rank 1 left in step 3 with FloatingPointError; it has entered no collective"
    assert str(Position(1, "left")) == "rank 1 left; it has entered no collective"


def test_a_rank_without_an_answer_has_ended():
    words = diagnose([waiting(0, entered(1)), Position(1, "silent")])
    assert "waits in all_reduce #1 for rank 1" in words and "rank 1 does not answer" in words


@pytest.mark.parametrize("other", [entered(2, "broadcast"), entered(2, tensor="(4,) float32")])
def test_different_collectives_under_one_number_are_the_cause(other):
    words = diagnose([waiting(0, entered(1), entered(2)), waiting(1, entered(1), other)])
    assert words.startswith("rank 0 and rank 1 entered different collectives as #2: all_reduce of (3,) float32")


def test_the_first_call_from_different_lines_is_told():
    """What a collective on rank 0 only looks like: the same calls, of the same shapes, one apart."""
    log, train = (Entered(1, "all_reduce", None, "() float32", f"train.py:{line}", WORLD) for line in (5, 8))
    second = Entered(2, "all_reduce", None, "() float32", "train.py:8", WORLD)
    words = diagnose([waiting(0, log, second), Position(1, "left", None, None, (train,))])
    assert words.splitlines()[-1] == "  ranks parted at #1: all_reduce at train.py:5, all_reduce at train.py:8"
    assert "parted" not in diagnose([waiting(0, train, second), Position(1, "left", None, None, (train,))])


def test_who_waits_in_an_earlier_collective_is_the_victim_and_who_is_ahead_is_not_blamed():
    ahead = [entered(1), entered(2)]
    words = diagnose([waiting(0, *ahead), waiting(1, entered(1)), Position(2, "silent")])
    assert words.startswith("rank 1 waits in all_reduce #1 for rank 2")


def test_ranks_outside_the_group_are_not_waited_for():
    call = entered(1, group=(0, 2))
    words = diagnose([waiting(0, call), Position(1, "running"), Position(2, "left")])
    assert words.startswith("rank 0 waits in all_reduce #1 for rank 2")


def test_all_there_and_still_no_end_points_at_the_hardware():
    words = diagnose([waiting(rank, entered(1)) for rank in WORLD])
    assert "all ranks of the group are in all_reduce #1" in words and "network" in words


def test_nobody_waits():
    assert diagnose([Position(0, "left")]).startswith("no rank waits")
    with pytest.raises(ValueError, match="`positions` must hold one for each rank, got none"):
        diagnose([])


def test_positions_and_the_error_travel_by_pickle():
    position = waiting(0, entered(1), entered(2, step=5), step=5)
    assert pickle.loads(pickle.dumps(position)) == position
    hang = CollectiveHang([position])
    copy = pickle.loads(pickle.dumps(hang))
    assert copy.positions == hang.positions and str(copy) == str(hang)


@pytest.fixture
def alone():
    """A process group of one."""
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    yield
    distributed.destroy_process_group()


def functions():
    return [getattr(module, name, None) for module in (distributed, distributed_c10d) for name in COLLECTIVES]


def test_functions_are_put_back_also_after_an_error(alone):
    before = functions()
    with pytest.raises(KeyError), Watchdog():
        assert not any(now is then for now, then in zip(functions(), before, strict=True) if then)
        raise KeyError
    assert all(now is then for now, then in zip(functions(), before, strict=True))


def test_notes_name_number_step_tensor_and_line(alone):
    with Watchdog() as dog:
        dog.step = 4
        distributed.all_reduce(torch.ones(2, 3))
        distributed.barrier()
    first, second = dog.entered
    assert (first.number, first.name, first.step, first.tensor, first.group) == (
        1,
        "all_reduce",
        4,
        "(2, 3) float32",
        (0,),
    )
    assert (second.number, second.name, second.tensor) == (2, "barrier", "")
    assert first.site.startswith("test_watchdog.py:")
    assert dog.open_call is None


def test_a_collective_that_raises_is_not_waited_for(alone):
    with Watchdog() as dog:
        with pytest.raises((RuntimeError, TypeError, ValueError)):
            distributed.broadcast(torch.ones(1), src=5)
        with pytest.raises(TypeError):
            distributed.all_reduce()
    assert dog.open_call is None


@pytest.mark.parametrize("async_op", [False, True])
def test_work_that_cannot_be_asked_is_not_waited_for(alone, async_op):
    with Watchdog() as dog:
        work = distributed.reduce_scatter_tensor(torch.ones(1), torch.ones(1), async_op=async_op)
        assert (work is not None) is async_op
    assert len(dog.entered) == 1 and dog.open_call is None


def test_a_look_at_a_call_keeps_none_of_its_tensors(alone):
    """The watchdog has seen the frame of a call that waits in native code; its tensors go with the call."""
    made: dict = {}
    file = os.path.join(os.path.dirname(torch.__file__), "autograd", "made_up.py")
    exec(compile("def waits(x, gate):\n    gate.acquire()", file, "exec"), made)
    gate, x = threading.Lock(), torch.ones(1)
    kept = StorageWeakRef(x.untyped_storage())
    with Watchdog(limit=1) as dog:  # which looks every 0.2 seconds
        gate.acquire()
        threading.Timer(0.7, gate.release).start()
        made["waits"](x, gate)
        del x
        assert kept.expired() and dog.hang is None


def test_tensors_of_a_collective_that_is_through_are_let_go(alone):
    with Watchdog() as dog:
        tensors = [torch.ones(1) for _ in range(3)]
        kept = [StorageWeakRef(tensor.untyped_storage()) for tensor in tensors]
        distributed.all_reduce(tensors[0])
        distributed.reduce_scatter_tensor(tensors[1], torch.ones(1))
        distributed.all_reduce(tensors[2], async_op=True).wait()
        assert dog.open_call is None
        del tensors
        until = time.monotonic() + 10  # gloo's own thread may still be about to let go
        while not all(storage.expired() for storage in kept) and time.monotonic() < until:
            time.sleep(0.01)
        assert [storage.expired() for storage in kept] == [True] * 3


def test_async_op_returns_its_work_positionally_too(alone):
    with Watchdog() as dog:
        work = distributed.all_reduce(torch.ones(1), distributed.ReduceOp.SUM, None, True)
        work.wait()
        assert distributed.all_reduce(torch.ones(1)) is None
    assert len(dog.entered) == 2


def test_bad_use_is_refused():
    with pytest.raises(ValueError, match="`limit` must be a positive number of seconds, got 0"):
        Watchdog(0)
    with pytest.raises(RuntimeError, match="call init_process_group first"), Watchdog():
        pass


HOLDS_THE_STORE = """
import sys
from torch.distributed import TCPStore

store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False, use_libuv=sys.platform != "win32")
print(store.port, flush=True)
sys.stdin.read()
"""


def test_a_rank_outlives_the_process_that_held_the_store():
    """It waits for nobody, so it goes on; were the roll called, the ranks that cannot be asked would be silent."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS_THE_STORE], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        store = distributed.TCPStore("127.0.0.1", int(holder.stdout.readline()), is_master=False)
        distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        with Watchdog() as dog:
            dog._ranks = (0, 1)
            holder.communicate()
            (own, other) = dog._call_roll()
            assert (own.state, other.state) == ("running", "silent")
            assert dog.hang is None
        distributed.destroy_process_group()


PROGRAM = """
import time, torch
from torch import distributed
from frcnn_lite.parallel.watchdog import Watchdog

distributed.init_process_group("gloo")
with Watchdog(limit=1) as dog:
    for dog.step in range(1, 5):
        distributed.all_reduce(torch.ones(1))
        while distributed.get_rank() == 1 and dog.step == 2:
            time.sleep(1)
"""


def test_under_torchrun_a_hang_ends_the_run_and_says_where_the_other_rank_is(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    command = ["torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(tmp_path / "program.py")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, env=environment)
    assert ended.returncode != 0
    assert "CollectiveHang: rank 0 waits in all_reduce #3 of step 3 for rank 1" in ended.stderr
    assert "rank 1 is in step 2, at program.py:11" in ended.stderr
