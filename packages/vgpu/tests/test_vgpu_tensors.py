"""Tensors on virtual GPUs: making, moving, changing, printing, copying them."""

import copy

import pytest
import torch
from torch.nn.utils.rnn import pack_sequence

pytestmark = pytest.mark.usefixtures("gpus")
ONE = torch.device("cuda:1")


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.zeros(2, device="cuda:1"),
        lambda: torch.randn(2, device=ONE),
        lambda: torch.tensor([1.0, 2.0], device="cuda:1"),
        lambda: torch.as_tensor(pytest.importorskip("numpy").ones(2), device="cuda:1"),
        lambda: torch.arange(3, device=ONE),
        lambda: torch.ones(2).cuda(1),
        lambda: torch.ones(2).cuda("cuda:1"),
        lambda: torch.ones(2).to(ONE, torch.float64),
        lambda: torch.ones(2).to(device="cuda:1", dtype=torch.int32),
        lambda: torch.ones(2).to(torch.ones(1, device=ONE)),
        lambda: torch.ones(2, device="cuda:0").to(ONE, non_blocking=True),
        lambda: torch.zeros_like(torch.ones(2), device="cuda:1"),
        lambda: torch.ones(2, device=ONE).new_tensor([1]),
        lambda: torch.ones(2, device=ONE).new_zeros(3),
        lambda: torch.empty(3, device=ONE).uniform_(),
        lambda: torch.eye(3, device=ONE)[1:, :2],
        lambda: torch.ones(2).type("torch.cuda.FloatTensor").to(1),
    ],
)
def test_every_way_to_get_there(make):
    made = make()
    assert made.device == ONE and made.is_cuda and not made.is_cpu and made.get_device() == 1
    assert made.cpu().device.type == "cpu" and type(made.cpu()) is torch.Tensor


def test_bare_cuda_means_the_current_device():
    with torch.cuda.device(2):
        for made in (
            torch.tensor([1], device="cuda"),
            torch.as_tensor([1.0], device="cuda"),
            torch.ones(1).cuda(),
            torch.ones(1).to("cuda"),
            torch.empty(1, device="cuda"),
            torch.zeros_like(torch.ones(1), device="cuda"),
        ):
            assert made.device == torch.device("cuda:2")


def test_a_move_to_where_it_is_is_the_tensor_itself():
    x = torch.ones(2, device=ONE)
    assert x.to("cuda:1") is x and x.cuda(1) is x
    assert x.to("cuda:1", copy=True) is not x


def test_values_survive_views_and_in_place_changes():
    x = torch.arange(6.0, device=ONE).view(2, 3)
    row = x[1]
    row.mul_(10)
    row[0] = -1
    assert x.tolist() == [[0, 1, 2], [-1, 40, 50]]
    assert row._base is not None and row.data_ptr() == x[1].data_ptr()
    x.t_()
    assert x.shape == (3, 2) and x.t().is_contiguous()
    y = torch.empty(0, device=ONE)
    assert torch.add(row, 1, out=y) is y and y.tolist() == [0, 41, 51]
    assert y.resize_(2).shape == (2,) and y.unsqueeze_(0).shape == (1, 2)
    z = torch.zeros(1, device=ONE)
    z.set_(x)
    assert z.shape == x.shape and z.data_ptr() == x.data_ptr()


def test_indices_may_lie_on_the_cpu():
    x = torch.arange(5.0, device=ONE)
    assert x[torch.tensor([0, 2])].tolist() == [0, 2]
    assert x[torch.tensor([True, False, True, False, False])].device == ONE
    x[torch.tensor([1])] = 7
    assert x[1].item() == 7
    assert (x + torch.tensor(1.0)).device == ONE, "a 0-dim CPU tensor is a number"
    assert torch.where(x > 2, x, torch.tensor(0.0)).device == ONE


