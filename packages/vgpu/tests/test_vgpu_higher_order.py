"""Operators that take functions, and those of eight bits: values and gradients are those of the CPU."""

import pytest
import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

import vgpu

pytestmark = pytest.mark.usefixtures("gpus")


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile:UserWarning")
@pytest.mark.parametrize("masked", [False, True])
def test_flex_attention_is_attention_with_these_scores(masked):
    """Against the formula on the CPU, where flex_attention itself has no backward."""
    torch.manual_seed(0)
    on_host = [torch.randn(1, 2, 128, 8, requires_grad=True) for _ in range(3)]
    on_gpu = [t.detach().cuda(1).requires_grad_() for t in on_host]
    row, column = torch.arange(128)[:, None], torch.arange(128)[None, :]
    query, key, value = on_host
    scores = query @ key.mT / 8**0.5 + (row - column) / 8
    expected = (scores.masked_fill(row < column, -torch.inf) if masked else scores).softmax(-1) @ value
    expected.square().sum().backward()

    mask = create_block_mask(lambda b, h, q, k: q >= k, None, None, 128, 128, device="cuda:1") if masked else None
    found = flex_attention(*on_gpu, score_mod=lambda score, b, h, q, k: score + (q - k) / 8, block_mask=mask)
    found.square().sum().backward()
    for ours, theirs in zip([found, *(t.grad for t in on_gpu)], [expected, *(t.grad for t in on_host)], strict=True):
        assert ours.device == torch.device("cuda:1")
        torch.testing.assert_close(ours.cpu(), theirs, rtol=1e-4, atol=1e-4)


def test_cond_takes_its_branch_and_the_table_is_put_back():
    x = torch.ones(2, device="cuda:1")
    taken = [torch.cond(x.sum() > n, torch.sin, torch.cos, (x,)) for n in (1, 3)]
    assert torch.equal(taken[0], x.sin()) and torch.equal(taken[1], x.cos()) and taken[0].device == x.device
    vgpu.disable()
    tables = torch.ops.higher_order.cond.python_key_table
    assert not [kind for kind in tables if kind.__module__.startswith("vgpu.")]


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_eight_bit_floats(dtype):
    torch.manual_seed(0)
    a, b = torch.randn(16, 32), torch.randn(16, 32)
    one = torch.tensor(1.0)
    host = [a.to(dtype), b.to(dtype).t(), one, one]
    try:
        expected = torch._scaled_mm(*host, out_dtype=torch.bfloat16)
    except (RuntimeError, NotImplementedError) as error:
        pytest.skip(f"the CPU has no such kernel: {error}")
    found = torch._scaled_mm(*(t.cuda(1) for t in host), out_dtype=torch.bfloat16)
    assert found.device == torch.device("cuda:1") and torch.equal(found.cpu(), expected)
    assert torch.equal(a.cuda(2).to(dtype).float().cpu(), a.to(dtype).float())
