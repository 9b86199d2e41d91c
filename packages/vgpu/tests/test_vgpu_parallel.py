"""torch.nn.parallel itself, unmodified, with real threads on virtual GPUs."""

import copy
import threading

import pytest
import torch
from torch import nn
from torch.cuda import comm
from torch.nn.parallel import data_parallel, gather, parallel_apply, replicate, scatter

pytestmark = pytest.mark.usefixtures("gpus")


def net() -> nn.Module:
    torch.manual_seed(2)
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.Tanh(), nn.Flatten(), nn.Linear(64, 3)).double()


@pytest.mark.parametrize("devices", [1, 2, 3, 4])
@pytest.mark.parametrize("rows", [1, 3, 7, 8])
def test_data_parallel_gives_the_cpus_outputs_and_gradients(devices: int, rows: int):
    host = net()
    moved = nn.DataParallel(copy.deepcopy(host).cuda(), list(range(devices)))
    x = torch.randn(rows, 1, 6, 6, dtype=torch.float64)
    x_host, x_gpu = x.clone().requires_grad_(), x.clone().requires_grad_()
    expected, found = host(x_host), moved(x_gpu)
    expected.square().sum().backward()
    found.square().sum().backward()
    assert found.device == torch.device("cuda:0")
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(x_gpu.grad, x_host.grad, rtol=1e-10, atol=1e-10)
    for p, q in zip(host.parameters(), moved.module.parameters(), strict=True):
        assert q.grad.device == torch.device("cuda:0")
        torch.testing.assert_close(q.grad.cpu(), p.grad, rtol=1e-10, atol=1e-10)


def test_replicas_run_in_threads_each_on_its_device():
    seen: dict[int, tuple] = {}

    class Spy(nn.Linear):
        def forward(self, x):
            name = threading.current_thread() is threading.main_thread()
            seen[torch.cuda.current_device()] = (name, x.device, self.weight.device, torch.ones(1).cuda().device)
            return super().forward(x)

    nn.DataParallel(Spy(2, 2).cuda(), [1, 2, 3], output_device="cuda:2").module.cuda(1)
    dp = nn.DataParallel(Spy(2, 2).cuda(1), [1, 2, 3], output_device=2)
    assert dp(torch.ones(6, 2)).device == torch.device("cuda:2")
    assert seen == {k: (False, *[torch.device("cuda", k)] * 3) for k in (1, 2, 3)}


def test_no_grad_reaches_the_threads():
    dp = nn.DataParallel(nn.Linear(2, 2).cuda())
    with torch.no_grad():
        assert not dp(torch.ones(4, 2)).requires_grad


def test_an_exception_names_replica_and_device():
    class Fails(nn.Module):
        def forward(self, x):
            raise KeyError("broken")

    with pytest.raises(KeyError, match=r"Caught KeyError in replica 0 on device 0"):
        nn.DataParallel(Fails())(torch.ones(4, 2))


def test_the_four_calls_by_hand():
    module = net().cuda()
    x = torch.randn(5, 1, 6, 6, dtype=torch.float64, device="cuda:0", requires_grad=True)
    parts = scatter(x, [0, 1, 2])
    assert [len(p) for p in parts] == [2, 2, 1] and [p.get_device() for p in parts] == [0, 1, 2]
    replicas = replicate(module, [0, 1, 2])
    assert [r[0].weight.get_device() for r in replicas] == [0, 1, 2]
    assert list(replicas[1].parameters()) == [], "replicas carry tensors, not parameters"
    outputs = parallel_apply(replicas, [(p,) for p in parts])
    whole = gather(outputs, 1)
    assert whole.device == torch.device("cuda:1")
    torch.testing.assert_close(whole.cpu(), module(x).cpu(), rtol=1e-10, atol=1e-10)
    whole.sum().backward()
    assert x.grad.device == torch.device("cuda:0") and module[0].weight.grad is not None
    torch.testing.assert_close(data_parallel(module, x, [0, 1]), module(x), rtol=1e-10, atol=1e-10)


def test_gather_warns_about_scalars_and_takes_the_cpu():
    scalars = [torch.tensor(1.0, device="cuda:0"), torch.tensor(2.0, device="cuda:1")]
    with pytest.warns(UserWarning, match="all input tensors were scalars"):
        assert gather(scalars, "cpu").tolist() == [1, 2]


