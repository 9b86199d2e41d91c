"""Rank cells in a real kernel: results, prints, errors and hangs as a reader sees them, and nothing left behind."""

import re
import time
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest
from jupyter_client.manager import start_new_kernel

from course.kit.ranks import ranks, watchdog
from course.tools.kernels import start_again
from frcnn_lite.parallel.process_group import rank_and_size

NOTEBOOKS = Path(__file__).parents[2]
FIRST = """
import torch, os, time
from torch import distributed, nn
from torch.distributed import all_reduce
from torch.nn.parallel import DistributedDataParallel
import course.kit.ranks
from course.kit.ranks import ranks
from course.kit.setup import setup
setup(gpus=2)
"""


class Ran(NamedTuple):
    printed: str
    result: str
    error: str


class Notebook:
    """A kernel in the notebooks' folder, and the cells that it is given."""

    def __init__(self):
        self.manager, self.client = start_again(start_new_kernel)(cwd=str(NOTEBOOKS))
        self.number = 0

    def begin(self, cell):
        self.number += 1
        return self.client.execute(cell.strip())

    def end(self, cell_id):
        """What the cell printed, what it returned, and its error."""
        printed, result, error = [], "", ""
        while True:
            message = self.client.get_iopub_msg(timeout=240)
            if message["parent_header"].get("msg_id") != cell_id:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "status" and content["execution_state"] == "idle":
                return Ran("".join(printed), result, error)
            if kind == "stream" and content["name"] == "stdout":
                printed.append(content["text"])
            elif kind == "execute_result":
                result = content["data"]["text/plain"]
            elif kind == "error":
                error = "\n".join(content["traceback"])

    def run(self, cell):
        return self.end(self.begin(cell))

    def children(self):
        return psutil.Process(self.manager.provisioner.pid).children(recursive=True)

    def close(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


@pytest.fixture(scope="module")
def notebook():
    notebook = Notebook()
    assert not notebook.run(FIRST).error
    yield notebook
    notebook.close()


TOTAL = """
factor = 10
class Net(nn.Module):
    def forward(self, x):
        return x * factor

@ranks(2)
def total(numbers):
    mine = Net()(numbers[distributed.get_rank()].cuda())
    distributed.all_reduce(mine)
    print("on", mine.device)
    print("done")
    return mine.item()

total(torch.tensor([1.0, 2.0]))
"""


def test_ranks_use_what_the_notebook_defined_and_print_in_their_order(notebook):
    ran = notebook.run(TOTAL)
    assert ran.result == "[30.0, 30.0]"
    assert ran.printed.splitlines() == ["rank 0: on cuda:0", "rank 0: done", "rank 1: on cuda:1", "rank 1: done"]


def test_a_change_of_the_notebook_reaches_the_next_call(notebook):
    notebook.run(TOTAL)
    assert notebook.run("factor = 100\ntotal(torch.tensor([1.0, 2.0]))").result == "[300.0, 300.0]"


def test_ranks_that_are_spawned_do_the_same(notebook):
    notebook.run("course.kit.ranks.START = 'spawn'")
    try:
        assert notebook.run(TOTAL).result == "[30.0, 30.0]"
    finally:
        notebook.run("course.kit.ranks.START = 'forkserver'")


def test_an_error_names_the_line_of_the_cell_and_no_other(notebook):
    ran = notebook.run("""
def helper(x):
    raise LookupError("no such picture")

@ranks(2)
def fails():
    if distributed.get_rank() == 1:
        helper(1)
    distributed.barrier()

fails()
""")
    cell = f"In[{notebook.number}]"
    assert ran.error.splitlines() == [
        "RanksFailed: rank 1 raised LookupError: no such picture",
        f"  {cell}, line 7, in fails",
        "      helper(1)",
        f"  {cell}, line 2, in helper",
        '      raise LookupError("no such picture")',
    ]


HANGS = {
    "a collective imported by name": "all_reduce(torch.ones(1, device=place))",
    "a gradient": "net(torch.ones(1, 2, device=place)).sum().backward()",
}


@pytest.mark.parametrize("device", ["cuda", "cpu"])
@pytest.mark.parametrize("line", HANGS.values(), ids=HANGS)
def test_a_hang_ends_in_a_diagnosis_at_the_line_of_the_cell(notebook, line, device):
    ran = notebook.run(f"""
@ranks(2, limit=2, device={device!r} if {device == "cpu"} else None)
def hangs():
    place = {device!r}
    net = DistributedDataParallel(nn.Linear(2, 1).to(place))
    if distributed.get_rank() == 0:
        {line}

failed = hangs.fails()
print([position.state for position in failed.positions])
""")
    assert not ran.error
    first, where, other, *_, states = ran.printed.splitlines()
    assert re.fullmatch(r"rank 0 waits in (all_reduce|backward) #1 for rank 1", first)
    assert where.endswith(f"at In[{notebook.number}]:6")
    assert other.startswith("  rank 1 left") and states == "['waiting', 'left']"


def test_the_watchdog_of_a_rank_names_step_and_gradients(notebook):
    ran = notebook.run("""
from course.kit.ranks import watchdog

@ranks(2, limit=2)
def stops():
    net, dog = DistributedDataParallel(nn.Linear(2, 1).cuda()), watchdog()
    dog.watch(net)
    for dog.step in (1, 2, 3):
        if dog.step == 3 and distributed.get_rank() == 1:
            print("enough")
            return
        net(torch.ones(1, 2).cuda()).sum().backward()

failed = stops.fails()
print([failed.printed])
""")
    assert not ran.error
    lines = ran.printed.splitlines()
    assert lines[:2] == [
        "rank 1: enough",
        "rank 0 waits in all_reduce of gradients (bias, weight) #3 of step 3 for rank 1",
    ]
    assert lines[-1] == r"['rank 1: enough\n']"


def test_there_is_no_watchdog_outside_of_ranks():
    with pytest.raises(RuntimeError, match="there is a watchdog inside of a function"):
        watchdog()


def test_an_error_is_told_although_the_other_rank_has_waited_for_it_too_long(notebook):
    ran = notebook.run("""
@ranks(2, limit=1)
def raises_late():
    if distributed.get_rank() == 1:
        time.sleep(1.6)
        raise LookupError("no such picture")
    distributed.barrier()

raises_late()
""")
    assert ran.error.startswith("RanksFailed: rank 1 raised LookupError: no such picture")


def test_what_stands_still_elsewhere_is_ended_with_its_line(notebook):
    ran = notebook.run("""
@ranks(2, timeout=2)
def sleeps():
    time.sleep(1000)

sleeps()
""")
    assert "did not end within 2 s" in ran.error and f"In[{notebook.number}], line 3, in sleeps" in ran.error


def test_a_rank_that_is_killed(notebook):
    ran = notebook.run("""
import signal
@ranks(2)
def dies():
    if distributed.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    distributed.barrier()

dies()
""")
    assert ran.error.splitlines()[0] == "RanksFailed: rank 1 was killed by SIGKILL"


def test_the_whole_text_of_an_error_is_in_its_details(notebook):
    ran = notebook.run("""
@ranks(1)
def raises():
    raise LookupError("first line\\nsecond line")

failed = raises.fails()
print(failed.details.splitlines()[-1])
""")
    assert ran.printed.splitlines() == [
        "rank 0 raised LookupError: first line",
        f"  In[{notebook.number}], line 3, in raises",
        '      raise LookupError("first line\\nsecond line")',
        "second line",
    ]


def test_fails_raises_where_nothing_fails(notebook):
    assert "`total` was to fail, and its ranks returned" in notebook.run(TOTAL + "\ntotal.fails(torch.ones(2))").error


def test_an_attempt_returns_results_or_the_error_and_prints_what_ranks_print(notebook):
    ran = notebook.run("""
@ranks(2)
def tries(wrong):
    print("tried")
    if wrong:
        raise LookupError("not there")
    return distributed.get_rank()

print(tries.attempt(False), type(tries.attempt(True)).__name__)
""")
    lines = ran.printed.splitlines()
    assert lines[:2] == ["rank 0: tried", "rank 1: tried"]
    assert lines[-1] == "[0, 1] RanksFailed" and any("raised LookupError: not there" in line for line in lines)


def test_what_cannot_be_sent_is_named(notebook):
    ran = notebook.run("""
import threading
lock = threading.Lock()

@ranks(2)
def uses_the_lock():
    return lock.locked()

uses_the_lock()
""")
    assert "`uses_the_lock` uses something of this notebook that cannot be sent" in ran.error and "lock" in ran.error


def test_ranks_that_have_not_joined_have_what_torchrun_gives(notebook):
    ran = notebook.run("""
@ranks(2, joined=False)
def alone():
    return os.environ["RANK"], os.environ["WORLD_SIZE"], distributed.is_initialized(), torch.cuda.current_device()

alone()
""")
    assert ran.result == "[('0', '2', False, 0), ('1', '2', False, 0)]"


SLEEP = """
@ranks(2)
def sleeps():
    time.sleep(1000)

sleeps()
"""


def ranks_of(notebook):
    """The kernel's processes, once two ranks sleep among them: a rank has joined when it has a connection."""
    until = time.monotonic() + 120
    while time.monotonic() < until:
        children = notebook.children()
        if sum(1 for child in children if child.net_connections()) >= 2:
            return children
        time.sleep(0.2)
    raise AssertionError("the ranks did not start")


def test_an_interrupt_ends_the_ranks_and_the_next_cell_runs():
    notebook = Notebook()
    try:
        notebook.run(FIRST)
        notebook.run("def alone(): return 1\nranks(2)(alone)()")  # the process that ranks are copies of stays
        stays = {child.pid for child in notebook.children()}
        cell = notebook.begin(SLEEP)
        started = [child for child in ranks_of(notebook) if child.pid not in stays]
        notebook.manager.interrupt_kernel()
        assert "KeyboardInterrupt" in notebook.end(cell).error
        assert len(started) == 2 and not psutil.wait_procs(started, timeout=60)[1]
        assert notebook.run(TOTAL).result == "[30.0, 30.0]"
    finally:
        notebook.close()


def test_nothing_outlives_a_kernel_that_is_killed():
    notebook = Notebook()
    try:
        notebook.run(FIRST)
        notebook.begin(SLEEP)
        started = ranks_of(notebook)
        psutil.Process(notebook.manager.provisioner.pid).kill()
        assert len(started) >= 3 and not psutil.wait_procs(started, timeout=60)[1]
    finally:
        notebook.close()


def test_a_function_of_a_module_without_a_notebook():
    assert ranks(3, device="cpu")(rank_and_size)() == [(0, 3), (1, 3), (2, 3)]


def test_a_rank_function_calls_a_second_one_on_its_own_rank(notebook):
    notebook.run(TOTAL)
    ran = notebook.run("""
@ranks(2)
def twice(numbers):
    return total(numbers) + total(2 * numbers)

twice(torch.tensor([1.0, 2.0]))
""")
    assert ran.result == "[90.0, 90.0]"


def test_no_ranks_at_all():
    with pytest.raises(ValueError, match="`world_size` must be at least 1, got 0"):
        ranks(0)
