"""`scaled_dot_product_attention` runs as the operator that CUDA would choose, and computes what the CPU computes."""

import warnings

import pytest
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

import vgpu

pytestmark = pytest.mark.usefixtures("gpus")

FUSED = (SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION)


class Operators(TorchDispatchMode):
    """The names of the operators that ran."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func._schema.name.removeprefix("aten::"))
        return func(*args, **kwargs or {})


def chosen(*tensors, **options):
    with Operators() as seen:
        F.scaled_dot_product_attention(*tensors, **options)
    found = [name.removeprefix("_scaled_dot_product_").removesuffix("_attention") for name in seen.names]
    return next((name for name in found if name in ("flash", "efficient", "cudnn")), "math")


def drawn(*shape, seed=0, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def offset():
    return torch.cuda.default_generators[0].get_offset()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("masked", [False, True])
def test_without_dropout_the_generator_stays_where_it_was(dtype, masked):
    x = torch.randn(2, 2, 8, 16, device="cuda", dtype=dtype, requires_grad=True)
    mask = torch.ones(8, 8, dtype=torch.bool, device="cuda") if masked else None
    before = offset()
    F.scaled_dot_product_attention(x, x, x, attn_mask=mask).sum().backward()
    assert offset() == before


def test_no_operator_draws_out_of_training():
    x = torch.ones(4, 4, device="cuda")
    before = offset()
    F.dropout(x, training=False)
    torch.native_dropout(x, 0.5, False)
    F.rrelu(x, training=False)
    with torch.inference_mode():
        F.scaled_dot_product_attention(x[None, None], x[None, None], x[None, None])
    assert offset() == before
    torch.native_dropout(x, 0.5, True)
    assert offset() > before


@pytest.mark.parametrize("backend", [*FUSED, SDPBackend.MATH])
def test_with_dropout_it_goes_on(backend):
    x = torch.randn(1, 2, 8, 16, device="cuda", dtype=torch.bfloat16)
    before = offset()
    with sdpa_kernel(backend):
        F.scaled_dot_product_attention(x, x, x, dropout_p=0.5)
    assert offset() > before


def test_the_operator_is_that_of_an_a100():
    full, half = torch.ones(2, 4, 8, 16, device="cuda"), torch.ones(2, 4, 8, 16, device="cuda", dtype=torch.half)
    mask = torch.ones(8, 8, dtype=torch.bool, device="cuda")
    short = half[:, :, :4]
    assert chosen(full, full, full) == "efficient"
    assert chosen(half, half, half) == chosen(half, half, half, is_causal=True) == "flash"
    assert chosen(half, half, half, attn_mask=mask) == "efficient"
    assert chosen(short, half, half) == "flash" and chosen(short, half, half, is_causal=True) == "efficient"
    assert chosen(half[..., :4], half[..., :4], half) == "math"  # not a multiple of 8
    assert chosen(half, half, half[..., :8]) == "efficient"
    assert chosen(full.double(), full.double(), full.double()) == "math"
    assert chosen(full[..., :6], full[..., :6], full[..., :6]) == "math"
    assert chosen(full[0], full[0], full[0]) == "math"
    assert chosen(half, half[:, :2], half[:, :2], enable_gqa=True) == "flash"
    with sdpa_kernel([SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]):
        assert chosen(half, half[:, :2], half[:, :2], enable_gqa=True) == "math"
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        assert chosen(half, half, half) == "cudnn"
    with sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION], set_priority=True):
        assert chosen(half, half, half) == "math"
    with torch.autocast("cuda", torch.bfloat16):
        assert chosen(full, full, full) == "flash"


@pytest.mark.parametrize(("profile", "wanted"), [("t4", "efficient"), ("a100-40", "flash"), ("h100", "cudnn")])
def test_it_follows_the_capability(profile, wanted):
    with vgpu.virtual_gpus(2, profile=profile):
        x = torch.ones(2, 4, 8, 16, device="cuda", dtype=torch.half)
        assert chosen(x, x, x) == wanted


@pytest.mark.parametrize(
    ("shape", "wanted"),
    [
        ((8, 8), "cudnn"),
        ((1, 8), "cudnn"),
        ((2, 1, 8, 1), "cudnn"),
        ((4, 8, 8), "efficient"),
        ((8,), "efficient"),
    ],
)
def test_cudnn_takes_masks_of_two_or_four_dimensions(shape, wanted):
    with vgpu.virtual_gpus(2, profile="h100"):
        x = torch.ones(2, 4, 8, 16, device="cuda", dtype=torch.half)
        assert chosen(x, x, x, attn_mask=torch.ones(shape, dtype=torch.half, device="cuda")) == wanted


def test_cudnn_leaves_to_others_what_it_cannot_do():
    def half(*shape, trained=False):
        return torch.ones(*shape, device="cuda", dtype=torch.half, requires_grad=trained)

    with vgpu.virtual_gpus(2, profile="h100"):
        x, one = half(2, 4, 8, 16), half(2, 4, 1, 16)
        assert chosen(one, x, x) == "cudnn" and chosen(one, x, x, dropout_p=0.5) == "flash"
        assert chosen(x, one, one) == "flash"
        wide, trained = half(1, 1, 8, 160), half(1, 1, 8, 160, trained=True)
        assert chosen(wide, wide, wide) == "cudnn" and chosen(trained, trained, trained) == "flash"
        widest = half(1, 1, 8, 256, trained=True)
        assert chosen(widest, widest, widest) == "cudnn"
        learned = half(8, 8, trained=True)
        assert chosen(x, x, x, attn_mask=learned) == "efficient"
        values = drawn(2, 4, 8, 16, dtype=torch.half).cuda()
        F.scaled_dot_product_attention(x, x, values, attn_mask=learned).square().sum().backward()
        assert learned.grad.ne(0).any()


def test_an_rtx_4090_trains_no_wide_heads_by_flash_attention():
    with vgpu.virtual_gpus(1, profile="rtx4090"):
        x = torch.ones(1, 1, 8, 224, device="cuda", dtype=torch.half)
        assert chosen(x, x, x) == "flash"
        x.requires_grad_()
        assert chosen(x, x, x) == "efficient"
        widest = torch.ones(1, 1, 8, 256, device="cuda", dtype=torch.half, requires_grad=True)
        assert chosen(widest, widest, widest) == "flash"
        assert chosen(widest, widest, widest, dropout_p=0.1) == "efficient"


def test_a_mask_in_float32_is_refused_by_the_memory_efficient_operator_alone():
    x, mask = drawn(1, 2, 8, 16), torch.zeros(8, 8)
    half, on_gpu = x.half().cuda(), mask.cuda()
    for context in (torch.enable_grad, torch.inference_mode):
        with context(), pytest.raises(RuntimeError, match="invalid dtype for bias - should match query's dtype"):
            F.scaled_dot_product_attention(half, half, half, attn_mask=on_gpu)
    wanted = F.scaled_dot_product_attention(x, x, x, attn_mask=mask)
    with vgpu.virtual_gpus(2, profile="h100"):
        q = x.half().cuda()
        by_cudnn = F.scaled_dot_product_attention(q, q, q, attn_mask=mask.cuda())
        torch.testing.assert_close(by_cudnn.cpu().float(), wanted, rtol=0.01, atol=0.01)
    with sdpa_kernel(SDPBackend.MATH):
        by_formulas = F.scaled_dot_product_attention(half, half, half, attn_mask=on_gpu)
    torch.testing.assert_close(by_formulas.cpu().float(), wanted, rtol=0.01, atol=0.01)


def test_a_mask_larger_than_the_scores_is_refused_by_every_operator():
    query, keys = torch.ones(1, 2, 1, 8, device="cuda"), torch.ones(1, 2, 5, 8, device="cuda")
    mask = torch.zeros(5, 5, device="cuda")  # of a whole sequence, where one step is decoded
    with pytest.raises(RuntimeError, match="expanded size of the tensor"):
        F.scaled_dot_product_attention(query, keys, keys, attn_mask=mask)
    said = r"output with shape \[1, 2, 1, 5\] doesn't match the broadcast shape \[1, 2, 5, 5\]"
    with sdpa_kernel(SDPBackend.MATH), pytest.raises(RuntimeError, match=said):
        F.scaled_dot_product_attention(query, keys, keys, attn_mask=mask)


def test_fused_operators_want_the_last_dimension_of_the_mask_in_one_piece():
    x, mask = torch.ones(1, 2, 8, 8, device="cuda"), torch.zeros(8, 8, device="cuda")
    assert chosen(x, x, x, attn_mask=mask) == "efficient"
    assert chosen(x, x, x, attn_mask=mask.T) == chosen(x, x, x, attn_mask=mask[:, :1].expand(8, 8)) == "math"


@pytest.mark.parametrize(
    ("queries", "keys", "values"),
    [
        ((0, 2, 3, 8), (0, 2, 5, 8), (0, 2, 5, 8)),
        ((2, 2, 0, 8), (2, 2, 5, 8), (2, 2, 5, 4)),
        ((2, 2, 3, 8), (2, 2, 0, 8), (2, 2, 0, 4)),
        ((2, 2, 3, 8), (2, 2, 5, 8), (2, 2, 5, 0)),
        ((0, 8), (3, 8), (3, 8)),
    ],
)
def test_of_nothing_come_zeros_and_gradients_of_zeros(queries, keys, values):
    tensors = [torch.randn(shape, device="cuda", requires_grad=True) for shape in (queries, keys, values)]
    mask = torch.zeros(queries[-2], keys[-2], device="cuda", requires_grad=True)
    before = offset()
    out = F.scaled_dot_product_attention(*tensors, attn_mask=mask, dropout_p=0.5)
    assert out.shape == (*queries[:-1], values[-1]) and out.device == tensors[0].device and out.eq(0).all()
    out.sum().backward()
    assert offset() == before and mask.grad is None
    for x in tensors:
        assert x.grad.shape == x.shape and x.grad.eq(0).all()


def test_what_cannot_run_says_why_in_pytorchs_words():
    x = torch.ones(1, 1, 4, 8, device="cuda")
    with (
        sdpa_kernel(SDPBackend.FLASH_ATTENTION),
        warnings.catch_warnings(record=True) as said,
        pytest.raises(RuntimeError, match=r"No available kernel\. Aborting execution\."),
    ):
        warnings.simplefilter("always")
        F.scaled_dot_product_attention(x, x, x)
    assert {w.filename for w in said} == {__file__}
    words = [str(w.message).partition(" (Triggered")[0] for w in said]
    assert words == [
        "Memory efficient kernel not used because:",
        "Memory Efficient attention has been runtime disabled.",
        "Flash attention kernel not used because:",
        "Expected query, key and value to all be of dtype: {Half, BFloat16}. Got Query dtype: float, Key dtype: float, "
        "and Value dtype: float instead.",
        "cuDNN attention kernel not used because:",
        "cuDNN attention has been runtime disabled.",
    ]
    with pytest.raises(RuntimeError, match="Expected query, key, and value to have the same dtype"):
        F.scaled_dot_product_attention(x, x.half(), x)


NOBODY, FLASH, EFFICIENT = (), (SDPBackend.FLASH_ATTENTION,), (SDPBackend.EFFICIENT_ATTENTION,)
# Name, (queries, keys, width, width of the values), options, which operators refuse it.
CASES = [
    ("plain", (8, 8, 16, 16), {}, NOBODY),
    ("causal", (8, 8, 16, 16), {"is_causal": True}, NOBODY),
    ("causal, more keys", (4, 8, 16, 16), {"is_causal": True}, FLASH),
    ("scale", (8, 8, 16, 16), {"scale": 0.3}, NOBODY),
    ("values of another width", (8, 6, 16, 8), {}, FLASH),
    ("keys for several heads", (8, 8, 16, 16), {"enable_gqa": True}, EFFICIENT),
    ("masked", (8, 6, 16, 16), {"masked": True}, FLASH),
    ("masked, values of another width", (8, 6, 16, 8), {"masked": True}, FLASH),
]


def cases():
    for backend in FUSED:
        for name, sizes, options, refused_by in CASES:
            if backend not in refused_by:
                yield pytest.param(backend, sizes, options, id=f"{backend.name.lower()}-{name}")


@pytest.mark.parametrize(("backend", "sizes", "options"), list(cases()))
def test_values_and_gradients_are_those_of_the_cpu(backend, sizes, options):
    queries, keys, width, out_width = sizes
    heads = 2 if "enable_gqa" in options else 4
    dtype = torch.float32 if backend is SDPBackend.EFFICIENT_ATTENTION else torch.bfloat16
    shapes = (2, 4, queries, width), (2, heads, keys, width), (2, heads, keys, out_width)
    on_cpu = [drawn(*shape, seed=k, dtype=dtype).requires_grad_() for k, shape in enumerate(shapes)]
    options = dict(options)
    mask = drawn(queries, keys, seed=9) > -0.5 if options.pop("masked", False) else None
    on_gpu = [x.detach().cuda().requires_grad_() for x in on_cpu]
    with sdpa_kernel(backend):
        found = F.scaled_dot_product_attention(*on_gpu, attn_mask=None if mask is None else mask.cuda(), **options)
    wide = [x.detach().double().requires_grad_() for x in on_cpu]
    wanted = F.scaled_dot_product_attention(*wide, attn_mask=mask, **options)
    weight = drawn(*wanted.shape, seed=5)
    (found * weight.cuda()).sum().backward()
    (wanted * weight).sum().backward()
    close = {"rtol": 1e-5, "atol": 1e-5} if dtype is torch.float32 else {"rtol": 0.02, "atol": 0.03}
    torch.testing.assert_close(found.cpu().double(), wanted, **close)
    for x, y in zip(on_gpu, wide, strict=True):
        assert x.grad.device == x.device and x.grad.dtype == dtype
        torch.testing.assert_close(x.grad.cpu().double(), y.grad, **close)


def test_a_mask_for_a_causal_call_is_added_by_the_operator_that_takes_masks():
    """The formulas, which the CPU uses, refuse the two together; CUDA's operators do not."""
    x, mask = drawn(1, 2, 4, 8), drawn(4, 4, seed=1)
    found = F.scaled_dot_product_attention(x.cuda(), x.cuda(), x.cuda(), attn_mask=mask.cuda(), is_causal=True)
    both = mask.masked_fill(torch.ones(4, 4, dtype=torch.bool).triu(1), float("-inf"))
    torch.testing.assert_close(found.cpu(), F.scaled_dot_product_attention(x, x, x, attn_mask=both))
    with sdpa_kernel(SDPBackend.MATH), pytest.raises(RuntimeError, match="Explicit attn_mask should not be set when"):
        F.scaled_dot_product_attention(x.cuda(), x.cuda(), x.cuda(), attn_mask=mask.cuda(), is_causal=True)
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION), pytest.raises(RuntimeError, match="No available kernel"):
        F.scaled_dot_product_attention(x.cuda(), x.cuda(), x.cuda(), attn_mask=mask.cuda(), is_causal=True)


