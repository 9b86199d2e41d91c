"""Numbers and statements in the prose of notebook 08 that no output shows, computed and run again."""

import inspect
import mmap
import re
from datetime import timedelta
from pathlib import Path

import pytest
import torch
from told import notebook, says
from torch import distributed, nn
from torch.distributed.constants import default_pg_nccl_timeout, default_pg_timeout
from torch.distributed.debug import start_debug_server
from torch.nn.parallel import DistributedDataParallel

from course.kit.ranks import RanksFailed, ranks
from course.lessons.nb08.puzzles.missing_ranks import missing_ranks

pytestmark = pytest.mark.virtual_gpus(2)
TORCH = Path(torch.__file__).parent


def test_default_time_outs():
    assert says("08", "gloo waits for 30 minutes, and NCCL for 10")
    assert default_pg_timeout == timedelta(minutes=30)
    if default_pg_nccl_timeout is not None:  # a build without NCCL does not have it
        assert default_pg_nccl_timeout == timedelta(minutes=10)


def test_variables_are_those_that_torch_reads():
    """In its headers, or in the library itself."""
    library = TORCH / "lib" / "libtorch_cpu.so"
    if not library.exists():
        pytest.skip("the library of torch has a different name on this system")
    names = set(re.findall(r"\bTORCH_[A-Z_]+", notebook("08").text))
    assert names == {"TORCH_FR_DUMP_TEMP_FILE", "TORCH_DISTRIBUTED_DEBUG", "TORCH_NCCL_BLOCKING_WAIT"}
    headers = "".join(
        (TORCH / "include/torch/csrc/distributed/c10d" / name).read_text(encoding="utf-8")
        for name in ("ProcessGroupNCCL.hpp", "FlightRecorder.hpp")
    )
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as binary:
        unread = {
            name for name in names if not re.search(rf"\b{name}\b", headers) and binary.find(b"\0" + name.encode()) < 0
        }
    assert not unread


def _left_alone():
    distributed.init_process_group("gloo", timeout=timedelta(minutes=5))
    distributed.barrier()  # a busy machine may take longer than the two seconds to let both ranks meet
    distributed.distributed_c10d._set_pg_timeout(timedelta(seconds=2))
    if distributed.get_rank() == 0:
        distributed.all_reduce(torch.ones(3))
    else:
        distributed.distributed_c10d._get_default_store().wait(["never"], timedelta(seconds=4))


def test_time_out_of_gloo_names_no_rank():
    assert says("08", "gloo's message then names nobody")
    with pytest.raises(RanksFailed, match=r"rank 0 raised RuntimeError: .*Timed out waiting") as caught:
        ranks(2, joined=False)(_left_alone)()
    assert "rank 1" not in str(caught.value).lower()


def _different_sizes():
    distributed.all_reduce(torch.ones(1 + distributed.get_rank()).cuda())


def test_calls_of_different_size_raise_on_virtual_gpus():
    assert says("08", "where kind or size differ, virtual GPUs raise an error")
    with pytest.raises(RanksFailed, match="simulated only: the ranks of this group do not call the same") as caught:
        ranks(2)(_different_sizes)()
    assert [line.split(",")[1] for line in caught.value.details.splitlines()[-2:]] == [" 1 elements", " 2 elements"]


def test_missing_rank_of_the_traces_is_named():
    assert says("08", "For the records above the answer is `[1]`")
    through = [(number, True) for number in (1, 2, 3)]
    assert missing_ranks([[*through, (4, False)], through]) == [1]


def _evaluates_through_ddp(inner):
    net = DistributedDataParallel(nn.BatchNorm1d(4).cuda())
    x = torch.rand(2, 4).cuda()
    for step in (1, 2, 3):
        net.train()
        net(x).sum().backward()
        if step == 2 and distributed.get_rank() == 0:
            (net.module if inner else net).eval()(x)
    return step


def test_forward_of_ddp_in_an_evaluation_sends_buffers():
    assert says("08", "let it call `net.module(x)`")
    assert ranks(2)(_evaluates_through_ddp)(True) == [3, 3]
    with pytest.raises(RanksFailed, match="do not call the same collective"):
        ranks(2)(_evaluates_through_ddp)(False)


def test_debug_server_is_where_the_notebook_says():
    assert says("08", "Port 25999 of rank 0 serves stacks and flight recorders of all ranks")
    assert inspect.signature(start_debug_server).parameters["port"].default == 25999
