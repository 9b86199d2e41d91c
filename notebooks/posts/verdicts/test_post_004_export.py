"""Verdicts on post 004, "Pytorch 相关问题及学习": its entries on export and on files for older loaders."""

import inspect
import itertools
import tomllib
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from verdict import verdict

from course.lessons.nb32.adaptive_pool import fixed_window, rewrite_adaptive_pools
from course.lessons.nb32.onnx_trial import try_export
from course.lessons.nb32.prelu import rewrite_prelu
from frcnn_lite.export.sync_batchnorm import revert_sync_batchnorm

pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

NOTEBOOK, CHECKPOINTS = "32_export_and_deploy", "30_checkpoints"
LEGACY = {"dynamo": False, "opset_version": 11}
CALL = {
    "export_params": True,
    "opset_version": 11,
    "do_constant_folding": True,
    "input_names": ["inputx"],
    "output_names": ["outputy"],
    "verbose": True,
}


class Upsample(nn.Module):
    def __init__(self, align_corners):
        super().__init__()
        self.align_corners = align_corners

    def forward(self, x):
        return F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=self.align_corners)


class Double(nn.Module):
    def __init__(self, constant):
        super().__init__()
        self.constant = constant

    def forward(self, x):
        size = [torch.tensor(n).item() for n in x.shape[2:]] if self.constant else x.shape[2:]
        return F.interpolate(x, size=(2 * size[0], 2 * size[1]), mode="nearest")


@pytest.fixture
def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.PReLU(), nn.BatchNorm2d(4)).eval()


@verdict(
    "004",
    "export to ONNX, tip 1",
    claim="For TensorRT 5.1.5 export with PyTorch 1.1.0; for TensorRT 7.2.2 PyTorch 1.7 will do.",
    ruling="not tried",
    because="No version of TensorRT is among what this project needs, and the oldest PyTorch that it supports is 2.11.",
)
def test_tensorrt_is_no_dependency():
    """When this fails, the claim can be tried: replace the ruling by what comes out."""
    project = tomllib.loads((Path(__file__).resolve().parents[3] / "pyproject.toml").read_text(encoding="utf-8"))
    groups = [project["project"]["dependencies"], *project["project"]["optional-dependencies"].values()]
    needed = [name for group in groups for name in group]
    assert "torch>=2.11" in "".join(needed).replace(" ", "")
    assert not [name for name in needed if "tensorrt" in name.lower()]


@verdict(
    "004",
    "export to ONNX",
    claim="`torch.onnx.export(..., opset_version=11, ...)` writes a file of operator set 11.",
    ruling="right then",
    because="The exporter that is the default since PyTorch 2.9 writes 18 and says so on stderr only; `dynamo=False` "
    "still writes 11, and is to be removed. Both files compute what PyTorch does.",
    notebook=NOTEBOOK,
    words="read the number in the file, not in the call",
)
def test_opset_of_the_call(net):
    x = torch.randn(1, 3, 8, 8)
    today, legacy = try_export(net, x, **CALL), try_export(net, x, dynamo=False, **CALL)
    assert (today.opset, legacy.opset) == (18, 11)
    assert max(today.difference, legacy.difference) < 1e-5


@verdict(
    "004",
    "export to ONNX, arguments",
    claim="`do_constant_folding` chooses whether constants are folded.",
    ruling="right then",
    because="The default exporter takes the argument and calls it deprecated; its files are the same either way.",
    notebook=NOTEBOOK,
    words="is a leftover of the older one",
)
def test_constant_folding_is_a_leftover(net):
    x = torch.randn(1, 3, 8, 8)
    assert "do_constant_folding: Deprecated" in inspect.getdoc(torch.onnx.export)
    assert try_export(net, x, do_constant_folding=True) == try_export(net, x, do_constant_folding=False)


@verdict(
    "004",
    "export to ONNX, tip 3",
    claim="TensorRT 5.1.5 has no PReLU, so the layer has to be changed by hand.",
    ruling="incomplete",
    because="The post does not say into what: relu(x) - a * relu(-x) is equal bit for bit, and exports without PRelu. "
    "TensorRT itself was not run.",
    notebook=NOTEBOOK,
    words="rewrite_prelu",
)
def test_prelu_without_prelu(net):
    x = torch.randn(1, 3, 8, 8)
    two = rewrite_prelu(net)
    assert torch.equal(two(x), net(x))
    trial = try_export(two, x, **LEGACY)
    assert "PRelu" not in trial.operators and trial.difference < 1e-5


