"""What an export wrote, without what the exporter says."""

import pytest
import torch
from torch import nn

from course.lessons.nb32.onnx_trial import try_export

pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")


class Doubled(nn.Module):
    """Twice the size, by the size of the example or of the input."""

    def __init__(self, constant):
        super().__init__()
        self.constant = constant

    def forward(self, x):
        size = [torch.tensor(n).item() for n in x.shape[2:]] if self.constant else x.shape[2:]
        return nn.functional.interpolate(x, size=(size[0] * 2, size[1] * 2), mode="nearest")


AXES = {"dynamo": False, "opset_version": 11, "input_names": ["x"], "dynamic_axes": {"x": {0: "b", 2: "h", 3: "w"}}}


def test_trial_says_what_was_written(capfd):
    trial = try_export(nn.ReLU(), torch.randn(2, 3), dynamo=False, opset_version=11, verbose=True)
    assert (trial.opset, trial.operators, trial.difference) == (11, ("Relu",), 0)
    print("still heard")
    said = capfd.readouterr()
    assert (said.out, said.err) == ("still heard\n", "")


def test_trial_measures_inputs_beside_the_traced_one():
    x, other = torch.randn(2, 3, 8, 8), torch.randn(5, 3, 12, 16)
    assert try_export(Doubled(False), x, other, **AXES).difference == 0
    assert try_export(Doubled(True), x, **AXES).difference == 0
    assert try_export(Doubled(True), x, other, **AXES).difference == float("inf")


def test_trial_lets_the_exporter_refuse_in_silence(capfd):
    with pytest.raises(Exception, match="not factor of input size"):
        try_export(nn.AdaptiveMaxPool2d(3), torch.randn(1, 2, 7, 7), dynamo=False, opset_version=11)
    assert capfd.readouterr() == ("", "")
