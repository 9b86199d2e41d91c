"""autocast("cuda") and GradScaler: the dtypes of PyTorch's own lists, per thread, for virtual tensors alone."""

import copy
import itertools
import threading

import pytest
import torch
from torch import nn

pytest.importorskip("expecttest", reason="PyTorch's own tables need what the extra `test` installs")

from torch.testing._internal.autocast_test_lists import AutocastTestLists

pytestmark = pytest.mark.usefixtures("gpus")
ONE = torch.device("cuda:1")

# Operators of the lists that have no CPU kernel in that dtype, so that there is nothing to run.
NO_KERNEL = {"cudnn_convolution", "cudnn_convolution_transpose"}
LOWER = ("torch_fp16", "nn_fp16", "linalg_fp16", "methods_fp16")
FLOAT32 = ("torch_fp32", "nn_fp32", "methods_fp32")


def entries(lists: AutocastTestLists, names: tuple[str, ...]):
    for group in names:
        for entry in getattr(lists, group):
            name, args = entry[0], entry[1]
            if isinstance(args, str):
                continue  # einsum's equation does not fit its operands there
            kwargs = entry[2] if len(entry) > 2 and isinstance(entry[2], dict) else {}
            if name not in NO_KERNEL:
                yield name, args, kwargs


def call(name: str, args: tuple, kwargs: dict) -> torch.Tensor:
    owners = (torch, torch._C._nn, nn.functional, torch.linalg)
    if name.startswith("__"):
        out = getattr(args[0], name)(*args[1:], **kwargs)
    else:
        owner = next(o for o in owners if hasattr(o, name.removeprefix("linalg_")) or hasattr(o, name))
        function = getattr(owner, name, None) or getattr(owner, name.removeprefix("linalg_"))
        out = function(*args, **kwargs)
    return out[0] if isinstance(out, tuple) else out


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_the_lists_of_pytorch(gpus, dtype):
    with torch.cuda.device(1):
        lists = AutocastTestLists(ONE)
    wrong = []
    with torch.autocast("cuda", dtype=dtype):
        for groups, wanted in ((LOWER, dtype), (FLOAT32, torch.float32)):
            for name, args, kwargs in entries(lists, groups):
                found = call(name, args, kwargs)
                if found.dtype is not wanted or found.device != ONE:
                    wrong.append((name, found.dtype, found.device))
        for name, args in lists.torch_need_autocast_promote:
            if dtype is torch.float16 and call(name, args, {}).dtype is not torch.float32:
                wrong.append((name, "promote"))
        for name, args, wanted in lists.torch_expect_builtin_promote:
            if name != "equal" and call(name, args, {}).dtype is not wanted:  # equal returns a bool
                wrong.append((name, "built-in promotion"))
        with pytest.raises(RuntimeError, match="unsafe to autocast"):
            nn.functional.binary_cross_entropy(torch.rand(2, device=ONE), torch.rand(2, device=ONE))
    assert wrong == []


def test_a_dtype_is_kept_by_name_and_by_position():
    logits = torch.randn(2, 3, device="cuda", dtype=torch.float16)
    with torch.autocast("cuda"):
        assert torch.log_softmax(logits, 1, torch.float64).dtype is torch.float64
        assert torch.log_softmax(logits, dim=1, dtype=torch.float64).dtype is torch.float64
        assert torch.log_softmax(logits, 1, None).dtype is torch.float32
        labels = torch.tensor([0, 2], device="cuda")
        assert (
            nn.functional.cross_entropy(logits, labels).dtype is torch.float32
        )  # in C++: log_softmax, dtype by position


def test_cpu_tensors_and_float64_are_left_alone():
    a, wide = torch.ones(2, 2), torch.ones(2, 2, dtype=torch.float64, device=ONE)
    with torch.autocast("cuda"):
        assert torch.einsum("ij,jk->ik", a.to(ONE), a.to(ONE)).dtype is torch.float16
        assert (a @ a).dtype is torch.float32
        assert (wide @ wide).dtype is torch.float64
        assert (a.to(ONE) @ a.to(ONE)).dtype is torch.float16
        with torch.autocast("cuda", enabled=False):
            assert (a.to(ONE) @ a.to(ONE)).dtype is torch.float32
        assert (a.to(ONE) @ a.to(ONE)).dtype is torch.float16
    assert (a.to(ONE) @ a.to(ONE)).dtype is torch.float32 and not torch.is_autocast_enabled("cuda")


def test_gradients_come_in_the_dtype_of_the_weights():
    net = nn.Linear(4, 3).cuda(1)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        out = net(torch.ones(2, 4, device=ONE))
        loss = nn.functional.mse_loss(out, torch.zeros_like(out))
    assert out.dtype is torch.bfloat16 and loss.dtype is torch.float32
    loss.backward()
    assert net.weight.grad.dtype is torch.float32 and net.weight.grad.device == ONE
    with torch.autocast("cpu", dtype=torch.bfloat16):
        reference = copy.deepcopy(net).cpu()(torch.ones(2, 4))
    torch.testing.assert_close(out.cpu(), reference, rtol=1e-2, atol=1e-2)


def test_a_weight_is_cast_once_until_the_outermost_block_ends():
    weight = torch.ones(2, 2, device=ONE, requires_grad=True)
    with torch.autocast("cuda"):
        first, second = weight @ weight, weight @ weight
        casts = {id(f) for out in (first, second) for f, _ in out.grad_fn.next_functions}
        assert len(casts) == 1
    with torch.autocast("cuda", cache_enabled=False):
        out = weight @ weight
        assert len({id(f) for f, _ in out.grad_fn.next_functions}) == 2


