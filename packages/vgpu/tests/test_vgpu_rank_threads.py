"""`vgpu.ranks`: ranks that are threads of one process compute and fail as ranks that are processes do."""

import contextlib
import gc
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
import warnings
import weakref

import pytest
import torch
import torch.distributed as dist
import vgpu_ranks
from torch import nn
from vgpu_group import free_port, on_threads

import vgpu

pytestmark = [
    pytest.mark.usefixtures("gpus"),
    pytest.mark.filterwarnings("ignore:virtual GPUs have no NCCL"),
]


def summed(rank: int) -> list[float]:
    mine = torch.tensor([rank + 1.0], device="cuda")
    dist.all_reduce(mine)
    return mine.tolist()


class TestWhatRanksDo:
    def test_results_come_in_the_order_of_the_ranks(self):
        @vgpu.ranks(3)
        def place(text, *, sign):
            return dist.get_rank(), dist.get_world_size(), str(torch.ones(1, device="cuda").device), text + sign

        assert place("a", sign="!") == [(k, 3, f"cuda:{k}", "a!") for k in range(3)]
        assert place.__name__ == "place"

    def test_a_collective_needs_nothing_that_a_test_of_the_program_mocks(self, monkeypatch):
        mine = torch.ones(2, 2, device="cuda").unbind()  # one for each rank, made before
        monkeypatch.setattr(torch, "tensor", lambda *_, **__: pytest.fail("mocked"))

        @vgpu.ranks(2)
        def total():
            copy = mine[dist.get_rank()].to("cuda", copy=True)
            dist.all_reduce(copy)
            return copy.tolist()

        assert total() == [[2.0, 2.0]] * 2

    @pytest.mark.parametrize("work", [vgpu_ranks.collectives, vgpu_ranks.synced_norm, vgpu_ranks.offloaded])
    def test_what_processes_do(self, work):
        """FSDP2, tensor parallel and checkpoints: test_vgpu_sharded.py; the rules of NCCL: test_vgpu_nccl.py."""
        pytest.importorskip("numpy", reason="PyTorch's collectives of objects need it")
        on_threads(work)

    def test_a_function_for_spawned_ranks_runs_as_it_is(self):
        """The recipe of docs/ranks.md for a suite that starts its ranks by `mp.spawn`."""

        port, seen = free_port(), []

        def start(rank):
            os.environ.update(RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
            dist.init_process_group("nccl")
            seen.append(summed(rank))
            dist.destroy_process_group()

        vgpu.ranks(2, backend=None)(lambda: start(int(os.environ["RANK"])))()
        assert seen == [[3], [3]]

    def test_gloo_takes_tensors_of_both_kinds(self):
        def both(rank):
            host = torch.tensor([rank + 1.0])
            dist.all_reduce(host)
            return host.tolist(), summed(rank), dist.get_backend()

        assert on_threads(both, backend="gloo") == [([3], [3], "gloo")] * 2

    def test_gloo_sends_no_tensors_of_gpus(self):
        def sent(rank):
            for device, words in (("cpu", ""), ("cuda", "gloo sends and receives no tensors of GPUs")):
                mine = torch.tensor([rank + 1.0], device=device)
                with pytest.raises(RuntimeError, match=words) if words else contextlib.nullcontext():
                    dist.send(mine, 1) if rank == 0 else dist.recv(mine, 0)
                host = mine.tolist()
            return host

        assert on_threads(sent, backend="gloo") == [[1], [2]]

    def test_what_was_begun_is_waited_for(self):
        def begun(rank):
            mine, taken = torch.tensor([rank + 1.0], device="cuda"), torch.zeros(1, device="cuda")
            work = dist.all_reduce(mine, async_op=True)
            moves = [dist.P2POp(dist.isend, mine.clone(), 1 - rank), dist.P2POp(dist.irecv, taken, 1 - rank)]
            work.wait()
            for move in dist.batch_isend_irecv(moves):
                move.wait()
            return mine.item(), taken.item()

        found = on_threads(begun)
        assert [total for total, _ in found] == [3, 3]

    def test_groups_that_are_split(self):
        def split(rank):
            halves = [dist.split_group(None, [[0, 1], [2, 3]]), dist.split_group(None, [[0, 2]])]
            totals = []
            for half in halves:
                mine = torch.tensor([rank + 1.0], device="cuda")
                if half not in (None, dist.GroupMember.NON_GROUP_MEMBER):
                    dist.all_reduce(mine, group=half)
                totals.append(mine.item())
            return totals

        assert on_threads(split, ranks=4) == [[3, 4], [3, 2], [7, 4], [7, 4]]

    def test_hooks_of_a_backward_pass_run_on_its_rank(self):
        def hooks(rank):
            model = nn.parallel.DistributedDataParallel(nn.Linear(2, 2).cuda())
            met = []
            for parameter in model.parameters():
                parameter.register_post_accumulate_grad_hook(lambda _: met.append(dist.get_rank()))
            model.register_comm_hook(None, lambda _, bucket: met.append(dist.get_rank()) or _summed(bucket))
            model(torch.ones(2, 2, device="cuda")).sum().backward()
            return set(met)

        def _summed(bucket):
            return dist.all_reduce(bucket.buffer(), async_op=True).get_future().then(lambda done: done.value()[0])

        assert on_threads(hooks) == [{0}, {1}]

    def test_a_thread_that_a_rank_starts_is_of_that_rank(self):
        def helper(rank):
            met = []

            def work():
                torch.cuda.set_device(rank)  # a new thread begins on cuda:0, as on GPUs
                met.append((dist.get_rank(), summed(rank), os.environ["RANK"]))

            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
            return met

        assert on_threads(helper) == [[(rank, [3], str(rank))] for rank in range(2)]

    def test_a_function_may_make_its_own_group(self):
        def joins(rank):
            assert not dist.is_initialized()
            dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
            return summed(rank)

        assert on_threads(joins, backend=None) == [[3], [3]]


class TestWhatARankHasForItself:
    """The upper half of the table in README.md."""

    def test_generators(self):
        def draws(rank):
            torch.manual_seed(rank)
            dropout = nn.Dropout(0.5)
            dist.barrier()  # each rank draws after all have seeded
            numbers = [torch.rand(3), torch.randperm(9), torch.empty(3).normal_(), nn.Linear(2, 2).weight]
            numbers += [torch.rand(3, device="cuda"), dropout(torch.ones(9)), dropout(torch.ones(9, device="cuda"))]
            numbers += [torch.distributions.Gamma(1.0, 1.0).sample((3,)), torch.rand(2, generator=default())]
            kept = torch.get_rng_state()
            again = torch.rand(2)
            torch.set_rng_state(kept)
            assert torch.rand(2).equal(again) and torch.initial_seed() == torch.cuda.initial_seed() == rank
            return [one.tolist() for one in (*numbers, again)]

        def default():
            return torch.default_generator

        torch.manual_seed(5)
        expected = [torch.rand(2).tolist(), torch.rand(2, device="cuda").tolist()]
        torch.manual_seed(5)
        found = on_threads(draws)
        assert [torch.rand(2).tolist(), torch.rand(2, device="cuda").tolist()] == expected, "the process draws on"
        alone = [vgpu.ranks(1)(lambda rank=rank: draws(rank))()[0] for rank in range(2)]
        assert found == alone and found[0] != found[1]

    def test_environment_variables(self, monkeypatch):
        monkeypatch.setenv("VGPU_TEST_GIVEN", "given")
        monkeypatch.delenv("RANK", raising=False)

        def variables(rank):
            os.environ["VGPU_TEST_MADE"] = os.environ["VGPU_TEST_GIVEN"] = str(rank)
            dist.barrier()
            told = [os.environ[name] for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "VGPU_TEST_MADE")]
            return [*told, os.environ["VGPU_TEST_GIVEN"], "VGPU_TEST_MADE" in dict(os.environ)]

        assert on_threads(variables) == [[str(k), str(k), "2", str(k), str(k), True] for k in range(2)]
        program = "import os; print(os.environ.get('VGPU_TEST_MADE'), os.environ['VGPU_TEST_GIVEN'])"
        child = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        assert child.stdout.split() == ["None", "given"] and "RANK" not in os.environ

    def test_modes_of_autograd_and_the_default_device(self):
        both = threading.Barrier(2)

        def modes(rank):
            torch.set_default_device("cuda" if rank == 0 else "cpu")
            with torch.set_grad_enabled(rank == 0), torch.autocast("cuda", enabled=rank == 0):
                both.wait(60)
                return torch.is_grad_enabled(), torch.is_autocast_enabled("cuda"), torch.ones(1).device.type

        assert on_threads(modes) == [(True, True, "cuda"), (False, False, "cpu")]

    def test_a_context_that_has_ended(self, capfd):
        failed = threading.Event()

        def fails(rank):
            ones = torch.ones(2, device="cuda:0")
            if rank == 1:
                ones[torch.tensor([5], device="cuda:0")]
                with pytest.raises(torch.AcceleratorError, match="device-side assert"):
                    torch.cuda.synchronize(0)
                with pytest.raises(torch.AcceleratorError, match="device-side assert"):
                    ones + 1
                failed.set()
                return None
            assert failed.wait(60)
            return (ones + 1).tolist()

        with vgpu.virtual_gpus(4, errors="late"):
            assert on_threads(fails) == [[2, 2], None]
            assert (torch.ones(1, device="cuda:0") + 1).item() == 2, "the process has a context of its own"
        assert "Assertion" in capfd.readouterr().err

    def test_groups(self):
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        try:
            assert on_threads(lambda rank: (dist.get_world_size(), dist.get_backend())) == [(2, "nccl")] * 2
            assert (dist.get_world_size(), dist.get_backend()) == (1, "gloo")
            dist.all_reduce(torch.ones(1))
        finally:
            dist.destroy_process_group()


