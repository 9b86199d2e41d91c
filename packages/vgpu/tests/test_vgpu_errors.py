"""The table of mistakes: each raises what a GPU raises, in PyTorch's words, and never shows the internal device."""

import re

import pytest
import torch
from torch import nn

pytestmark = pytest.mark.usefixtures("gpus")

SAME = "Expected all tensors to be on the same device, but "


def on(device: object, *shape: int) -> torch.Tensor:
    return torch.ones(*shape).to(device)


def grad_of(x: torch.Tensor, grad: torch.Tensor) -> None:
    x.grad = grad


class OnFirst(torch.autograd.Function):
    """Computes anywhere, and makes its gradient on the first GPU."""

    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return torch.ones(ctx.shape, device="cuda:0")


def got(argument: str, device: str, others: str, kernel: str) -> str:
    """The words of a check in the generated wrapper of a CUDA kernel."""
    return (
        f"{SAME}got {argument} is on {device}, different from other tensors on {others} (when checking argument in "
        f"method wrapper_CUDA_{kernel})"
    )


ZERO, ONE_CPU = torch.tensor([0]), torch.ones(2)

MISTAKES = {
    "bmm": (lambda: torch.bmm(on(0, 1, 2, 2), on(1, 1, 2, 2)), got("mat2", "cuda:1", "cuda:0", "bmm")),
    "baddbmm": (
        lambda: torch.baddbmm(on(0, 1, 2, 2), on(0, 1, 2, 2), on("cpu", 1, 2, 2)),
        got("batch2", "cpu", "cuda:0", "baddbmm"),
    ),
    "einsum": (
        lambda: torch.einsum("ij,jk", on(0, 2, 2), on("cpu", 2, 2)),
        got("mat2", "cpu", "cuda:0", "bmm"),
    ),
    "mv": (lambda: torch.mv(on(0, 2, 2), ONE_CPU), got("vec", "cpu", "cuda:0", "_mv")),
    "dot": (lambda: torch.dot(on(0, 2), ONE_CPU), got("tensor", "cpu", "cuda:0", "_dot")),
    "a CPU bias": (
        lambda: nn.functional.linear(on(0, 2, 2), on(0, 2, 2), ONE_CPU),
        got("mat1", "cuda:0", "cpu", "addmm"),
    ),
    "out": (lambda: torch.mm(on(0, 2, 2), on(0, 2, 2), out=on("cpu", 2, 2)), got("out", "cpu", "cuda:0", "mm_out_out")),
    "stack": (lambda: torch.stack([on(0, 2), on(1, 2)]), got("tensors", "cuda:1", "cuda:0", "cat")),
    "index_select": (lambda: on(0, 2).index_select(0, ZERO), got("index", "cpu", "cuda:0", "_index_select")),
    "gather": (lambda: on(0, 2).gather(0, ZERO), got("index", "cpu", "cuda:0", "gather")),
    "scatter_": (lambda: on(0, 2).scatter_(0, ZERO, 1.0), got("index", "cpu", "cuda:0", "scatter__value")),
    "take": (lambda: on(0, 2).take(ZERO), got("index", "cpu", "cuda:0", "_take")),
    "masked_fill": (
        lambda: on(0, 2).masked_fill(ONE_CPU > 0, 1.0),
        SAME + "found at least two devices, cuda:0 and cpu!",
    ),
    "masked_select": (lambda: on(0, 2).masked_select(ONE_CPU > 0), got("mask", "cpu", "cuda:0", "_masked_select")),
    "assigning from another GPU": (
        lambda: on(0, 2).__setitem__(ZERO, on(1, 1)),
        SAME + "found at least two devices, cuda:0 and cuda:1!",
    ),
    "cross_entropy": (
        lambda: nn.functional.cross_entropy(on(0, 1, 2), ZERO),
        got("target", "cpu", "cuda:0", "nll_loss_forward"),
    ),
    "layer_norm": (lambda: nn.LayerNorm(2)(on(0, 3, 2)), got("weight", "cpu", "cuda:0", "_native_layer_norm")),
    "group_norm": (lambda: nn.GroupNorm(1, 2)(on(0, 3, 2)), got("weight", "cpu", "cuda:0", "_native_group_norm")),
    "batch_norm": (lambda: nn.BatchNorm1d(2)(on(0, 3, 2)), got("weight", "cpu", "cuda:0", "_native_batch_norm")),
    "batch_norm by cuDNN": (
        lambda: nn.BatchNorm1d(2)(on(0, 3, 2, 2)),
        got("weight", "cpu", "cuda:0", "_cudnn_batch_norm"),
    ),
    "grid_sample": (
        lambda: nn.functional.grid_sample(on(0, 1, 1, 2, 2), on("cpu", 1, 2, 2, 2)),
        got("grid", "cpu", "cuda:0", "_grid_sampler_2d"),
    ),
    "attention": (
        lambda: nn.functional.scaled_dot_product_attention(on(0, 1, 2, 2), on("cpu", 1, 2, 2), on(0, 1, 2, 2)),
        "Expected query, key, and value to have the same device type, but got query.device: cuda:0 key.device: cpu",
    ),
    "transposed convolution": (
        lambda: nn.ConvTranspose2d(1, 1, 1)(on(0, 1, 1, 2, 2)),
        "Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same",
    ),
    "convolution with a CPU bias": (
        lambda: nn.functional.conv2d(on(0, 1, 1, 2, 2), on(0, 1, 1, 1, 1), on("cpu", 1)),
        "Input type (torch.cuda.FloatTensor) and bias type (torch.FloatTensor) should be the same",
    ),
    "a GPU that is not there": (lambda: torch.ones(1).cuda(7), "CUDA error: invalid device ordinal"),
    "the device of a CPU tensor": (
        lambda: torch.ones(1).cuda(torch.ones(1).get_device()),
        "index must not be negative",
    ),
    "a gradient on another GPU": (
        lambda: OnFirst.apply(on(1, 2).requires_grad_()).sum().backward(),
        "Function OnFirstBackward returned an invalid gradient at index 0 - expected device cuda:1 but got cuda:0",
    ),
    "a module left on the CPU": (
        lambda: nn.DataParallel(nn.Linear(2, 2))(on("cpu", 4, 2)),
        "module must have its parameters and buffers on device cuda:0 (device_ids[0]) but found one of them on device: "
        "cpu",
    ),
    "add of two GPUs": (lambda: on(0, 2) + on(1, 2), SAME + "found at least two devices, cuda:0 and cuda:1!"),
    "add with the CPU": (lambda: on(1, 2) + on("cpu", 2), SAME + "found at least two devices, cuda:1 and cpu!"),
    "CPU first": (lambda: on("cpu", 2) * on(1, 2), SAME + "found at least two devices, cuda:1 and cpu!"),
    "in place on the CPU": (lambda: on("cpu", 2).add_(on(2, 2)), SAME + "found at least two devices, cuda:2 and cpu!"),
    "a 0-dim GPU tensor is not a number": (
        lambda: on("cpu", 2) + on(1, 2).sum(),
        SAME + "found at least two devices, cuda:1 and cpu!",
    ),
    "where": (lambda: torch.where(on(1, 2) > 0, on(0, 2), on(1, 2)), SAME + "found at least two devices"),
    "matmul": (
        lambda: on("cpu", 2, 2) @ on(1, 2, 2),
        SAME + "got mat2 is on cuda:1, different from other tensors on cpu (when checking argument in method "
        "wrapper_CUDA_mm)",
    ),
    "linear": (
        lambda: nn.Linear(2, 2).cuda()(on("cpu", 1, 2)),
        SAME + "got mat1 is on cpu, different from other tensors on cuda:0 (when checking argument in method "
        "wrapper_CUDA_addmm)",
    ),
    "embedding": (
        lambda: nn.Embedding(3, 2).cuda()(torch.tensor([1])),
        SAME + "got index is on cpu, different from other tensors on cuda:0 (when checking argument in method "
        "wrapper_CUDA__index_select)",
    ),
    "cat": (
        lambda: torch.cat([on(0, 2), on(1, 2)]),
        SAME + "got tensors is on cuda:1, different from other tensors on cuda:0 (when checking argument in method "
        "wrapper_CUDA_cat)",
    ),
    "convolution of a CPU image": (
        lambda: nn.Conv2d(1, 1, 1).cuda()(on("cpu", 2, 1, 2, 2)),
        "Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) should be the same",
    ),
    "convolution of a small CPU image": (
        lambda: nn.Conv2d(1, 1, 1).cuda()(on("cpu", 1, 1, 2, 2)),
        SAME + "got weight is on cuda:0, different from other tensors on cpu (when checking argument in method "
        "wrapper_CUDA___slow_conv2d_forward)",
    ),
    "convolution in two dtypes": (
        lambda: nn.Conv2d(1, 1, 1, bias=False).cuda()(on(0, 1, 1, 2, 2).double()),
        "Input type (torch.cuda.DoubleTensor) and weight type (torch.cuda.FloatTensor) should be the same",
    ),
    "LSTM with CPU weights": (
        lambda: nn.LSTM(2, 2)(on(0, 1, 1, 2)),
        "Input and parameter tensors are not at the same device, found input tensor at cuda:0 and parameter tensor at "
        "cpu",
    ),
    "GRU with a CPU state": (
        lambda: nn.GRU(2, 2).cuda()(on(0, 1, 1, 2), on("cpu", 1, 1, 2)),
        "Input and hidden tensors are not at the same device, found input tensor at cuda:0 and hidden tensor at cpu",
    ),
    "addcmul with a CPU number": (
        lambda: torch.addcmul(on(0, 2), torch.tensor(1.0), on(0, 2)),
        "CPU Scalar support for tensor1 argument is not supported when calling addcmul on CUDA tensors.",
    ),
    "stack of two numbers": (
        lambda: torch.stack([torch.tensor(1.0, device="cuda"), torch.tensor(1.0)]),
        got("tensors", "cpu", "cuda:0", "cat"),
    ),
    "GPU mask of a CPU tensor": (
        lambda: on("cpu", 2)[torch.tensor([True, False], device="cuda")],
        "indices should be either on cpu or on the same device as the indexed tensor (cpu)",
    ),
    "product of integer matrices": (
        lambda: torch.ones(2, 2, dtype=torch.long, device="cuda") @ torch.ones(2, 2, dtype=torch.long, device="cuda"),
        "\"addmm_cuda\" not implemented for 'Long'",
    ),
    "convolution with CPU weights": (
        lambda: nn.Conv2d(1, 1, 1)(on(0, 1, 1, 2, 2)),
        "Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same",
    ),
    "index on another GPU": (
        lambda: on(1, 3)[torch.tensor([0], device="cuda:2")],
        "indices should be either on cpu or on the same device as the indexed tensor (cuda:1)",
    ),
    "GPU index of a CPU tensor": (
        lambda: on("cpu", 3)[torch.tensor([0], device="cuda:1")],
        "indices should be either on the same device as the indexed tensor (cpu)",
    ),
    "gradient on the CPU": (
        lambda: grad_of(on(1, 2), on("cpu", 2)),
        "attempting to assign a gradient with device type 'cpu' to a tensor with device type 'cuda'",
    ),
    "gradient on another GPU": (
        lambda: grad_of(on(1, 2), on(2, 2)),
        "attempting to assign a gradient located on device with index '2' to a tensor located on device with index '1'",
    ),
    "backward from a CPU gradient": (
        lambda: (on(1, 2).requires_grad_() * 2).backward(on("cpu", 2)),
        "expected device cuda:1 but got cpu",
    ),
    "sections of tensor_split": (
        lambda: on(1, 4).tensor_split(torch.tensor(2, device="cuda:1")),
        "tensor_split expected tensor_indices_or_sections to be on cpu, but it's on cuda:1",
    ),
    "lengths of sequences": (
        lambda: nn.utils.rnn.pack_padded_sequence(on(1, 3, 2, 4), torch.tensor([3, 2], device="cuda:1")),
        "'lengths' argument should be a 1D CPU int64 tensor, but got 1D cuda:1 Long tensor",
    ),
    "a loss of two GPUs": (
        lambda: nn.functional.smooth_l1_loss(on(1, 2), on(2, 2)),
        SAME + "found at least two devices, cuda:1 and cuda:2!",
    ),
    "loss": (
        lambda: nn.functional.mse_loss(on(0, 2), on("cpu", 2)),
        SAME + "found at least two devices, cuda:0 and cpu!",
    ),
    "DataParallel of a module elsewhere": (
        lambda: nn.DataParallel(nn.Linear(2, 2).cuda(1), [0, 1])(on(0, 4, 2)),
        "module must have its parameters and buffers on device cuda:0 (device_ids[0]) but found one of them on device: "
        "cuda:1",
    ),
    "a mask of attention on the CPU": (
        lambda: nn.functional.scaled_dot_product_attention(*[on(0, 1, 1, 2, 8)] * 3, attn_mask=on("cpu", 2, 2)),
        SAME + "got attn_bias is on cpu, different from other tensors on cuda:0 (when checking argument in method "
        "wrapper_CUDA___scaled_dot_product_efficient_attention)",
    ),
    "the weight of a bilinear layer on the CPU": (
        lambda: nn.Bilinear(2, 2, 2)(on(0, 1, 2), on(0, 1, 2)),
        SAME + "got mat2 is on cpu, different from other tensors on cuda:0 (when checking argument in method "
        "wrapper_CUDA_bmm)",
    ),
    "a sparse matrix on the CPU": (
        lambda: torch.sparse.mm(on("cpu", 2, 2).to_sparse(), on(0, 2, 2)),
        SAME + "got mat1 is on cpu, different from other tensors on cuda:0 (when checking argument in method "
        "wrapper_SparseCUDA__addmm)",
    ),
    "labels that are no integers": (
        lambda: nn.functional.cross_entropy(on(0, 2, 2), on(0, 2)),
        "\"nll_loss_forward_reduce_cuda_kernel_2d_index\" not implemented for 'Float'",
    ),
    "labels in int32, without a mean": (
        lambda: nn.functional.nll_loss(on(0, 2, 2), on(0, 2).int(), reduction="none"),
        "\"nll_loss_forward_no_reduce_cuda_kernel_index\" not implemented for 'Int'",
    ),
    "indices in float32": (
        lambda: nn.functional.embedding(on(0, 2), on(0, 3, 2)),
        "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
        "torch.cuda.FloatTensor instead",
    ),
    "a cross product of two dtypes": (
        lambda: torch.linalg.cross(on(0, 3), on(0, 3).half()),
        "Found dtype Half but expected Float",
    ),
    "a layer norm with weights of a different dtype": (
        lambda: nn.LayerNorm(2).cuda(0)(on(0, 2, 2).bfloat16()),
        "expected scalar type BFloat16 but found Float",
    ),
    "a group norm with weights of a different dtype": (
        lambda: nn.GroupNorm(1, 2).cuda(0)(on(0, 2, 2).half()),
        "expected scalar type Half but found Float",
    ),
    "a step between integers": (
        lambda: torch.lerp(on(0, 2).long(), on(0, 2).long(), 0.5),
        "\"lerp_cuda\" not implemented for 'Long'",
    ),
    "an operator that CUDA lacks": (
        lambda: on(0, 2).to_mkldnn(),
        "'aten::to_mkldnn' is only available for these backends: [CPU, Meta",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_raises_the_words_of_pytorch(mistake: str):
    act, words = MISTAKES[mistake]
    with pytest.raises(RuntimeError, match=re.escape(words)) as caught:
        act()
    assert not re.search(r"cpu:\d", str(caught.value))


@pytest.mark.parametrize(
    "fine",
    [
        lambda: on(0, 2).copy_(on(1, 2)),
        lambda: on(0, 2).copy_(on("cpu", 2)),
        lambda: on("cpu", 2).copy_(on(1, 2)),
        lambda: on(1, 3)[torch.tensor([0])],
        lambda: on(1, 3).index_put_((torch.tensor([0]),), torch.tensor(3.0)),
        lambda: on(1, 2).mul(torch.tensor(2.0)),
        lambda: on(1, 2).fill_(torch.tensor(2.0)),
        lambda: torch.select_scatter(on(1, 2, 2), on("cpu", 2), 0, 0),
    ],
)
def test_what_gpus_allow_is_allowed(fine):
    fine()


def test_a_loss_of_sequences_takes_targets_and_lengths_of_the_cpu():
    scores = torch.randn(5, 2, 3).log_softmax(2)
    targets, lengths = torch.ones(2, 2, dtype=torch.long), torch.tensor([5, 5])
    expected = nn.functional.ctc_loss(scores, targets, lengths, torch.tensor([2, 1]))
    given = scores.to("cuda:1").requires_grad_()
    loss = nn.functional.ctc_loss(given, targets, lengths, torch.tensor([2, 1]))
    loss.backward()
    assert loss.device == torch.device("cuda:1") == given.grad.device
    torch.testing.assert_close(loss.cpu(), expected)