@verdict(
    "004",
    "notes on export, 1",
    claim="A line with `.size()` or `.shape[]` needs `torch.tensor(x.size(i)).item()`, so that it becomes a constant.",
    ruling="right then",
    because="It freezes the size of the example in the TorchScript exporter, which fixed engines wanted and any other "
    "batch or picture breaks on. The default exporter keeps both spellings free.",
    notebook=NOTEBOOK,
    words="the size is frozen",
)
def test_sizes_as_constants():
    small, large = torch.rand(2, 3, 8, 8), torch.rand(5, 3, 12, 16)
    named = {"input_names": ["x"], "dynamic_axes": {"x": {0: "b", 2: "h", 3: "w"}}}
    free = {0: torch.export.Dim.DYNAMIC, 2: torch.export.Dim.DYNAMIC, 3: torch.export.Dim.DYNAMIC}
    assert try_export(Double(True), small, **LEGACY, **named).difference == 0
    assert try_export(Double(True), small, large, **LEGACY, **named).difference == float("inf")
    assert try_export(Double(False), small, large, **LEGACY, **named).difference == 0
    for constant in (False, True):
        assert try_export(Double(constant), small, large, dynamic_shapes=(free,)).difference == 0


@verdict(
    "004",
    "notes on export, 2",
    claim="Bilinear `F.interpolate` needs `align_corners=False`.",
    ruling="incomplete",
    because="PyTorch's exporter refuses True in sets 9 and 10 only. From 11 on, for which the post's first listing asks, "
    "both settings export and are exact in onnxruntime. TensorRT, to which the notes go on, was not run.",
    notebook=NOTEBOOK,
    words="align_corners=self.align_corners",
)
def test_align_corners():
    x = torch.rand(1, 3, 8, 8)
    for version in (9, 10):
        with pytest.raises(torch.onnx.errors.SymbolicValueError, match="align_corners == True"):
            try_export(Upsample(True), x, dynamo=False, opset_version=version)
    for align_corners in (False, True):
        assert try_export(Upsample(align_corners), x, **LEGACY).difference < 1e-5
        assert try_export(Upsample(align_corners), x).difference < 1e-5


@verdict(
    "004",
    "notes on export, 3",
    claim="For export, `BatchNorm2d` has to take the place of `SyncBatchNorm`.",
    ruling="right then",
    because="In eval mode SyncBatchNorm is a BatchNorm today: it runs on a CPU and exports by both exporters. The "
    "conversion back is equal bit for bit, and PyTorch has none.",
    notebook=NOTEBOOK,
    words="for export use `BatchNorm2d`",
)
def test_sync_batchnorm():
    x, plain = torch.randn(2, 3, 8, 8), nn.BatchNorm2d(3)
    plain(x)
    synced = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(plain)).eval()
    assert torch.equal(revert_sync_batchnorm(synced)(x), synced(x))
    assert try_export(synced, x).difference < 1e-5 and try_export(synced, x, **LEGACY).difference < 1e-5


@verdict(
    "004",
    "adaptive pooling",
    claim='AdaptiveAvgPool2d cannot be exported: "Couldn\'t export operator aten::adaptive_avg_pool2d".',
    ruling="incomplete",
    because="Sizes that divide were taken from torch 1.1 on (pytorch pull request 17412); others are refused by "
    "`dynamo=False` to this day. The exporter that is the default since 2.9 takes average pooling of any size. Both "
    "refuse maximum pooling where sizes do not divide.",
    notebook=NOTEBOOK,
    words="## Adaptive pooling as fixed pooling",
)
def test_which_adaptive_pooling_exports():
    x = torch.randn(1, 2, 7, 7)
    for output in range(1, 8):
        assert try_export(nn.AdaptiveAvgPool2d(output), x).difference < 1e-5
    assert try_export(nn.AdaptiveAvgPool2d(2), x[..., :6, :6], **LEGACY).difference < 1e-5  # 6 by 2
    for layer, arguments in ((nn.AdaptiveAvgPool2d(3), LEGACY), (nn.AdaptiveMaxPool2d(3), LEGACY)):
        with pytest.raises(torch.onnx.errors.SymbolicValueError, match="not factor of input size"):
            try_export(layer, x, **arguments)
    with pytest.raises(torch.onnx.errors.OnnxExporterError):
        try_export(nn.AdaptiveMaxPool2d(3), x)
    for layer in (nn.AdaptiveAvgPool2d(3), nn.AdaptiveMaxPool2d(3)):
        fixed = rewrite_adaptive_pools(layer, x).model
        assert max(try_export(fixed, x).difference, try_export(fixed, x, **LEGACY).difference) < 1e-5