def test_a_mask_that_is_learned_has_its_gradient():
    x, bias = drawn(2, 4, 8, 16), drawn(4, 8, 8, seed=1)
    on_gpu, learned = x.cuda(), bias.cuda().requires_grad_()
    assert chosen(on_gpu, on_gpu, on_gpu, attn_mask=learned) == "efficient"
    F.scaled_dot_product_attention(on_gpu, on_gpu, on_gpu, attn_mask=learned).square().sum().backward()
    bias.requires_grad_()
    with sdpa_kernel(SDPBackend.MATH):
        F.scaled_dot_product_attention(x, x, x, attn_mask=bias).square().sum().backward()
    torch.testing.assert_close(learned.grad.cpu(), bias.grad, rtol=1e-5, atol=1e-5)


def test_a_query_that_may_attend_to_nothing_gets_zeros_and_no_gradient():
    x = drawn(1, 1, 4, 8).cuda().requires_grad_()
    mask = torch.ones(4, 4, dtype=torch.bool, device="cuda")
    mask[0] = False
    for heads in (1, 2):  # by the CPU's fused operator, and by the formulas
        q = x.expand(1, heads, 4, 8)
        out = F.scaled_dot_product_attention(q, x, x, attn_mask=mask, enable_gqa=heads == 2)
        assert out[0, 0, 0].eq(0).all() and out[0, 0, 1:].ne(0).all()
        (grad,) = torch.autograd.grad(out.square().sum(), x)
        assert grad.isfinite().all()


