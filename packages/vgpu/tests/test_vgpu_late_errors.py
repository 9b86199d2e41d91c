"""Errors of kernels that come late: what an H200 with torch 2.11 printed for these programs, and what came after."""

import subprocess
import sys

import pytest
import torch
from torch import nn

import vgpu
from vgpu.machine import contexts

F = nn.functional
NATIVE = "/pytorch/aten/src/ATen/native/cuda/"
TRIGGERED = (
    "CUDA error: device-side assert triggered\nSearch for `cudaErrorAssert' in "
    "https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html for more information.\n"
)
ASYNCHRONOUS = (
    "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be "
    "incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1\n"
)
DSA = "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n"


def printed(place, text, *threads):
    """What CUDA prints of an assertion that failed in these threads of its first block."""
    return [f"{NATIVE}{place}: block: [0,0,0], thread: [{k},0,0] Assertion `{text}` failed." for k in threads]


def on(*numbers, **more):
    return torch.tensor(numbers, device="cuda", **more)


INDEX = "IndexKernel.cu:111: operator()", '-sizes[i] <= index && index < sizes[i] && "index out of bounds"'
GATHER = (
    "ScatterGatherKernel.cu:163: operator()",
    'idx_dim >= 0 && idx_dim < index_size && "scatter gather kernel index out of bounds"',
)
SELECT = "Indexing.cu:1515: indexSelectSmallIndex", "srcIndex < srcSelectDimSize"
LABEL = "Loss.cu:245: nll_loss_forward_reduce_cuda_kernel_2d", "t >= 0 && t < n_classes"
# A call, which returns, and what is printed while it does.
LATE = {
    "index": (lambda: torch.zeros(3, device="cuda")[on(5)], printed(*INDEX, 0)),
    "embedding": (lambda: nn.Embedding(4, 2).cuda()(on(7)), printed(*SELECT, 0, 1)),
    "gather": (lambda: torch.zeros(3, device="cuda").gather(0, on(9)), printed(*GATHER, 0)),
    "label": (lambda: F.cross_entropy(torch.zeros(2, 3, device="cuda"), on(0, 3)), printed(*LABEL, 1)),
    "negative label": (lambda: F.cross_entropy(torch.zeros(2, 3, device="cuda"), on(0, -1)), printed(*LABEL, 1)),
}
# These start a second kernel, which the first one's end keeps from running.
AT_ONCE = {
    "binary_cross_entropy": (
        lambda: F.binary_cross_entropy(on(1.5), on(1.0)),
        printed("Loss.cu:90: operator()", "input_val >= zero && input_val <= one", 0),
    ),
    "multinomial": (
        lambda: torch.multinomial(on(float("nan"), 1.0), 1),
        printed(
            "TensorCompare.cu:109: _assert_async_cuda_kernel",
            "probability tensor contains either `inf`, `nan` or element < 0",
            0,
        ),
    ),
}
# Others whose kernels assert; a GPU was not asked, so only the condition is held.
ALSO = {
    "scatter_": (lambda: torch.zeros(3, device="cuda").scatter_(0, on(3), 1.0), GATHER[1]),
    "scatter_add": (lambda: torch.zeros(3, device="cuda").scatter_add(0, on(3), on(1.0)), GATHER[1]),
    "index_select": (lambda: torch.zeros(3, 2, device="cuda").index_select(1, on(2)), SELECT[1]),
    "index_put": (lambda: torch.zeros(3, 2, device="cuda").index_put_((on(3),), on(1.0)), INDEX[1]),
    "index_add_": (lambda: torch.zeros(3, device="cuda").index_add_(0, on(3), on(1.0)), "dstIndex < dstAddDimSize"),
    "index_copy_": (lambda: torch.zeros(3, device="cuda").index_copy_(0, on(3), on(1.0)), "index_copy_(): index"),
    "index_fill_": (lambda: torch.zeros(3, device="cuda").index_fill_(0, on(-4), 1.0), "idx >= -self_dim_size"),
    "take": (lambda: torch.zeros(3, device="cuda").take(on(3)), "cuda_take_put_kernel() index out of bounds"),
    "put_": (lambda: torch.zeros(3, device="cuda").put_(on(3), on(1.0)), "cuda_take_put_kernel() index"),
    "one_hot": (lambda: F.one_hot(on(5), 3), GATHER[1]),
    "bernoulli": (lambda: torch.bernoulli(on(1.5)), "0 <= p1 && p1 <= 1"),
    "poisson": (lambda: torch.poisson(on(-1.0)), "invalid Poisson rate"),
    "embedding_bag": (lambda: F.embedding_bag(on([0, 9]), torch.zeros(4, 2, device="cuda")), "input[emb] < numRows"),
    "masked_scatter": (
        lambda: torch.zeros(2, device="cuda").masked_scatter(on(True, True), on(1.0)),
        "totalElements <= srcSize",
    ),
    "label of one": (lambda: F.nll_loss(torch.zeros(3, device="cuda"), torch.tensor(5).cuda()), "kernel_1d"),
    "labels without a sum": (
        lambda: F.nll_loss(torch.zeros(2, 3, device="cuda"), on(0, 5), reduction="none"),
        "cur_target >= 0 && cur_target < n_classes",
    ),
    "a text of its own": (lambda: torch._assert_async(on(0), "no zero, please"), "Assertion `no zero, please` failed"),
    "bce without a sum": (lambda: F.binary_cross_entropy(on(1.5), on(1.0), reduction="none"), "input_val <= one"),
    "labels of pixels": (
        lambda: F.cross_entropy(torch.zeros(1, 2, 1, 1, device="cuda"), on(2).view(1, 1, 1)),
        "t >= 0 && t < n_classes",
    ),
    "_assert_async": (lambda: torch._assert_async(on(0)), "Expected Tensor with single nonzero value, but got zero"),
}


