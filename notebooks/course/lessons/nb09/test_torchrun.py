"""torchrun for a function of a cell: what is reported of ranks that raise, and what of it is the same in every run."""

import sys

import cloudpickle
import pytest
from torch import distributed
from torch.distributed.elastic.multiprocessing.errors import record

from course.lessons.nb09 import torchrun as course_torchrun
from course.lessons.nb09.torchrun import Run, plain, torchrun


def raises():
    distributed.init_process_group("gloo")
    print("rank", distributed.get_rank())
    if distributed.get_rank() == 1:
        raise FloatingPointError("the loss is nan")
    distributed.barrier()


@pytest.fixture(scope="module")
def one_machine():
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # the ranks cannot import a test
    return torchrun(record(raises), machines=1, ranks=2)


def test_the_rank_that_raised_is_the_root_cause(one_machine):
    assert one_machine.codes == [1]
    told = one_machine.root_cause(0)
    assert "rank      : 1 (local_rank: 1)" in told and "FloatingPointError: the loss is nan" in told


def test_the_command_is_the_one_that_ran(one_machine):
    told = one_machine.command.split()
    assert told[0] == "TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1"
    for name, value in {"--nnodes": "1", "--nproc-per-node": "2", "--rdzv-endpoint": "127.0.0.1:PORT"}.items():
        assert told[told.index(name) + 1] == value
    assert one_machine.endpoint.startswith("127.0.0.1:")


def test_each_rank_has_a_log_with_its_own_traceback(one_machine):
    (follower,), (first,) = one_machine.said
    assert follower[0] == "rank 0" and "by peer" in follower[-1]
    assert first[0] == "rank 1" and first[-1] == "FloatingPointError: the loss is nan"


@pytest.mark.parametrize(
    "gloo",
    [
        "[/pytorch/gloo/transport/tcp/pair.cc:561] Connection closed by peer [127.0.0.1]:56456. This is typical.",
        "[/pytorch/gloo/transport/tcp/pair.cc:545] Read error [127.0.0.1]:41623: Connection reset by peer. This is.",
    ],
)
def test_a_broken_connection_reads_the_same_in_every_run(gloo):
    assert plain(f"RuntimeError: {gloo}") == "RuntimeError: ... Connection closed by peer ..."


def test_process_ids_and_places_are_left_out(tmp_path):
    told = plain(
        f"  exitcode  : -9 (pid: 25765)  (SIGKILL)\n  error_file: {tmp_path}/0/error.json\n  Signal 9 received by PID 7"
    )
    assert told == "  exitcode  : -9\n  error_file: .../error.json\n  Signal 9 received by PID ..."


def test_an_agent_without_a_failure_has_no_root_cause():
    assert Run([0], ["all is well"], [[[]]]).root_cause(0) == "no Root Cause"


def test_agents_that_do_not_end_are_ended(monkeypatch):
    monkeypatch.setattr(course_torchrun, "SECONDS", 0.1)
    with pytest.raises(TimeoutError, match="did not end within"):
        torchrun(raises, machines=1)