@pytest.mark.parametrize("backend", FUSED, ids=lambda backend: backend.name.lower())
def test_dropout_takes_away_weights_and_its_gradient_knows_which(backend):
    """With the identity as values the output is the weights themselves, from which those that were dropped are read."""
    n = 64
    dtype = torch.float32 if backend is SDPBackend.EFFICIENT_ATTENTION else torch.bfloat16
    q, k = (drawn(1, 2, n, n, seed=seed, dtype=dtype) * 0.1 for seed in (0, 1))
    on_gpu = [x.cuda().requires_grad_() for x in (q, k)]
    identity = torch.eye(n, device="cuda", dtype=dtype).expand(1, 2, n, n)
    torch.cuda.manual_seed(3)
    with sdpa_kernel(backend):
        out = F.scaled_dot_product_attention(*on_gpu, identity, dropout_p=0.25)
    kept = out.detach().cpu() != 0
    assert 0.7 < kept.float().mean() < 0.8 and not kept[0, 0].equal(kept[0, 1])
    on_cpu = [x.float().requires_grad_() for x in (q, k)]
    weights = (on_cpu[0] @ on_cpu[1].mT * n**-0.5).softmax(-1) * kept / 0.75
    out.float().square().sum().backward()
    weights.square().sum().backward()
    close = {"rtol": 1e-4, "atol": 1e-6} if dtype is torch.float32 else {"rtol": 0.05, "atol": 1e-3}
    torch.testing.assert_close(out.detach().cpu().float(), weights.detach(), **close)
    for x, y in zip(on_gpu, on_cpu, strict=True):
        torch.testing.assert_close(x.grad.cpu().float(), y.grad, **close)