def test_printing():
    x = torch.tensor([1.0, 2.0], device=ONE)
    assert repr(x) == "tensor([1., 2.], device='cuda:1')"
    assert repr(x.double()) == "tensor([1., 2.], device='cuda:1', dtype=torch.float64)"
    assert repr(x.requires_grad_()) == "tensor([1., 2.], device='cuda:1', requires_grad=True)"
    assert repr(x * 2) == "tensor([2., 4.], device='cuda:1', grad_fn=<MulBackward0>)"
    assert repr(torch.zeros(0, 3, device=ONE)) == "tensor([], device='cuda:1', size=(0, 3))"
    parameter = torch.nn.Parameter(torch.ones(1, device=ONE))
    assert repr(parameter) == "Parameter containing:\ntensor([1.], device='cuda:1', requires_grad=True)"
    assert f"{torch.tensor(1.5, device=ONE):.2f}" == "1.50"
    assert torch.ones(1, device=ONE).type() == "torch.cuda.FloatTensor"


def test_numpy_is_refused_as_on_a_gpu():
    np = pytest.importorskip("numpy")
    x = torch.ones(2, device=ONE)
    words = "can't convert cuda:1 device type tensor to numpy. Use Tensor.cpu()"
    for use in (x.numpy, lambda: np.asarray(x)):
        with pytest.raises(TypeError, match=words):
            use()
    assert x.cpu().numpy().tolist() == [1, 1]


def test_deepcopy_keeps_shared_storage_and_gradients():
    x = torch.ones(4, device=ONE, requires_grad=True)
    x.sum().backward()
    twin = copy.deepcopy(x)
    assert twin.device == ONE and twin.requires_grad and twin.grad.tolist() == [1] * 4
    assert twin.data_ptr() != x.data_ptr()
    base = torch.zeros(4, device=ONE)
    first, second = copy.deepcopy([base, base[2:]])
    first[2] = 5
    assert second[0].item() == 5
    with pytest.raises(RuntimeError, match="graph leaves"):
        copy.deepcopy(x * 2)


def test_gradients_cross_devices():
    w = torch.ones(3, device="cuda:2", requires_grad=True)
    host = torch.ones(3, requires_grad=True)
    ((w * 3).to("cuda:1") * 2 + host.cuda(1)).cpu().sum().backward()
    assert w.grad.device == torch.device("cuda:2") and w.grad.tolist() == [6] * 3
    assert host.grad.device.type == "cpu" and host.grad.tolist() == [1] * 3


def test_double_backward_checkpoint_and_vmap():
    x = torch.tensor([2.0], device=ONE, requires_grad=True)
    (first,) = torch.autograd.grad(x**3, x, create_graph=True)
    (second,) = torch.autograd.grad(first, x)
    assert second.tolist() == [12] and second.device == ONE
    out = torch.utils.checkpoint.checkpoint(lambda t: (t * t).sin(), x, use_reentrant=False)
    out.sum().backward()
    assert x.grad.device == ONE
    assert torch.vmap(lambda t: t * 2)(torch.ones(3, 2, device=ONE)).device == ONE


def test_complex_views():
    x = torch.view_as_complex(torch.arange(4.0, device=ONE).view(2, 2))
    assert x.conj().imag.tolist() == [-1, -3]
    assert torch.fft.ifft(torch.fft.fft(x)).sub(x).abs().max() < 1e-6


@pytest.mark.parametrize("name", ["pinv", "svd", "lstsq"])
def test_kernels_that_conjugate_inside(name: str):
    torch.manual_seed(0)
    a = torch.randn(4, 4, dtype=torch.complex64)
    function = getattr(torch.linalg, name)
    given = (a, a[:, :1].clone()) if name == "lstsq" else (a,)
    host, moved = function(*given), function(*(t.to(ONE) for t in given))
    if name != "pinv":
        host, moved = host[0], moved[0]
    torch.testing.assert_close(moved.cpu(), host)


def test_pinned_memory():
    assert torch.ones(2).pin_memory().is_pinned() and not torch.ones(2).is_pinned()
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        torch.ones(2, device=ONE).pin_memory()


def test_dataloader_pins_and_works_in_processes():
    rows = torch.utils.data.TensorDataset(torch.arange(8.0))
    loader = torch.utils.data.DataLoader(rows, batch_size=4, num_workers=1, pin_memory=True)
    batches = [batch for (batch,) in loader]
    assert [b.is_pinned() for b in batches] == [True, True]
    assert torch.cat([b.cuda(1, non_blocking=True) for b in batches]).sum().item() == 28


