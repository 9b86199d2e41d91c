"""What the ranks of test_vgpu_attention_ranks.py do: importable by name in the child, compared with one process."""

from collections.abc import Iterable

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard, distribute_tensor
from torch.distributed.tensor.experimental import context_parallel
from torch.distributed.tensor.experimental._attention import _cp_options, context_parallel_unshard, set_rotate_method
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.attention import SDPBackend, sdpa_kernel

FUSED = {
    SDPBackend.FLASH_ATTENTION: torch.bfloat16,
    SDPBackend.EFFICIENT_ATTENTION: torch.float32,
    SDPBackend.CUDNN_ATTENTION: torch.bfloat16,
}


class Attention(nn.Module):
    """Self-attention whose heads are as many as the width of its projections says: all, or those of one rank."""

    def __init__(self, width: int = 32, of_head: int = 8) -> None:
        super().__init__()
        self.of_head = of_head
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x: Tensor, **options: object) -> Tensor:
        q, k, v = (layer(x).unflatten(-1, (-1, self.of_head)).transpose(1, 2) for layer in (self.q, self.k, self.v))
        return self.out(F.scaled_dot_product_attention(q, k, v, **options).transpose(1, 2).flatten(2))


def new_attention() -> Attention:
    torch.manual_seed(0)
    return Attention()


def drawn(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def whole(x: Tensor) -> Tensor:
    return (x.full_tensor() if isinstance(x, DTensor) else x).detach().cpu()


def close_to(dtype: torch.dtype) -> dict[str, float]:
    return {"rtol": 1e-5, "atol": 1e-5} if dtype is torch.float32 else {"rtol": 0.02, "atol": 0.05}


def heads_on_ranks(rank: int, backends: Iterable[SDPBackend]) -> None:
    """Tensor parallel over heads: attention meets DTensors, and each operator of CUDA's has its rule for them."""
    mesh = init_device_mesh("cuda", (dist.get_world_size(),))
    column = ColwiseParallel(use_local_output=False)
    plan = {"q": column, "k": column, "v": column, "out": RowwiseParallel()}
    x = drawn(2, 8, 32)
    mask = torch.ones(8, 8, dtype=torch.bool).tril()
    for backend in backends:
        dtype = FUSED[backend]
        net, reference = parallelize_module(new_attention().cuda().to(dtype), mesh, plan), new_attention()
        with sdpa_kernel(backend):
            y = net(x.cuda().to(dtype), is_causal=True)
        y.float().square().sum().backward()
        wanted = reference(x, is_causal=True)
        wanted.square().sum().backward()
        torch.testing.assert_close(whole(y).float(), wanted.detach(), **close_to(dtype))
        largest = max(p.grad.abs().max() for p in reference.parameters())
        for p, q in zip(net.parameters(), reference.parameters(), strict=True):
            assert p.grad.device == torch.device("cuda", rank)
            torch.testing.assert_close(whole(p.grad).float() / largest, q.grad / largest, **close_to(dtype))
    q = distribute_tensor(drawn(4, 4, 8, 8).cuda(), mesh, [Shard(0)])
    one = distribute_tensor(mask[None, None].expand(4, 4, 8, 8).contiguous().cuda(), mesh, [Shard(0)])
    y = F.scaled_dot_product_attention(q, q, q, attn_mask=one)
    assert y.placements == (Shard(0),)
    alone = drawn(4, 4, 8, 8)
    wanted = F.scaled_dot_product_attention(alone, alone, alone, attn_mask=mask)
    torch.testing.assert_close(whole(y), wanted)
    with torch.inference_mode():  # which autograd, where the operator is met otherwise, does not see
        y = F.scaled_dot_product_attention(q, q, q, attn_mask=one)
        assert y.placements == (Shard(0),)
        torch.testing.assert_close(y.to_local().cpu(), wanted.chunk(dist.get_world_size())[rank])


def ring(mesh: object, backend: SDPBackend, rotate: str, causal: bool = True) -> None:
    """A sequence cut over the ranks: values and gradients of plain attention on the whole of it."""
    dtype, ranks = FUSED[backend], dist.get_world_size()
    whole_ones = [drawn(2, 2, 64 * ranks, 16, seed=seed).to(dtype).float().requires_grad_() for seed in range(3)]
    wanted = F.scaled_dot_product_attention(*whole_ones, is_causal=causal)
    weight = drawn(*wanted.shape, seed=7)
    (wanted * weight).sum().backward()
    parts = [x.detach().to(dtype).cuda() for x in (*whole_ones, weight)]
    set_rotate_method(rotate)
    with context_parallel(mesh, buffers=parts, buffer_seq_dims=[2] * 4), sdpa_kernel(backend):
        leaves = [x.detach().clone().requires_grad_() for x in parts[:3]]
        assert leaves[0].size(2) == 64
        y = F.scaled_dot_product_attention(*leaves, is_causal=causal)
        (y.float() * parts[3].float()).sum().backward()
        found = context_parallel_unshard(mesh, [y.detach(), *(x.grad for x in leaves)], [2] * 4)
    for one, other in zip(found, (wanted.detach(), *(x.grad for x in whole_ones)), strict=True):
        assert one.device == torch.device("cuda", dist.get_rank())
        torch.testing.assert_close(one.cpu().float(), other, **close_to(dtype))


def on_two(rank: int) -> None:
    heads_on_ranks(rank, FUSED)
    mesh = init_device_mesh("cuda", (2,))
    for backend in FUSED:
        ring(mesh, backend, "allgather")
    ring(mesh, SDPBackend.EFFICIENT_ATTENTION, "alltoall")
    _cp_options.enable_load_balance = False  # what attention without a causal mask asks for
    ring(mesh, SDPBackend.EFFICIENT_ATTENTION, "alltoall", causal=False)


def on_four(rank: int) -> None:
    heads_on_ranks(rank, [SDPBackend.EFFICIENT_ATTENTION])
    mesh = init_device_mesh("cuda", (4,))
    for rotate in ("allgather", "alltoall"):
        ring(mesh, SDPBackend.EFFICIENT_ATTENTION, rotate)