def test_a_checkpoint_drops_the_same_weights_again():
    x = drawn(1, 2, 16, 16).cuda().requires_grad_()

    def attend(y):
        return F.scaled_dot_product_attention(y, y, y, dropout_p=0.5).square().sum()

    grads = []
    for run in (attend, lambda y: checkpoint(attend, y, use_reentrant=False)):
        torch.cuda.manual_seed(1)
        grads.append(torch.autograd.grad(run(x), x)[0])
    assert grads[0].equal(grads[1])


def test_transforms_of_functions_and_inference():
    x = drawn(3, 1, 2, 8, 16).cuda()
    wanted = F.scaled_dot_product_attention(x.flatten(0, 1), x.flatten(0, 1), x.flatten(0, 1)).view(x.shape)
    batched = torch.vmap(lambda y: F.scaled_dot_product_attention(y, y, y))(x)
    torch.testing.assert_close(batched, wanted)
    slope = torch.func.grad(lambda y: F.scaled_dot_product_attention(y, y, y).square().sum())(x[0])
    leaf = x[0].clone().requires_grad_()
    F.scaled_dot_product_attention(leaf, leaf, leaf).square().sum().backward()
    torch.testing.assert_close(slope, leaf.grad)
    with torch.inference_mode():
        assert F.scaled_dot_product_attention(x[0], x[0], x[0]).equal(wanted[0])


