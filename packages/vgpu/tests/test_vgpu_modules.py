"""Modules, parameters and optimizers: the objects a program holds stay the objects it holds."""

import copy
import gc
import weakref
from collections.abc import Callable

import pytest
import torch
from torch import nn

pytestmark = pytest.mark.usefixtures("gpus")


def net() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.Linear(48, 2)).double()


def images(rows: int) -> torch.Tensor:
    return torch.linspace(-1, 1, rows * 36, dtype=torch.float64).sin().view(rows, 1, 6, 6)


def test_moving_a_module_keeps_its_parameters():
    module = net()
    before = list(module.parameters())
    for move in (
        lambda: module.cuda(),
        lambda: module.cuda(2),
        lambda: module.to("cuda:1"),
        lambda: module.cpu(),
        lambda: module.to(3),
    ):
        move()
        assert all(p is q and isinstance(p, nn.Parameter) for p, q in zip(before, module.parameters(), strict=True))
    assert {str(t.device) for t in [*module.parameters(), *module.buffers()]} == {"cuda:3"}
    assert all(p.is_leaf and p.requires_grad for p in before)


def test_a_module_comes_back_as_it_was():
    module = net()
    state = copy.deepcopy(module.state_dict())
    module.cuda(1).cpu()
    for name, tensor in module.state_dict().items():
        assert type(tensor) is torch.Tensor and torch.equal(tensor, state[name])
    assert all(type(p) is nn.Parameter for p in module.parameters())


def test_gradients_move_with_their_parameters():
    module = net()
    module(images(2)).sum().backward()
    grad = module[0].weight.grad.clone()
    module.cuda(2)
    assert module[0].weight.grad.device == torch.device("cuda:2")
    assert torch.equal(module[0].weight.grad.cpu(), grad)


@pytest.mark.parametrize(
    "make",
    [
        lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=1e-3),
        lambda p: torch.optim.Adam(p, lr=0.01),
        lambda p: torch.optim.AdamW(p, lr=0.01, amsgrad=True),
        lambda p: torch.optim.RMSprop(p, lr=0.01),
    ],
)
def test_an_optimizer_built_before_the_move_trains_as_on_the_cpu(make: Callable):
    host, moved = net(), net()
    optimizers = make(host.parameters()), make(moved.parameters())
    moved.cuda(1)
    for _ in range(3):
        for module, optimizer in zip((host, moved), optimizers, strict=True):
            optimizer.zero_grad()
            where = next(module.parameters()).device
            module(images(4).to(where)).square().mean().backward()
            nn.utils.clip_grad_norm_(module.parameters(), 1.0)
            optimizer.step()
    for p, q in zip(host.parameters(), moved.parameters(), strict=True):
        assert q.device == torch.device("cuda:1")
        # Adam divides by the square root of gradients that are zero up to rounding before a BatchNorm.
        torch.testing.assert_close(p, q.cpu(), rtol=1e-10, atol=1e-10)


def test_assigning_data_moves_the_tensor_under_its_name():
    p = nn.Parameter(torch.ones(2))
    p.data = torch.full((3,), 2.0, device="cuda:1")
    assert p.device == torch.device("cuda:1") and p.tolist() == [2, 2, 2] and p.requires_grad
    p.data = torch.zeros(1, device="cuda:2")
    assert p.device == torch.device("cuda:2") and (p * 2).device == torch.device("cuda:2")
    (p * 3).sum().backward()
    assert p.grad.tolist() == [3]
    p.data.add_(5)
    assert p.tolist() == [5]
    p.data = torch.ones(4)
    assert type(p) is nn.Parameter and p.device.type == "cpu" and p.shape == (4,)


def test_hooks_survive_the_move():
    p = nn.Parameter(torch.ones(2))
    seen: list[object] = []
    p.register_hook(lambda grad: seen.append(grad.device))
    p.data = p.data.cuda(1)
    p.sum().backward()
    assert seen == [torch.device("cuda:1")]