class TestWhatRanksShare:
    """The lower half of the table in README.md."""

    def test_arguments_are_the_same_objects(self):
        given = torch.zeros(1)
        assert [one is given for one in vgpu.ranks(2)(lambda x: x)(given)] == [True, True]

    def test_generators_that_are_not_pytorchs(self):
        def draws(rank):
            random.seed(0)
            dist.barrier()
            return random.random()

        first, second = on_threads(draws)
        assert first != second, "one seeded sequence, of which each rank draws a number"

    def test_the_default_dtype(self):
        def dtype(rank):
            if rank == 0:
                torch.set_default_dtype(torch.float64)
            dist.barrier()
            return torch.ones(1).dtype

        try:
            assert on_threads(dtype) == [torch.float64] * 2
        finally:
            torch.set_default_dtype(torch.float32)

    def test_the_working_directory(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "of rank 0").mkdir()

        def folder(rank):
            if rank == 0:
                os.chdir("of rank 0")
            dist.barrier()
            return os.path.basename(os.getcwd())

        assert on_threads(folder) == ["of rank 0"] * 2

    def test_flags_and_filters(self, monkeypatch):
        monkeypatch.setattr(torch.backends.cudnn, "benchmark", False)

        def flags(rank):
            if rank == 0:
                torch.backends.cudnn.benchmark = True
                warnings.filterwarnings("ignore", message="of rank 0")
            dist.barrier()
            return torch.backends.cudnn.benchmark, any("of rank 0" in str(line[1]) for line in warnings.filters)

        with warnings.catch_warnings():
            assert on_threads(flags) == [(True, True)] * 2

    def test_memory_figures_are_those_of_a_gpu(self):
        def memory(rank):
            kept = torch.ones(1024, device="cuda:0")
            dist.barrier()
            found = torch.cuda.memory_allocated(0)
            dist.barrier()
            return found >= 2 * kept.nbytes

        assert on_threads(memory) == [True, True]

    def test_each_rank_computes_with_one_thread(self):
        before = torch.get_num_threads()
        assert on_threads(lambda rank: torch.get_num_threads()) == [1, 1]
        assert torch.get_num_threads() == before

    def test_signals_belong_to_the_process(self):
        with pytest.raises(ValueError, match="signal only works in main thread"):
            on_threads(lambda rank: signal.signal(signal.SIGINT, signal.SIG_IGN))

    def test_the_machine_cannot_be_changed_by_a_rank(self):
        for change in (vgpu.disable, lambda: vgpu.enable(2)):
            with pytest.raises(RuntimeError, match=r"a rank of vgpu.ranks cannot change the virtual GPUs"):
                on_threads(lambda rank, change=change: change())
        assert torch.cuda.device_count() == 4