@pytest.fixture
def late(gpus):
    """Two virtual GPUs, whose kernels fail late by default."""
    with vgpu.virtual_gpus(2) as devices:
        yield devices


def text_of(raised):
    return str(raised.value)


@pytest.mark.parametrize("name", LATE)
def test_a_call_returns_and_the_next_wait_fails(late, capsys, name):
    call, lines = LATE[name]
    result = call()
    assert capsys.readouterr().err.splitlines() == lines
    (result + 1).sum()
    with pytest.raises(torch.AcceleratorError) as raised:
        result.sum().item()
    assert text_of(raised) == TRIGGERED + ASYNCHRONOUS + DSA
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("name", AT_ONCE)
def test_a_call_of_two_kernels_fails_itself(late, capsys, name):
    call, lines = AT_ONCE[name]
    with pytest.raises(torch.AcceleratorError, match="device-side assert triggered"):
        call()
    assert capsys.readouterr().err.splitlines() == lines


@pytest.mark.parametrize("name", ALSO)
def test_other_kernels_assert_too(late, capsys, name):
    call, condition = ALSO[name]
    call()
    assert condition in capsys.readouterr().err
    with pytest.raises(torch.AcceleratorError, match="device-side assert triggered"):
        torch.cuda.synchronize()


WAYS = {
    "item": lambda t: t.sum().item(),
    "cpu": lambda t: t.cpu(),
    "print": repr,
    "tolist": lambda t: t.tolist(),
    "nonzero": lambda t: t.nonzero(),
    "a copy from the host": lambda t: t.copy_(torch.zeros(1)),
    "torch.cuda.synchronize": lambda t: torch.cuda.synchronize(),
    "torch.accelerator.synchronize": lambda t: torch.accelerator.synchronize(),
    "stream": lambda t: torch.cuda.current_stream().synchronize(),
    "event": lambda t: torch.cuda.current_stream().record_event().synchronize(),
    "empty_cache": lambda t: torch.cuda.empty_cache(),
}


@pytest.mark.parametrize("name", WAYS)
def test_whoever_waits_meets_the_error(late, name):
    result = LATE["index"][0]()
    with pytest.raises(torch.AcceleratorError, match="device-side assert triggered"):
        WAYS[name](result)