def test_the_cpu_keeps_its_own_operator():
    x = drawn(1, 2, 8, 16).requires_grad_()
    with Operators() as seen:
        F.scaled_dot_product_attention(x, x, x)
    assert "_scaled_dot_product_flash_attention_for_cpu" in seen.names
    with pytest.raises(NotImplementedError, match="_scaled_dot_product_flash_attention"):
        torch.ops.aten._scaled_dot_product_flash_attention(x, x, x)


def test_the_layer_below_is_refused_by_name():
    x = torch.ones(1, 8, 2, 16, device="cuda", dtype=torch.half)
    with pytest.raises(NotImplementedError, match="do not simulate the operator aten::_flash_attention_forward"):
        torch.ops.aten._flash_attention_forward(x, x, x, None, None, 8, 8, 0.0, False, False)


def test_everything_is_put_back():
    from torch.distributed.tensor import DTensor

    handlers = DTensor._op_dispatcher._custom_op_handlers
    operator = torch.ops.aten.scaled_dot_product_attention.default
    assert operator in handlers
    vgpu.disable()
    assert operator not in handlers
    found = torch._C._dispatch_dump("aten::scaled_dot_product_attention")
    assert "vgpu" not in found and "AutogradCPU" not in found
    x = drawn(1, 2, 8, 16)
    assert F.scaled_dot_product_attention(x, x, x).isfinite().all()