def test_state_dicts_load_across_devices():
    source, target = net().cuda(1), net()
    with torch.no_grad():
        for p in source.parameters():
            p.add_(1)
    target.load_state_dict(source.state_dict())
    assert torch.equal(target[4].weight, source[4].weight.cpu())
    optimizer = torch.optim.Adam(source.parameters())
    source(images(2).cuda(1)).sum().backward()
    optimizer.step()
    again = torch.optim.Adam(target.cuda(2).parameters())
    again.load_state_dict(optimizer.state_dict())
    assert all(s["exp_avg"].device == torch.device("cuda:2") for s in again.state.values())


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_modules(kind: type[nn.Module]):
    host = kind(3, 4, 2).double()
    moved = copy.deepcopy(host).cuda(1)
    x = torch.randn(5, 2, 3, dtype=torch.float64)
    out, _ = host(x)
    other, _ = moved(x.cuda(1))
    other.sum().backward()
    assert other.device == torch.device("cuda:1")
    torch.testing.assert_close(other.cpu(), out, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_packed_sequences_keep_their_batch_sizes_on_the_host(gpus, kind):
    torch.manual_seed(0)
    host = getattr(nn, kind)(3, 4, num_layers=2, bidirectional=True)
    moved = copy.deepcopy(host).cuda(1)
    rows, lengths = torch.randn(5, 2, 3), torch.tensor([5, 3])

    def run(module: nn.Module, x: torch.Tensor) -> torch.Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths)
        assert packed.batch_sizes.device.type == "cpu" and packed.data.device == x.device
        out, _ = nn.utils.rnn.pad_packed_sequence(module(packed)[0])
        out.square().sum().backward()
        return out

    torch.testing.assert_close(run(moved, rows.cuda(1)).cpu(), run(host, rows))
    for p, q in zip(host.parameters(), moved.parameters(), strict=True):
        torch.testing.assert_close(q.grad.cpu(), p.grad)


CHANGES = {
    "dtype, on the CPU": (lambda x: x.double(), lambda x: x.float()),  # plain PyTorch, the reference
    "device": (lambda x: x.cuda(1), lambda x: x.cpu()),
}


def story_of_a_parameter(there: Callable, back: Callable) -> list:
    """What autograd does with graphs from before and after `p.data = ...` in a way that needs a new accumulator."""
    told: list = []
    p = nn.Parameter(torch.ones(2))
    with torch.no_grad():
        p.add_(1).sub_(1)
    early = torch.autograd.graph.get_gradient_edge(p).node
    before = (p * 2).sum()
    p.data = there(p.data)
    told.append(torch.autograd.graph.get_gradient_edge(p).node is early)
    p.register_hook(lambda grad: told.append(("hook", grad.tolist())))
    name = id(p)  # a hook that held p would keep it for ever, as PyTorch's collector does not see these hooks
    p.register_post_accumulate_grad_hook(lambda t: told.append(("accumulated", id(t) == name, t.grad.tolist())))
    before.backward()
    told += [p.grad.tolist(), p.grad.dtype if p.grad.is_cpu else p.grad.device]
    p.grad = None
    there_graph = (p * 3).sum()
    early_there = torch.autograd.graph.get_gradient_edge(p).node
    p.data = back(p.data)
    p.data = there(p.data)
    there_graph.backward(retain_graph=True)
    gradient = p.grad
    there_graph.backward()  # twice: accumulated in place
    (p * 4).sum().backward()
    told += [p.grad is gradient, p.grad.tolist(), torch.autograd.graph.get_gradient_edge(p).node is early_there]
    p.data = back(p.data)
    told += [p.grad is gradient, p.grad.tolist()]  # on the old device, where it was
    p.data = there(p.data)[:1]
    told += [p.shape, p.grad is gradient, p.grad.tolist()]
    p.data = back(torch.zeros(3))
    told += [p.shape, p.grad is gradient, p.grad.tolist(), type(p) is nn.Parameter]
    return [*told, p._version]


def test_assigned_data_leaves_graphs_hooks_and_gradients_as_plain_pytorch_does():
    assert story_of_a_parameter(*CHANGES["device"]) == story_of_a_parameter(*CHANGES["dtype, on the CPU"])


def test_a_gradient_that_is_there_counts_once_where_data_moves_between_forward_and_backward():
    p = nn.Parameter(torch.ones(2, device="cuda:1"))
    for step in (1, 2, 3):
        loss = (p * 3).sum()
        p.data = p.data.cpu()
        p.data = p.data.cuda(1)
        loss.backward()
        assert p.grad.tolist() == [3 * step, 3 * step]


@pytest.mark.parametrize("device", ["cpu", "cuda:1"])
def test_a_deep_copy_of_a_parameter_has_no_gradient_and_no_hooks(device):
    net = nn.Linear(2, 1).to(device)
    net.weight.register_hook(lambda grad: 0 * grad)
    net(torch.ones(1, 2, device=device)).sum().backward()
    net.bias.requires_grad_(False)
    other = copy.deepcopy(net)
    assert net.weight.grad is not None and other.weight.grad is None
    assert type(other.weight) is type(net.weight) and isinstance(other.weight, nn.Parameter)
    assert not other.bias.requires_grad and other.weight.equal(net.weight)
    other(torch.ones(1, 2, device=device)).sum().backward()
    assert other.weight.grad.tolist() == [[1, 1]]