def test_sparse_gradients_of_an_embedding():
    table = torch.nn.Embedding(5, 2, sparse=True).cuda(1)
    table(torch.tensor([1, 3], device=ONE)).sum().backward()
    assert table.weight.grad.is_sparse and table.weight.grad.device == ONE
    assert table.weight.grad.to_dense().sum().item() == 4


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta state")
def test_layouts_that_are_not_simulated_say_so():
    with pytest.raises(NotImplementedError, match="sparse_csr"):
        torch.eye(3).to_sparse_csr().to(ONE)


@pytest.mark.parametrize("device", ["cpu", "cuda:1"])
def test_operators_on_lists_count_as_changes(gpus, device):
    weight = torch.ones(3, device=device, requires_grad=True)
    doubled = weight * 2
    loss = doubled.sin().sum()
    with torch.no_grad():
        torch._foreach_mul_([doubled], 2.0)
    assert doubled._version == 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
    weight.grad = torch.ones_like(weight)
    before = weight._version
    torch.optim.AdamW([weight], foreach=True).step()
    assert weight._version > before
    with torch.inference_mode():
        free = torch.ones(2, device=device)
        torch._foreach_add_([free], 1.0)
    assert free.tolist() == [2.0, 2.0]


def _module():
    return torch.nn.Linear(2, 2, device=ONE)


MOVES = {
    "to cpu, float64": lambda x, c: x.to("cpu", torch.float64),
    "to cuda:0, float64": lambda x, c: x.to("cuda:0", torch.float64),
    "as_tensor": lambda x, c: torch.as_tensor(x, device="cpu"),
    "asarray": lambda x, c: torch.asarray(x, device="cpu"),
    "module": lambda x, c: _module().to("cpu", torch.float64).weight,
    "module, cuda:0": lambda x, c: _module().to("cuda:0", torch.float64).weight,
    "type_as": lambda x, c: c.type_as(x),
    "type_as, back": lambda x, c: x.type_as(c),
    "view_as": lambda x, c: x.view_as(c),
    "expand_as": lambda x, c: x.expand_as(c),
    "matmul": lambda x, c: torch.nn.functional.linear(x, x),
    "lstm": lambda x, c: torch.nn.LSTM(2, 3).to(ONE)(pack_sequence([x]))[0].data,
}


@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES)
def test_operators_made_of_others_do_the_same_in_inference_mode(move):
    """There, and only there, PyTorch hands them over whole."""
    x, c = torch.ones(2, 2, device=ONE), torch.ones(2, 2)
    with torch.no_grad():
        torch.manual_seed(0)
        right = move(x, c)
    with torch.inference_mode():
        torch.manual_seed(0)
        found = move(x, c)
    assert (found.device, found.dtype, found.shape) == (right.device, right.dtype, right.shape)


def test_a_written_list_given_by_name_counts_as_changed():
    from torch.distributed.fsdp._fully_shard import _fsdp_collectives  # noqa: F401, defines the operators of FSDP

    whole = torch.arange(6.0, device=ONE)
    parts = [torch.zeros(2, device=ONE), torch.zeros(4, device=ONE)]
    versions = [part._version for part in parts]
    torch.ops.fsdp.split_with_sizes_copy(whole, [2, 4], 0, out=parts)
    assert [part.tolist() for part in parts] == [[0, 1], [2, 3, 4, 5]]
    assert all(part._version > version for part, version in zip(parts, versions, strict=True))


def test_operators_on_lists_take_places_on_several_devices_one_after_the_other():
    xs = [torch.ones(2), torch.ones(3, device="cuda:0"), torch.ones(1, device="cuda:1")]
    torch._foreach_mul_(xs, [2.0, 3.0, 4.0])
    sums = torch._foreach_add(xs, xs, alpha=2)
    assert [x.device for x in sums] == [x.device for x in xs]
    assert [x.tolist() for x in sums] == [[6, 6], [9, 9, 9], [12]]
    torch._foreach_copy_(xs, [x.cpu() for x in sums])
    assert [x.tolist() for x in xs] == [[6, 6], [9, 9, 9], [12]] and all(x._version == 2 for x in xs)
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        torch._foreach_add(xs, [x.cpu() for x in xs])
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        torch._foreach_add_(xs[1:2], xs[2:])
