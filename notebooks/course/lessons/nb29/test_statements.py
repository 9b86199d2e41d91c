"""Statements in the prose of notebook 29 that no output shows, run again."""

import inspect

import pytest
import torch
from told import says
from torch import nn

import vgpu
from course.kit.ranks import ranks
from frcnn_lite.recipes.inplace import InPlaceError, name_inplace_writes

TWO = [0, 1]


def message(run):
    with pytest.raises(RuntimeError) as caught:
        run()
    return str(caught.value)


class Clamped(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.full((4,), 3.0))

    def forward(self, x):
        with torch.no_grad():
            self.weight.clamp_(-1, 1)
        return x * self.weight


@pytest.mark.filterwarnings("ignore")
def test_a_clamped_weight_dies_on_two_gpus_only():
    with vgpu.virtual_gpus(2):
        net, rows = Clamped().cuda(), torch.ones(8, 4).cuda()
        net(rows).sum().backward()
        words = message(lambda: nn.DataParallel(net, TWO)(rows).sum().backward())
    assert "Output 0 of Broadcast is a view" in words
    assert says("29", 'works on one GPU and dies on two with "Output 0 of Broadcast is a view"')


class Centre(nn.Module):
    def forward(self, x):
        return x.sub_(x.mean(0))


def test_a_batch_on_the_cpu_does_not_change():
    with vgpu.virtual_gpus(2):
        rows = torch.arange(16.0).view(8, 2)
        nn.DataParallel(Centre(), TWO)(rows)
    assert torch.equal(rows, torch.arange(16.0).view(8, 2))
    assert says("29", "None. Both pieces have to be copied to a GPU")


def test_what_goes_past_the_counter():
    tensor = torch.ones(3)
    tensor.numpy()[:] = 0
    tensor.apply_(lambda number: number + 1)
    tensor.map_(torch.ones(3), lambda mine, other: mine + other)
    assert tensor.tolist() == [2.0] * 3 and tensor._version == 0
    assert says("29", "`.numpy()`, `apply_` and `map_` write past the counter as well.")


def test_the_three_messages():
    weight = torch.rand(3, requires_grad=True)
    assert "a leaf Variable that requires grad is being used in an in-place operation" in message(
        lambda: weight.add_(1)
    )
    features = weight.exp()
    features.sum().backward()
    assert "Trying to backward through the graph a second time" in message(lambda: features.square().sum().backward())
    assert says("29", "Add losses that share a forward and go back once")


def test_relu_after_a_convolution_and_after_a_sigmoid():
    picture = torch.rand(1, 1, 4, 4)
    convolution = nn.Conv2d(1, 1, 3)
    torch.relu_(convolution(picture)).sum().backward()
    inner = convolution(picture).sigmoid()
    assert "modified by an inplace operation" in message(lambda: torch.relu_(inner).sum().backward())
    assert says("29", "Sigmoid saves its output for backward")


def test_a_step_counts():
    layers = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
    optimizer = torch.optim.SGD(layers.parameters(), lr=0.1)
    loss = layers(torch.ones(2, 3)).sum()
    loss.backward(retain_graph=True)
    optimizer.step()
    assert "modified by an inplace operation" in message(loss.backward)
    assert says("29", "`optimizer.step()` writes under `torch.no_grad()`")


def losses():
    logits = torch.randn(15, 3, 8, 8, requires_grad=True)
    target = torch.randint(3, (15, 8, 8))
    target.unsqueeze_(1)
    value = 1 - logits.softmax(1).gather(1, target).mean()
    target.squeeze_(1)
    return value


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_who_names_which_line():
    with torch.autograd.set_detect_anomaly(True), pytest.warns(UserWarning, match=r"\.gather\(1, target\)") as shown:
        words = message(losses().backward)
    assert "was changed in there or anywhere later" in words
    assert not any("target.squeeze_(1)" in str(warning.message) for warning in shown)
    with name_inplace_writes(), pytest.raises(InPlaceError) as caught:
        losses().backward()
    assert caught.value.writes[0].line.code == "target.squeeze_(1)"
    assert says("29", "Anomaly mode names a line, and it is the line that *saved*")


def test_buckets_are_copied_unless_they_are_asked_to_be_views():
    wrapper = nn.parallel.DistributedDataParallel
    assert inspect.signature(wrapper).parameters["gradient_as_bucket_view"].default is False
    assert says("29", "With `gradient_as_bucket_view=True` each `weight.grad` is a view of its bucket")
    assert says("29", "and the next backward fills it again")


def kept_gradients(as_views):
    net = nn.Linear(4, 1, bias=False).cuda()
    ddp = nn.parallel.DistributedDataParallel(net, gradient_as_bucket_view=as_views)
    gradients = []
    for step in (1.0, 2.0, 3.0, 4.0):
        ddp.zero_grad()
        ddp(torch.full((1, 4), step).cuda()).sum().backward()
        gradients.append(net.weight.grad)
    return [gradient[0, 0].item() for gradient in gradients]


def test_the_next_backward_fills_a_gradient_that_was_kept():
    """The first is in a bucket that DDP has replaced: it arranges them in the order in which gradients arrive."""
    with vgpu.virtual_gpus(2):
        assert ranks(2)(kept_gradients)(True)[0] == [1, 4, 4, 4]
        assert ranks(2)(kept_gradients)(False)[0] == [1, 2, 3, 4]