def test_keyword_arguments_without_rows_for_every_device():
    class Both(nn.Module):
        def forward(self, x, y=None):
            return x

    assert nn.DataParallel(Both().cuda())(torch.ones(4, 2), y=3).shape == (4, 2)


class TestComm:
    def test_scatter_and_gather(self):
        x = torch.arange(10.0)
        chunks = comm.scatter(x, [0, 2], [7, 3])
        assert [c.tolist() for c in chunks] == [list(range(7)), [7, 8, 9]]
        assert comm.gather(chunks, destination="cpu").equal(x)
        assert comm.gather(chunks, destination=3).device == torch.device("cuda:3")
        with pytest.raises(RuntimeError, match=r"expects split_sizes to sum exactly to 10"):
            comm.scatter(x, [0, 1], [2, 2])
        with pytest.raises(RuntimeError, match="Expected all input tensors to be CUDA tensors"):
            comm.gather([x])
        out = [torch.empty(4, device="cuda:1"), torch.empty(6, device="cuda:2")]
        assert comm.scatter(x, out=out)[1].tolist() == [4, 5, 6, 7, 8, 9]
        whole = torch.empty(10, device="cuda:0")
        assert comm.gather(out, out=whole).equal(x.cuda())

    def test_a_chunk_at_home_is_a_view(self):
        x = torch.zeros(4, device="cuda:0")
        first, second = comm.scatter(x, [0, 1])
        first += 1
        second += 5
        assert x.tolist() == [1, 1, 0, 0]

    def test_broadcast_and_reduce(self):
        x = torch.arange(3.0, device="cuda:1")
        copies = comm.broadcast(x, [1, 0, 3])
        assert [c.get_device() for c in copies] == [1, 0, 3] and copies[0] is x
        out = [torch.empty(3, device="cuda:0"), torch.empty(3, device="cuda:2")]
        comm.broadcast(x, out=out)
        assert out[1].equal(x.to(2))
        total = comm.reduce_add([*copies], destination=3)
        assert total.device == torch.device("cuda:3") and total.tolist() == [0, 3, 6]
        coalesced = comm.broadcast_coalesced([x, x * 2], [1, 2])
        assert coalesced[1][1].device == torch.device("cuda:2") and coalesced[1][1].tolist() == [0, 2, 4]
        sums = comm.reduce_add_coalesced(coalesced, 1)
        assert sums[1].tolist() == [0, 4, 8] and sums[1].device == torch.device("cuda:1")


@pytest.mark.exhaustive
def test_a_thousand_steps_hold_no_memory():
    import gc

    dp = nn.DataParallel(nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1)).cuda(), [0, 1])
    optimizer = torch.optim.Adam(dp.parameters())

    def step() -> None:
        optimizer.zero_grad()
        dp(torch.ones(6, 8)).square().mean().backward()
        optimizer.step()

    for _ in range(3):
        step()
    gc.collect()
    held = [torch.cuda.memory_allocated(k) for k in range(2)]
    alive = sum(isinstance(o, torch.Tensor) for o in gc.get_objects())
    for _ in range(1000):
        step()
    gc.collect()
    assert [torch.cuda.memory_allocated(k) for k in range(2)] == held
    assert sum(isinstance(o, torch.Tensor) for o in gc.get_objects()) == alive


@pytest.mark.parametrize("grad", [False, True])
def test_gather_keeps_the_memory_format_and_takes_the_first_dtype(gpus, grad):
    parts = [torch.full((1, 3, 2, 2), k + 1.0, device=gpu) for k, gpu in enumerate(gpus[:2])]
    with torch.set_grad_enabled(grad):
        for order in (torch.channels_last, torch.contiguous_format):
            joined = comm.gather([part.contiguous(memory_format=order) for part in parts], 0, 1)
            assert joined.is_contiguous(memory_format=order) and joined.device == gpus[1]
            assert joined[:, 0, 0, 0].tolist() == [1, 2]
        mixed = comm.gather([parts[0].half(), parts[1].double()], 0)
        assert mixed.dtype == torch.float16 and mixed[:, 0, 0, 0].tolist() == [1, 2]
