"""torch.compile takes the detector whole: no graph break in the layers, nor in a training step or a prediction."""

import pytest
import torch

from frcnn_lite.parallel import reduce_loss


@pytest.fixture(autouse=True)
def forget_graphs():
    yield
    torch._dynamo.reset()


def compiled(module: torch.nn.Module, backend: str = "eager"):
    """`module` as one graph: fullgraph=True raises at the first line that would break it."""
    return torch.compile(module, fullgraph=True, backend=backend)


@pytest.mark.compiles
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])  # the latter also traces the backward pass
def test_rpn_and_box_head(model, truth, backend) -> None:
    features = model.backbone(truth.images)
    for module, inputs in ((model.rpn, (features.rpn,)), (model.box_head, (features.roi, truth.boxes))):
        got, want = compiled(module, backend)(*inputs), module(*inputs)
        for one, other in zip(got[:2], want[:2], strict=True):
            torch.testing.assert_close(one, other)


@pytest.mark.compiles
def test_a_training_step(model, truth) -> None:
    def gradients(losses):
        model.zero_grad()
        sum(losses.values()).backward()
        return {name: parameter.grad.clone() for name, parameter in model.named_parameters()}

    want, got = reduce_loss(*model(*truth)), reduce_loss(*compiled(model)(*truth))
    torch.testing.assert_close(got, want)
    torch.testing.assert_close(gradients(got), gradients(want))


@pytest.mark.compiles
def test_a_prediction(model, truth) -> None:
    with torch.no_grad():
        for one, other in zip(compiled(model)(truth.images), model(truth.images), strict=True):
            torch.testing.assert_close(one, other)