class TestHowRanksFail:
    def test_the_first_error_is_raised_as_it_is(self):
        def raises(rank):
            if rank == 1:
                raise KeyError("broken")
            return summed(rank)

        began = time.monotonic()
        with pytest.raises(KeyError, match="broken") as caught:
            on_threads(raises)
        assert caught.value.__notes__ == ["on rank 1 of 2, a thread of vgpu.ranks"]
        assert "raises" in [entry.name for entry in caught.traceback], "the line of the rank is in the traceback"
        assert time.monotonic() - began < 30, "the other rank was released"

    # On torch 2.13 about one in forty such groups waits for ever, or ends the process, when the collector destroys it.
    @pytest.mark.skipif(
        torch.__version__.startswith("2.13"), reason="torch 2.13 may wait where it destroys such a group"
    )
    def test_a_model_that_refers_to_itself_keeps_nobody_waiting(self):
        def raises(rank):
            model = nn.parallel.DistributedDataParallel(nn.Linear(2, 2).cuda())
            model.itself = [model]
            if rank == 1:
                raise KeyError("broken")
            model(torch.ones(1, 2, device="cuda")).sum().backward()

        with pytest.raises(KeyError, match="broken"):
            on_threads(raises)

    def test_a_rank_that_returns_early_is_named(self):
        with pytest.raises(RuntimeError, match=r"rank 0 waited in all_reduce \(.*:\d+, in summed\)") as caught:
            on_threads(lambda rank: summed(rank) if rank == 0 else None)
        assert "rank 1 had ended" in str(caught.value) and "gloo" in str(caught.value.__cause__)

    def test_a_rank_that_does_not_come_is_named(self):
        def late(rank):
            if rank == 1:
                time.sleep(3)
            summed(rank)

        with pytest.raises(TimeoutError, match=r"rank 0 waited in all_reduce") as caught:
            on_threads(late, timeout=0.5)
        assert re.search(r"rank 1 was at .*:\d+, in late", str(caught.value))

    def test_ranks_that_call_different_collectives(self):
        def differ(rank):
            ones = torch.ones(2, device="cuda")
            dist.all_reduce(ones) if rank == 0 else dist.broadcast(ones, 0)

        with pytest.raises(RuntimeError, match="do not call the same collective") as caught:
            on_threads(differ)
        assert "rank 0: allreduce of float32" in str(caught.value)

    def test_own_words_about_time_stay(self):
        def raises(rank):
            raise RuntimeError("the timeout of my own protocol")

        with pytest.raises(RuntimeError, match="the timeout of my own protocol") as caught:
            on_threads(raises)
        assert type(caught.value) is RuntimeError

    def test_a_rank_that_exits(self):
        with pytest.raises(RuntimeError, match=r"rank \d called sys.exit\(3\)"):
            on_threads(lambda rank: sys.exit(3))

    def test_ranks_go_on_afterwards(self):
        with pytest.raises(ZeroDivisionError):
            on_threads(lambda rank: 1 / 0)
        assert on_threads(summed) == [[3], [3]]


