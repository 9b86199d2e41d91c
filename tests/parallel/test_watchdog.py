"""The watchdog: what it sees, that it changes nothing, and that it ends what hangs."""

import subprocess
import sys

import pytest
import torch
import watchdog_workers as workers
from torch import distributed
from torch.distributed import distributed_c10d

from frcnn_lite.parallel.collective_log import COLLECTIVES, CollectiveLog
from frcnn_lite.parallel.launch import RankFailed, run_ranks
from frcnn_lite.parallel.watchdog import HUNG, Watchdog


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
    with CollectiveLog() as log:
        log.step = 4
        distributed.all_reduce(torch.ones(2, 3))
        distributed.barrier()
    first, second = log.entered
    assert (first.number, first.name, first.step, first.tensor, first.group) == (
        1,
        "all_reduce",
        4,
        "(2, 3) float32",
        (0,),
    )
    assert (second.number, second.name, second.tensor) == (2, "barrier", "")
    assert first.site.startswith("test_watchdog.py:")
    assert log.open_call is None


def test_a_collective_that_raises_is_not_waited_for(alone):
    with CollectiveLog() as log:
        with pytest.raises((RuntimeError, TypeError, ValueError)):
            distributed.broadcast(torch.ones(1), src=5)
        with pytest.raises(TypeError):
            distributed.all_reduce()
    assert log.open_call is None


@pytest.mark.parametrize("async_op", [False, True])
def test_work_that_cannot_be_asked_is_not_waited_for(alone, async_op):
    with CollectiveLog() as log:
        work = distributed.reduce_scatter_tensor(torch.ones(1), torch.ones(1), async_op=async_op)
        assert (work is not None) is async_op
    assert len(log.entered) == 1 and log.open_call is None


def test_async_op_returns_its_work_positionally_too(alone):
    with CollectiveLog() as log:
        work = distributed.all_reduce(torch.ones(1), distributed.ReduceOp.SUM, None, True)
        work.wait()
        assert distributed.all_reduce(torch.ones(1)) is None
    assert len(log.entered) == 2


def test_bad_use_is_refused():
    with pytest.raises(ValueError, match="limit must be a positive number of seconds, got 0"):
        Watchdog(0)
    with pytest.raises(RuntimeError, match="call init_process_group first"), Watchdog():
        pass


def test_watching_changes_no_gradient_and_names_the_parameters():
    for found, names, gathered, counts in run_ranks(workers.gradients_watched_and_not, 2, None):
        never, watched, after = found
        for one, two, three in zip(never, watched, after, strict=True):
            torch.testing.assert_close(one, two, rtol=1e-10, atol=0)
            torch.testing.assert_close(one, three, rtol=1e-10, atol=0)
        assert [set(name.partition("(")[2].rstrip(")").split(", ")) for name in names] == [
            {"0.weight", "0.bias", "1.weight", "1.bias"}
        ]
        assert gathered == [0, 1] and counts == 3  # an object is gathered in two collectives, then one all_reduce


def test_a_wait_in_native_code_ends_the_process_with_the_diagnosis():
    with pytest.raises(RankFailed) as caught:
        run_ranks(workers.unwatched_backward, 2)
    failure = caught.value.failures[0]
    assert failure.reason.startswith(f"exited with code {HUNG}")
    assert "CollectiveHang: rank 0 waits in backward #1 of step 4 for rank 1" in failure.details
    assert "rank 1 left after step 3" in failure.details


def test_collectives_are_counted_for_each_group():
    with pytest.raises(RankFailed) as caught:
        run_ranks(workers.subgroup_hang, 3)
    assert caught.value.rank == 0
    assert caught.value.reason == "raised CollectiveHang: rank 0 waits in all_reduce #2 for rank 2"


PROGRAM = """
import time, torch
from torch import distributed
from frcnn_lite.parallel import Watchdog, process_group

with process_group("cpu"):
    with Watchdog(limit=1) as dog:
        for dog.step in range(1, 5):
            distributed.all_reduce(torch.ones(1))
            while distributed.get_rank() == 1 and dog.step == 2:
                time.sleep(1)
"""


def test_under_torchrun_a_hang_ends_the_run_and_says_where_the_other_rank_is(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    command = ["torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(tmp_path / "program.py")]
    ended = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, timeout=120)
    assert ended.returncode != 0
    assert "CollectiveHang: rank 0 waits in all_reduce #3 of step 3 for rank 1" in ended.stderr
    assert "rank 1 is in step 2, at program.py:11" in ended.stderr
