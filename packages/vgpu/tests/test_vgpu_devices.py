"""`torch.cuda` and `torch.accelerator`: devices, the current one, their names."""

import threading

import pytest
import torch

pytestmark = pytest.mark.usefixtures("gpus")


def test_the_machine_has_its_gpus_and_an_honest_name():
    assert torch.cuda.is_available()
    assert torch.cuda.device_count() == torch.accelerator.device_count() == 4
    assert torch.cuda.get_device_name(3) == "Virtual GPU (CPU)"
    assert torch.cuda.get_device_properties("cuda:1").total_memory > 0
    assert torch.accelerator.current_accelerator() == torch.device("cuda")
    torch.cuda.synchronize(2)
    torch.cuda.empty_cache()
    torch.cuda.ipc_collect()


def test_the_current_device_belongs_to_the_thread():
    torch.cuda.set_device(2)
    seen: list[object] = []

    def work() -> None:
        seen.append(torch.cuda.current_device())
        torch.cuda.set_device(3)
        seen.append(torch.ones(1).cuda().device)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [0, torch.device("cuda", 3)]
    assert torch.cuda.current_device() == 2


def test_device_contexts_nest():
    with torch.cuda.device(1):
        assert torch.ones(1, device="cuda").device == torch.device("cuda:1")
        with torch.cuda.device("cuda:3"), torch.cuda.device(-1):
            assert torch.accelerator.current_device_index() == 3
        assert torch.cuda.current_device() == 1
        with torch.cuda.device_of(torch.ones(1, device="cuda:2")):
            assert torch.tensor([1], device="cuda").device.index == 2
    assert torch.cuda.current_device() == 0


def test_default_device():
    torch.set_default_device("cuda:2")
    assert torch.zeros(1).device == torch.randn(2).device == torch.device("cuda:2")
    torch.set_default_device(None)
    with torch.device("cuda:1"):
        assert torch.nn.Linear(2, 2).weight.device == torch.device("cuda:1")
    assert torch.zeros(1).device == torch.device("cpu")


@pytest.mark.parametrize(
    "use",
    [
        lambda: torch.ones(1, device="cuda:4"),
        lambda: torch.ones(1).cuda(7),
        lambda: torch.ones(1).to("cuda:9"),
        lambda: torch.cuda.set_device(4),
        lambda: torch.nn.Linear(1, 1).cuda(5),
        lambda: torch.cuda.device(6).__enter__(),
    ],
)
def test_a_device_the_machine_lacks(use):
    with pytest.raises(torch.AcceleratorError, match="CUDA error: invalid device ordinal"):
        use()


def test_the_current_device_in_backward_is_that_of_the_operator():
    seen = []

    class Probe(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            seen.append(torch.cuda.current_device())
            with torch.cuda.device(0):
                seen.append(torch.cuda.current_device())
            return grad

    Probe.apply(torch.ones(2, device="cuda:3", requires_grad=True)).sum().backward()
    assert seen == [3, 0]
    assert torch.cuda.current_device() == 0


def test_streams_and_events_are_ordered_no_ops():
    stream = torch.cuda.Stream(device=1)
    with torch.cuda.stream(stream):
        assert torch.cuda.current_stream(1) == stream
        x = torch.ones(3, device="cuda:1") * 2
    x.record_stream(stream)
    stream.wait_stream(torch.cuda.current_stream(1))
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    end.record(stream)
    end.synchronize()
    assert stream.query() and end.query()
    assert torch.cuda.current_stream(1) != stream


@pytest.mark.parametrize("cpu", ["cpu:1", "cpu:5", torch.device("cpu", 63)], ids=str)
def test_the_index_of_a_cpu_means_nothing(cpu):
    x = torch.ones(2)
    made = (
        x.to(cpu),
        torch.ones(2, device=cpu),
        torch.arange(2, device=cpu),
        torch.as_tensor(x, device=cpu),
        x.cuda(1).to(cpu),
        torch.empty_like(x.cuda(1), device=cpu),
        torch.nn.Linear(2, 2, device=cpu).weight,
        torch.nn.Linear(2, 2, device="cuda:1").to(cpu).weight,
    )
    assert [tensor.device.type for tensor in made] == ["cpu"] * len(made)
    assert not any(tensor.is_cuda for tensor in made)


def test_integers_name_gpus():
    assert torch.device(2) == torch.device("cuda:2")
    assert isinstance(torch.device(2), torch.device)
    assert torch.ones(1).to(3).device == torch.device("cuda:3")
    assert torch.nn.Linear(1, 1).to(1).weight.device == torch.device("cuda:1")