def casts_of_a_weight(device: str, modes: tuple) -> list:
    """For products of one weight in one block: which have a graph, how many casts those share, the gradient."""
    weight = torch.ones(2, 2, device=device, requires_grad=True)
    x = torch.ones(2, 2, device=device, dtype=torch.bfloat16)
    out = []
    with torch.autocast(device, torch.bfloat16):
        for mode in modes:
            with mode():
                out.append(x @ weight)
    graphs = [y for y in out if y.requires_grad]
    casts = {id(f) for y in graphs for f, _ in y.grad_fn.next_functions if f is not None}
    for y in graphs:
        y.sum().backward()
    return [[y.requires_grad for y in out], len(casts), None if weight.grad is None else weight.grad.tolist()]


MODES = (torch.enable_grad, torch.no_grad, torch.inference_mode)


@pytest.mark.parametrize("modes", [*itertools.product(MODES, repeat=3)])
def test_a_block_that_began_without_gradients_gives_the_graphs_of_the_cpus_autocast(modes):
    found = casts_of_a_weight("cuda", modes)
    assert found == casts_of_a_weight("cpu", modes)
    assert found[0] == [mode is torch.enable_grad for mode in modes]


def _half_precision(weight, rows):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        result = torch.nn.functional.linear(rows, weight)
    assert result.dtype is torch.bfloat16
    return result.float().sum()


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: torch.func.grad(f),
        lambda f: torch.func.jacrev(f),
        lambda f: lambda w, x: torch.vmap(torch.func.grad(f), in_dims=(None, 0))(w, x).sum(0),
        lambda f: lambda w, x: torch.func.grad(f, argnums=(1, 0))(w, x)[1],
    ],
)
def test_functions_of_torch_func_transform_a_block(transform):
    weight, rows = torch.ones(3, 4, device="cuda:1"), torch.arange(8.0, device="cuda:1").reshape(2, 4)
    found = transform(_half_precision)(weight, rows)
    assert found.device == weight.device and found.dtype is torch.float32
    torch.testing.assert_close(found, rows.sum(0).expand(3, 4))


def test_it_belongs_to_a_thread_and_data_parallel_passes_it_on():
    seen = []

    class Spy(nn.Linear):
        def forward(self, x):
            out = super().forward(x)
            seen.append((out.dtype, out.get_device(), torch.is_autocast_enabled("cuda")))
            return out

    dp = nn.DataParallel(Spy(4, 2).cuda(), [0, 1, 2])
    with torch.autocast("cuda", dtype=torch.float16):
        other: list = []
        thread = threading.Thread(target=lambda: other.append(torch.is_autocast_enabled("cuda")))
        thread.start()
        thread.join()
        assert other == [False]
        out = dp(torch.ones(6, 4))
    assert out.dtype is torch.float16
    assert sorted(seen, key=lambda s: s[1]) == [(torch.float16, k, True) for k in range(3)]
    seen.clear()
    with torch.autocast("cuda", dtype=torch.bfloat16):  # parallel_apply hands on that it is on, not the dtype
        dp(torch.ones(6, 4))
    assert sorted(seen, key=lambda s: s[1]) == [(torch.float16, k, True) for k in range(3)]


def test_grad_scaler_skips_a_step_that_overflowed():
    net = nn.Linear(2, 1).cuda(1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
    scaler = torch.amp.GradScaler("cuda", init_scale=2.0**4, growth_interval=1)
    before = net.weight.detach().clone()

    def step(factor: float) -> None:
        optimizer.zero_grad()
        with torch.autocast("cuda"):
            loss = net(torch.ones(2, 2, device=ONE)).float().mean() * factor
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()

    step(float("inf"))
    assert net.weight.equal(before) and scaler.get_scale() == 8
    step(1.0)
    assert not net.weight.equal(before) and scaler.get_scale() == 16
    assert net.weight.grad.tolist() == [[1, 1]], "unscaled"


def test_the_layers_of_cudnn_run_in_float16_whatever_the_lower_dtype_is():
    layer, steps = nn.LSTM(2, 3).to(ONE), torch.ones(4, 1, 2, device=ONE)
    for lower in (torch.float16, torch.bfloat16):
        with torch.autocast("cuda", dtype=lower):
            output, _ = layer(steps)
        assert output.dtype is torch.float16
    torch.testing.assert_close(output.float(), layer(steps)[0], atol=1e-2, rtol=1e-2)


def test_torchvisions_operators_compute_in_float32_and_keep_the_dtype_of_the_picture():
    ops = pytest.importorskip("torchvision").ops
    picture = torch.arange(16.0, device=ONE).reshape(1, 1, 4, 4)
    regions = torch.tensor([[0.0, 0.0, 0.0, 2.0, 2.0]], device=ONE)
    with torch.autocast("cuda"):
        pooled = ops.roi_align(picture.half(), regions, 2)
        kept = ops.nms(regions[:, 1:], torch.ones(1, device=ONE).half(), 0.5)
    assert (pooled.dtype, pooled.device) == (torch.float16, ONE) and kept.tolist() == [0]
    torch.testing.assert_close(pooled.float(), ops.roi_align(picture, regions, 2), atol=1e-2, rtol=1e-2)


def test_two_kinds_of_half_precision_in_one_operator_are_refused():
    with torch.autocast("cuda", dtype=torch.bfloat16), pytest.raises(RuntimeError, match="Unexpected floating Scalar"):
        torch.dot(torch.ones(2, device=ONE).half(), torch.ones(2, device=ONE).half())