@verdict(
    "004",
    "adaptive pooling, program",
    claim="Stride floor(in / out) and kernel in - (out - 1) * stride make a fixed pooling of the adaptive one.",
    ruling="incomplete",
    because="Equal where in divided by out leaves 0 or 1: for the program's 6 to 2 and 7 to 3, and 490 of the 2080 "
    "pairs up to 64. For 10 to 4 the shape is right and the numbers are others.",
    notebook=NOTEBOOK,
    words="stridesz = np.floor(inputsz/outputsz)",
)
def test_formula_of_the_program():
    def formula(size, output):
        inputsz, outputsz = np.array(size), np.array(output)
        stridesz = np.floor(inputsz / outputsz).astype(np.int32)
        return (inputsz - (outputsz - 1) * stridesz).tolist(), stridesz.tolist()

    def both(size, output):
        x = torch.randn(2, *size, dtype=torch.float64)
        return nn.AdaptiveAvgPool2d(output)(x), nn.AvgPool2d(*formula(size, output))(x)

    assert torch.allclose(*both((6, 7), (2, 3)), rtol=1e-10)
    adaptive, fixed = both((10, 10), (4, 4))
    assert adaptive.shape == fixed.shape and not torch.allclose(adaptive, fixed, rtol=1e-3)
    exact = 0
    for size, output in itertools.product(range(1, 65), repeat=2):
        if output <= size:
            equal = size % output < 2
            exact += equal
            if equal:
                kernel, stride = formula([size], [output])
                assert fixed_window(size, output) == (kernel[0], stride[0])
            else:
                with pytest.raises(ValueError, match="no fixed pooling equals"):
                    fixed_window(size, output)
    assert exact == 490


@verdict(
    "004",
    "files for an older loader",
    claim="`torch.save(..., _use_new_zipfile_serialization=False)` writes a file for torch before 1.6.",
    ruling="right",
    because="No zip archive is written, and it loads with `weights_only=True`. That torch 1.1 reads it was not tried.",
    notebook=CHECKPOINTS,
    words="_use_new_zipfile_serialization=False",
)
def test_old_file_format(net, tmp_path):
    torch.save(net.state_dict(), tmp_path / "new.pth")
    torch.save(net.state_dict(), tmp_path / "old.pth", _use_new_zipfile_serialization=False)
    assert zipfile.is_zipfile(tmp_path / "new.pth") and not zipfile.is_zipfile(tmp_path / "old.pth")
    loaded = torch.load(tmp_path / "old.pth", map_location="cpu", weights_only=True)
    assert all(torch.equal(loaded[name], value) for name, value in net.state_dict().items())


@verdict(
    "004",
    "files for an older loader, 1",
    claim="PyTorch 1.1.0 refuses a file that 1.7 has written.",
    ruling="not tried",
    because="torch 1.1 was not run. A file is a zip archive since torch 1.6, and the argument in the post's program is "
    "PyTorch's own way to write one for an older version.",
)
def test_a_file_of_today_is_a_zip_archive(net, tmp_path):
    torch.save(net.state_dict(), tmp_path / "new.pth")
    assert zipfile.is_zipfile(tmp_path / "new.pth")


@verdict(
    "004",
    "files for an older loader, program",
    claim="`model_dict.update(pretrained_dict)`, then `load_state_dict(model_dict)`, loads the weights.",
    ruling="incomplete",
    because="It hides what the file lacks: every missing tensor keeps its random start, and all keys match.",
    notebook=CHECKPOINTS,
    words="model_dict.update(pretrained_dict)",
)
def test_update_hides_missing_keys(net):
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.PReLU(), nn.BatchNorm2d(4))
    pretrained_dict = {key: value for key, value in net.state_dict().items() if not key.startswith("0.")}
    start = model[0].weight.clone()
    model_dict = model.state_dict()
    model_dict.update(pretrained_dict)
    assert str(model.load_state_dict(model_dict)) == "<All keys matched successfully>"
    assert torch.equal(model[0].weight, start) and not torch.equal(model[0].weight, net[0].weight)
    with pytest.raises(RuntimeError, match="Missing key"):
        model.load_state_dict(pretrained_dict)


@verdict(
    "004",
    "files for an older loader, program",
    claim="`model_state_file = “xxx/xxx.pth”`.",
    ruling="typo",
    because="Typographic quotes; Python refuses them.",
    notebook=CHECKPOINTS,
    words="typographic quotes",
)
def test_typographic_quotes():
    with pytest.raises(SyntaxError, match="U\\+201C"):
        compile("model_state_file = “xxx/xxx.pth”", "post", "exec")


@verdict(
    "004",
    "files for an older loader, tip",
    claim="For TensorRT 5.1.5, from torch 1.1.0: be sure to use opset 9; with 11, upsample goes wrong.",
    ruling="not tried",
    because="TensorRT 5 was not run, and the tip may be right there. Elsewhere 9 has a price: in "
    "onnxruntime, today, it shifts the picture by half an output pixel without an error, and 11 is "
    "exact.",
    notebook=NOTEBOOK,
    words="be sure to use",
)
def test_opset_nine_shifts_the_picture():
    ramp = torch.arange(6.0).expand(1, 1, 6, 6).contiguous()  # half a unit an output pixel, so 0.25 is half a pixel
    assert try_export(Upsample(False), ramp, dynamo=False, opset_version=9).difference == pytest.approx(0.25)
    edge = torch.tensor([0.0, 0, 0, 1, 1, 1]).expand(1, 1, 6, 6).contiguous()
    assert try_export(Upsample(False), edge, dynamo=False, opset_version=9).difference == pytest.approx(0.25)
    assert try_export(Upsample(False), edge, dynamo=False, opset_version=11).difference < 1e-6
