"""The layers, and two of the course, on virtual GPUs, under autocast, compiled and exported."""

import copy
import importlib.util
import io
import shutil

import pytest
import torch
from torch import nn

from course.kit.post_002 import Bottleneck, BottleneckConfig
from course.lessons.nb23.unfold_conv import unfold_conv2d
from frcnn_lite.layers import FastGroupLinear, GroupLinear


class UnfoldConv(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 2, 3, 3))

    def forward(self, x):
        return unfold_conv2d(x, self.weight, padding=1, groups=2)


CASES = {
    "unfold_conv2d": (UnfoldConv, (4, 4, 6, 6)),
    "Bottleneck": (lambda: Bottleneck(BottleneckConfig(8, 4, 8), groups=3), (4, 8, 6, 6)),
    "GroupLinear": (lambda: GroupLinear(3, (3, 0, 5), 8, 4), (4, 3, 8)),
    "FastGroupLinear": (lambda: FastGroupLinear(3, (3, 0, 5), 8, 4), (4, 3, 8)),
    "FastGroupLinear, even": (lambda: FastGroupLinear(3, (2, 2, 2), 8, 4), (4, 3, 8)),
    "FastGroupLinear, large": (lambda: FastGroupLinear(3, (3, 0, 5), 2**14, 4), (4, 3, 2**14)),
}


@pytest.fixture(params=CASES)
def case(request):
    """A module in eval mode (one device and two must agree, so no batch statistics) and its input."""
    torch.manual_seed(0)
    make, shape = CASES[request.param]
    return make().eval(), torch.randn(shape)


def test_two_virtual_gpus_give_output_and_gradients_of_the_cpu(case):
    vgpu = pytest.importorskip("vgpu")
    module, x = case
    expected = module(x)
    expected.square().sum().backward()
    gradients = [p.grad.clone() for p in module.parameters()]
    with vgpu.virtual_gpus(2):
        parallel = nn.DataParallel(copy.deepcopy(module).cuda())
        parallel.zero_grad()
        out = parallel(x.cuda())
        assert str(out.device) == "cuda:0"
        torch.testing.assert_close(out.detach().cpu(), expected.detach(), rtol=1e-5, atol=1e-5)
        out.square().sum().backward()
        for parameter, gradient in zip(parallel.parameters(), gradients, strict=True):
            torch.testing.assert_close(parameter.grad.cpu(), gradient, rtol=1e-5, atol=1e-4)


@pytest.fixture
def real_gpu():
    try:
        torch.ones(1).cuda()
    except (RuntimeError, AssertionError) as error:
        pytest.skip(f"no GPU that computes: {error}")


def test_a_gpu_gives_output_and_gradients_of_the_cpu(real_gpu, case):
    module, x = (part.double() for part in case)
    expected = module(x)
    expected.square().sum().backward()
    on_gpu = copy.deepcopy(module).cuda()
    on_gpu.zero_grad()
    out = on_gpu(x.cuda())
    torch.testing.assert_close(out.cpu(), expected, rtol=1e-10, atol=1e-10)
    out.square().sum().backward()
    for parameter, other in zip(on_gpu.parameters(), module.parameters(), strict=True):
        torch.testing.assert_close(parameter.grad.cpu(), other.grad, rtol=1e-9, atol=1e-9)


def test_autocast_computes_in_bfloat16_close_by(case):
    module, x = case
    with torch.autocast("cpu", torch.bfloat16):
        out = module(x)
    expected = module(x)
    assert out.shape == expected.shape
    torch.testing.assert_close(out.float(), expected, rtol=0.1, atol=0.1 * expected.abs().max().item())


@pytest.mark.compiles
@pytest.mark.skipif(not (shutil.which("c++") or shutil.which("g++")), reason="torch.compile needs a C++ compiler")
def test_compile_without_graph_breaks(case):
    module, x = case
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x), module(x), rtol=1e-5, atol=1e-5)
    compiled(x).sum().backward()
    assert all(p.grad is not None for p in module.parameters())


@pytest.mark.compiles
@pytest.mark.skipif(not (shutil.which("c++") or shutil.which("g++")), reason="torch.compile needs a C++ compiler")
def test_inductor_compiles_a_ragged_group_linear():
    layer, x = FastGroupLinear(3, (3, 0, 5), 8, 4), torch.randn(4, 3, 8)
    torch.testing.assert_close(torch.compile(layer, fullgraph=True)(x), layer(x), rtol=1e-5, atol=1e-5)


ONNX = [name for name in ("onnx", "onnxscript", "onnxruntime") if importlib.util.find_spec(name) is None]


@pytest.mark.skipif(bool(ONNX), reason=f"not installed: {', '.join(ONNX)}")
def test_onnx_gives_the_same_in_onnxruntime(case):
    import onnxruntime

    module, x = case
    file = io.BytesIO()
    torch.onnx.export(module, (x,), dynamo=True, verbose=False).save(file)
    session = onnxruntime.InferenceSession(file.getvalue(), providers=["CPUExecutionProvider"])
    (out,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    torch.testing.assert_close(torch.from_numpy(out), module(x).detach(), rtol=1e-4, atol=1e-5)