class TestWhatIsLeft:
    def test_nothing_stays_replaced(self):
        found = dist.distributed_c10d._world, threading.Thread.start, os.environ._data, torch.default_generator
        on_threads(summed)
        now = dist.distributed_c10d._world, threading.Thread.start, os.environ._data, torch.default_generator
        assert all(one is other for one, other in zip(found, now, strict=True)) and not dist.is_initialized()

    def test_groups_are_gone(self):
        groups = on_threads(lambda rank: (summed(rank), weakref.ref(dist.group.WORLD))[1])
        gc.collect()
        assert [group() for group in groups] == [None, None]

    def test_threads_are_gone(self):
        before = threading.active_count()
        on_threads(summed)
        assert threading.active_count() == before


@pytest.mark.parametrize(
    ("size", "options", "words"),
    [
        (len, {}, r"takes the number of ranks, as in @vgpu.ranks\(2\), got <built-in"),
        (True, {}, "takes the number of ranks"),
        (0, {}, "number of ranks must be from 1 to 64, got 0"),
        (2, {"backend": 2}, "backend must be a name such as 'nccl' or 'gloo', or None, got 2"),
        (2, {"timeout": "1"}, "timeout must be a number of seconds, got '1'"),
        (2, {"timeout": 0}, "timeout must be more than 0 seconds, got 0"),
    ],
)
def test_bad_arguments(size, options, words):
    with pytest.raises((TypeError, ValueError), match=words):
        vgpu.ranks(size, **options)


def test_what_is_not_a_function():
    with pytest.raises(TypeError, match=r"vgpu.ranks\(2\) takes a function, got 3"):
        vgpu.ranks(2)(3)


def test_more_ranks_than_gpus():
    work = vgpu.ranks(5)(lambda: None)
    with pytest.raises(RuntimeError, match=r"vgpu.ranks\(5\) needs 5 virtual GPUs, and this process sees 4"):
        work()
    vgpu.disable()
    with pytest.raises(RuntimeError, match=r"there are no virtual GPUs: call vgpu.enable\(5\) first"):
        work()


def test_ranks_of_a_rank():
    with pytest.raises(RuntimeError, match="a rank has no ranks of its own"):
        on_threads(lambda rank: on_threads(summed))