def test_the_dtype_chosen_for_gradients_survives_the_move():
    p = nn.Parameter(torch.ones(2, dtype=torch.bfloat16))
    p.grad_dtype = torch.float32
    p.data = p.data.cuda()
    (p.float() * 2).sum().backward()
    assert p.grad.dtype is torch.float32 and p.grad.is_cuda
    p.data = p.data.cpu()
    assert p.grad_dtype is torch.float32


def test_a_gradient_of_the_old_device_is_met_where_real_hardware_meets_it():
    p = nn.Parameter(torch.ones(2))
    before = (p * 2).sum()
    p.data = p.data.cuda()
    before.backward()
    assert p.grad.device.type == "cpu" and p.grad.tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        (p * 3).sum().backward()
    p.grad.data = p.grad.data.cuda()  # as Module.cuda does it
    (p * 3).sum().backward()
    assert p.grad.tolist() == [5, 5] and p.grad.device == torch.device("cuda:0")
    p.data = p.data.cpu()
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        torch.optim.SGD([p], lr=1.0, foreach=False).step()


def test_moving_a_parameter_holds_no_memory():
    held = torch.cuda.memory_allocated(1)
    alive = []
    for backward in (True, False):
        p = nn.Parameter(torch.ones(300, device="cuda:1"))
        loss = (p * 2).sum()
        p.data = torch.zeros(1)
        p.data = torch.zeros(300, device="cuda:1")
        if backward:
            loss.backward()
            p.data = torch.zeros(4)
        alive.append(weakref.ref(p))
        del p, loss
    gc.collect()
    assert [reference() for reference in alive] == [None, None]
    assert torch.cuda.memory_allocated(1) == held


def test_data_of_a_tensor_that_others_hold_does_not_move_in_silence():
    p = nn.Parameter(torch.ones(2, device="cuda"))
    p.sum().backward()
    with pytest.raises(NotImplementedError, match=r"assigning \.data on cpu to a tensor on cuda:0 that is a gradient"):
        p.grad.data = p.grad.data.cpu()
    y = p * 2
    y.data = y.data.cpu()
    assert y.device.type == "cpu" and not y.is_leaf
    with pytest.raises(RuntimeError, match="invalid gradient at index 0 - expected device cuda:0 but got cpu"):
        y.sum().backward()


def test_the_type_of_a_parameter_makes_parameters(gpus):
    old = nn.Linear(2, 2, device=gpus[1]).weight
    on_host = type(old)(torch.zeros(2, 2), requires_grad=False)
    assert type(on_host) is nn.Parameter and not on_host.requires_grad
    for made in (type(old)(old.data, requires_grad=True), type(old)(old.data, True)):
        assert isinstance(made, nn.Parameter) and made.requires_grad and made.device == gpus[1]
        assert made.data_ptr() == old.data_ptr() and made.equal(old)
        module = nn.Linear(2, 2)
        module.weight = made
        assert dict(module.named_parameters())["weight"] is made
    assert type(old.data)([1.0, 2.0]).tolist() == [1, 2], "and the type of a tensor still makes tensors"


@pytest.mark.parametrize("there, back", [("cuda:1", "cpu"), ("cpu", "cuda:1")])
def test_the_base_of_views_moves_and_its_views_keep_their_memory(there, back):
    before = torch.cuda.memory_allocated(1)
    flat = torch.arange(300.0, device=there)
    parts = [flat[:100], flat[100:].view(2, 100)]
    flat.data = moved = flat.to(back)
    assert flat.device == torch.device(back) and {part.device for part in parts} == {torch.device(there)}
    parts[0].zero_()
    assert flat[1] == 1 and parts[0].eq(0).all()
    for part, rows in zip(parts, (moved[:100], moved[100:].view(2, 100)), strict=True):
        part.data = rows  # as DeepSpeed does when it brings a flat buffer and its pieces to the host
    parts[1][1, 99] = 7
    assert flat[299] == 7 and parts[0].device == flat.device
    if back == "cpu":
        assert torch.cuda.memory_allocated(1) == before


def test_a_base_that_a_graph_has_saved_does_not_move_whatever_views_it_has():
    flat = torch.ones(2, device="cuda")
    p = nn.Parameter(torch.ones(2, device="cuda"))
    part, graph = flat[:1], p * flat
    with pytest.raises(NotImplementedError, match=r"assigning \.data on cpu .* was saved by a graph"):
        flat.data = flat.data.cpu()
    del graph
    flat.data = flat.data.cpu()
    assert (flat.device.type, part.device.type) == ("cpu", "cuda")