def test_after_the_error_every_call_of_the_device_fails(late):
    result = LATE["index"][0]()
    with pytest.raises(torch.AcceleratorError):
        result.item()
    for call in (
        lambda: torch.ones(2, device="cuda"),
        lambda: torch.arange(2, device="cuda"),
        lambda: torch.ones(2).cuda(),
        lambda: result + 1,
        lambda: torch.cuda.current_stream().record_event(),
        torch.cuda.synchronize,
    ):
        with pytest.raises(torch.AcceleratorError, match="device-side assert triggered"):
            call()
    assert result.view(1, 1).shape == (1, 1), "a view runs no kernel"
    assert torch.ones(2).sum() == 2
    assert torch.ones(2, device="cuda:1").sum() == 2, "the other device has a context of its own"


def test_backward_goes_on_and_its_loss_cannot_be_read(late):
    logits = torch.zeros(2, 3, device="cuda", requires_grad=True)
    loss = F.cross_entropy(logits, on(0, -1))
    loss.backward()
    assert logits.grad.shape == (2, 3)
    with pytest.raises(torch.AcceleratorError):
        loss.item()


def test_only_the_first_assertion_is_printed(late, capsys):
    LATE["gather"][0]()
    capsys.readouterr()
    torch.zeros(3).to("cuda", non_blocking=True).take(torch.tensor([7]).to("cuda", non_blocking=True))
    assert capsys.readouterr().err == ""


def test_launch_blocking_brings_the_error_to_its_line(late, monkeypatch):
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", "1")
    with pytest.raises(torch.AcceleratorError) as raised:
        LATE["embedding"][0]()
    assert text_of(raised) == TRIGGERED + DSA


def test_what_the_host_sees_is_refused_at_once(late):
    with pytest.raises(RuntimeError, match="same number of dimensions"):
        torch.zeros(3, device="cuda").gather(0, on([9]))
    with pytest.raises(IndexError, match="too many indices"):
        torch.zeros(3, device="cuda")[on(5), on(5)]
    torch.cuda.synchronize()


def test_errors_at_their_line_are_a_choice(gpus):
    message = "index 5 is out of bounds for dimension 0 with size 3"
    with vgpu.virtual_gpus(1, errors="early"), pytest.raises(IndexError, match=message):
        LATE["index"][0]()
    torch.cuda.synchronize()
    LATE["index"][0]()
    with pytest.raises(torch.AcceleratorError):
        torch.cuda.synchronize()


def test_a_new_machine_has_new_contexts():
    for _ in range(2):
        with vgpu.virtual_gpus(1):
            LATE["index"][0]()
            with pytest.raises(torch.AcceleratorError):
                torch.cuda.synchronize()
    assert not contexts.watched


def test_the_setting_is_refused_by_name():
    with pytest.raises(ValueError, match="errors must be 'early' or 'late', got 'never'"):
        vgpu.enable(1, errors="never")
    assert not vgpu.is_enabled()


PROGRAM = """
import subprocess, sys
import torch
code = "import torch; torch.zeros(3, device='cuda')[torch.tensor([5], device='cuda')]; print('went on')"
print(subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True).stdout)
"""


@pytest.mark.parametrize(
    ("options", "goes_on", "said"),
    [
        ([], True, "Assertion `-sizes[i] <= index"),
        (["--errors", "early"], False, "IndexError: index 5 is out of bounds"),
    ],
    ids=["late", "early"],
)
def test_the_command_and_its_children_fail_alike(tmp_path, options, goes_on, said):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-m", "vgpu", "--gpus", "1", *options, str(program)]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.stdout.strip() == ("went on" if goes_on else "") and said in run.stderr


def fail(rank: int) -> None:
    LATE["index"][0]()
    torch.ones(2, device="cuda:1").sum().item()
    with pytest.raises(torch.AcceleratorError):
        torch.cuda.synchronize()


def test_each_rank_begins_with_contexts_that_are_alive(late):
    fail(0)
    torch.multiprocessing.spawn(fail, nprocs=2)


def test_settling_raises_once_for_what_nobody_has_noticed(late):
    contexts.settle()
    LATE["index"][0]()
    with pytest.raises(torch.AcceleratorError):
        contexts.settle()
    contexts.settle()
