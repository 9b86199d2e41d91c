"""Post 000, Faster R-CNN on several GPUs (about 2017): its repair of layers, losses, RoI pooling and forward, run."""

import runpy
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn import parallel as torch_parallel
from verdict import verdict

from frcnn_lite import ops
import vgpu

OWNER = "18_pinning_a_detector"
POSTS = Path(__file__).resolve().parents[1]
COMPLETED = runpy.run_path(str(POSTS / "000_completed.py"))
PINNED, detector, blob = COMPLETED["SLIP"], COMPLETED["detector"], COMPLETED["blob"]


@pytest.fixture(autouse=True)
def four_gpus() -> Iterator[None]:
    with vgpu.virtual_gpus(4), warnings.catch_warnings():
        for words in ("size_average and reduce", "Implicit dimension choice", "Was asked to gather"):
            warnings.filterwarnings("ignore", message=words)
        yield


def listing(*changes: tuple[str, str]) -> dict[str, Any]:
    """The names of the post's three files, as printed but for `changes` of their text."""
    return COMPLETED["names_of"](*changes)


def pool(scope: dict[str, Any], features: torch.Tensor, rois: torch.Tensor) -> torch.Tensor:
    return COMPLETED["OldStyleFunction"].apply(features, rois, scope["RoIPoolFunction"].forward)


def on_two_gpus(net: nn.Module) -> torch.Tensor:
    """The losses of two images, each on a GPU, gathered."""
    replicas = torch_parallel.replicate(net, [0, 1])
    return torch_parallel.gather(torch_parallel.parallel_apply(replicas, [blob(0), blob(1)], devices=[0, 1]), 0)


def head_loss(
    labels: list[int], *changes: tuple[str, str], debug: bool = False
) -> tuple[torch.Tensor, SimpleNamespace]:
    """The class loss of the post's head for rows of scores that rise with the class; `self` is returned, too."""
    column = torch.tensor(labels, device="cuda:1")[:, None]
    scores = torch.linspace(-1, 1, 4, device="cuda:1").repeat(len(labels), 1).requires_grad_()
    state = SimpleNamespace(debug=debug, scores=scores)
    boxes = torch.zeros(len(labels), 16, device="cuda:1")
    loss, _ = listing(*changes)["FasterRCNN"].build_loss(state, scores, boxes, (None, column, boxes, boxes, boxes))
    return loss, state


@verdict(
    "000",
    "anchor_target_layer, docstring",
    claim="rpn_labels are (1, 1, HxA, W), for scores of (1, Ax2, H, W).",
    ruling="typo",
    because="The scores are reshaped to (1, 2, AxH, W), anchor after anchor, so labels must be (1, 1, AxH, W). Filled "
    "as HxA they have the right shape, and belong to other anchors.",
)
def test_labels_stand_anchor_by_anchor():
    a, h, w = 2, 2, 3
    number = torch.arange(a * h * w).view(a, h, w)  # anchor, row, column
    scores = torch.stack([number, number]).view(1, 2 * a, h, w)  # background of all anchors, then foreground
    rows = scores.view(1, 2, a * h, w).permute(0, 2, 3, 1).contiguous().view(-1, 2)[:, 1]
    assert torch.equal(number.view(1, 1, a * h, w).view(-1), rows)
    assert not torch.equal(number.transpose(0, 1).reshape(1, 1, h * a, w).view(-1), rows)


@verdict(
    "000",
    "anchor_target_layer, docstring, `rpn_bbox_outside_weights`",
    claim="The outside weights balance foreground and background.",
    ruling="wrong",
    because="The loss that the guide prints unpacks them and never uses them: whatever they are, it is the same.",
)
def test_the_outside_weights_are_never_used():
    labels = torch.tensor([0, 1, -1, 0, -1, 1], device="cuda:1").view(1, 1, 2, 3)
    score, inside = torch.rand(1, 2, 2, 3, device="cuda:1"), torch.ones(1, 4, 2, 3, device="cuda:1")
    build_loss = listing()["RPN"].build_loss
    zeros, sevens = (build_loss(None, score, inside, (labels, 2 * inside, inside, k * inside)) for k in (0, 7))
    assert zeros[0] == sevens[0] and zeros[1] == sevens[1] > 0


@verdict(
    "000",
    "anchor_target_layer, docstring, `anchor_scales`",
    claim="They scale a basic anchor of [16, 16].",
    ruling="not tried",
    because="The guide does not print what makes its anchors, so it was not run. In py-faster-rcnn, where its layers "
    "come from, base_size is 16, and the scales 8, 16 and 32 give the paper's 128, 256 and 512 pixels.",
)
def test_what_makes_the_anchors_is_not_printed():
    text = (POSTS / "000_layers.py").read_text(encoding="utf-8")
    assert "basic anchor is [16, 16]" in text and "def generate_anchors" not in text
    assert "anchor_target_layer_py" in text and "def anchor_target_layer_py" not in text


@verdict(
    "000",
    "proposal_target_layer, docstring",
    claim="Column 0 of the rois, the image, is always 0.",
    ruling="incomplete",
    because="Right with one image on each GPU. With two the second one's boxes are pooled from the first, silently; "
    "the number must be counted on the replica.",
    notebook=OWNER,
    words="is the number of the image *on this replica*",
)
def test_column_0_is_the_image_on_this_replica():
    class Pool(nn.Module):
        def __init__(self, number):
            super().__init__()
            self.number = number

        def forward(self, features, boxes):
            rois = torch.cat([self.number(len(features)).to(boxes)[:, None], boxes], dim=1)
            return ops.roi_pool(features, rois, 3, 1 / 8)

    features, boxes = torch.rand(4, 2, 8, 8), torch.tensor([[0.0, 0, 60, 60]]).repeat(4, 1)
    own = Pool(torch.arange)(features, boxes)
    zeros, counted = (nn.DataParallel(Pool(f), [0, 1])(features, boxes).cpu() for f in (torch.zeros, torch.arange))
    assert torch.equal(counted, own)
    assert [torch.equal(row, wanted) for row, wanted in zip(zeros, own, strict=True)] == [True, False, True, False]


@verdict(
    "000",
    "build_loss, `rpn_keep` and `ce_weights`",
    claim="Both are brought to the device of what they meet.",
    ruling="right",
    because="With `.cuda()` alone they go to the current device, and both losses raise wherever that is another. "
    "`ignore_index=-1` and `ones_like` need no move at all.",
    notebook=OWNER,
    words="ce_weights = ce_weights.cuda(deviceid)",
)
def test_losses_follow_their_scores():
    labels = torch.tensor([0, 1, -1, 0, -1, 1], device="cuda:1").view(1, 1, 2, 3)
    score, zeros = torch.rand(1, 2, 2, 3, device="cuda:1"), torch.zeros(1, 4, 2, 3, device="cuda:1")
    rpn_data = labels, zeros, zeros, zeros
    loss, _ = listing()["RPN"].build_loss(None, score, zeros, rpn_data)
    assert loss.device == torch.device("cuda:1")
    assert torch.allclose(
        loss, F.cross_entropy(score.permute(0, 2, 3, 1).reshape(-1, 2), labels.view(-1), ignore_index=-1)
    )
    assert head_loss([1, 0, 2])[0].device == torch.device("cuda:1")
    bare = ("cuda(deviceid)", "cuda()")
    with pytest.raises(RuntimeError, match="got index is on cuda:0"):
        listing(bare)["RPN"].build_loss(None, score, zeros, rpn_data)
    with pytest.raises(RuntimeError, match="got weight is on cuda:0"):
        head_loss([1, 0, 2], bare)


@verdict(
    "000",
    "head build_loss, `roi_data[1].squeeze()`",
    claim="squeeze() makes labels (S,) of (S, 1).",
    ruling="right then",
    because="Until torch 0.3 every tensor had a dimension, so labels (1, 1) became (1,), too (`THTensor_(squeeze)`). "
    "Since 0.4 one RoI becomes a 0-d tensor, which cross_entropy refuses. `view(-1)` keeps the row.",
    notebook=OWNER,
    words="roi_data[1].squeeze()",
)
def test_one_roi_is_squeezed_away(monkeypatch):
    with pytest.raises(ValueError, match=r"Expected input batch_size \(1\) to match target batch_size \(0\)"):
        head_loss([2])
    loss, _ = head_loss([2], ("squeeze()", "view(-1)"))
    squeeze = torch.Tensor.squeeze
    monkeypatch.setattr(torch.Tensor, "squeeze", lambda x: x.view(1) if x.numel() == 1 else squeeze(x))
    assert head_loss([2])[0] == loss  # the rule of torch 0.3


@verdict(
    "000",
    "head build_loss, `ce_weights[0]`",
    claim="The background weighs fg_cnt / (bg_cnt + 1e-4).",
    ruling="right then",
    because="The 1e-4 helps where there is no background. Without foreground the only weight in use is 0. Until torch "
    "1.10 cross_entropy divided only by a sum of weights above 0, so such an image cost 0 and changed nothing; since "
    "1.11 it divides 0 by 0, and the loss and its gradient are NaN (pytorch pull request 64572, issue 70348).",
    notebook=OWNER,
    words="An image without objects",
)
def test_an_image_without_objects_is_nan(monkeypatch):
    assert head_loss([2, 1])[0].isfinite() and head_loss([2, 0, 0])[0].isfinite()
    loss, state = head_loss([0, 0, 0])
    loss.backward()
    assert loss.isnan() and state.scores.grad.isnan().all()
    today = F.cross_entropy

    def until_1_10(scores, labels, weight):
        rows = weight[labels]
        loss = (today(scores, labels, reduction="none") * rows).sum()
        return loss / rows.sum() if rows.sum() > 0 else loss

    with_objects = head_loss([2, 0, 0])[0]
    monkeypatch.setattr(F, "cross_entropy", until_1_10)
    torch.testing.assert_close(head_loss([2, 0, 0])[0], with_objects)
    loss, state = head_loss([0, 0, 0])
    loss.backward()
    assert loss == 0 and not state.scores.grad.any()


@verdict(
    "000",
    "head build_loss, tp and tf",
    claim="`predict[:fg_cnt]` are the predictions for foreground.",
    ruling="incomplete",
    because="Only if the layer puts foreground first, as that of py-faster-rcnn does. In another order the same "
    "predictions give other counts.",
    notebook=OWNER,
    words="assumes that the foreground rows come first",
)
def test_foreground_stands_first_or_counts_are_wrong():
    _, sorted_first = head_loss([3, 2, 0, 0], debug=True)  # the prediction is class 3 for every row
    _, other = head_loss([0, 2, 0, 3], debug=True)
    assert (int(sorted_first.tp), int(other.tp)) == (1, 0)
    assert int(sorted_first.fg_cnt) == int(other.fg_cnt) == 2


@verdict(
    "000",
    "head build_loss, `self.tp`, `self.cross_entropy`",
    claim="Counters and losses are kept on the network.",
    ruling="incomplete",
    because="On one GPU. A replica takes its attributes with it: the network has no counters after a step on two, and "
    "`cross_entropy` stays None.",
    notebook=OWNER,
    words="the counts are set on replicas and vanish with them",
)
def test_attributes_set_on_a_replica_are_lost():
    net = detector(PINNED)
    net.debug = True
    on_two_gpus(net)
    assert not hasattr(net, "tp") and net.cross_entropy is None
    net(*blob(0))
    assert net.tp >= 0 and net.cross_entropy is not None


@verdict(
    "000",
    "build_loss, `size_average=False`; forward, `F.softmax(cls_score)`",
    claim="How a loss is reduced, and along which axis softmax runs.",
    ruling="right then",
    because="Both still run, and warn: `reduction='sum'` since torch 0.4.1, and `dim` has to be named.",
)
def test_old_arguments_warn():
    x = torch.rand(2, 3)
    with pytest.warns(UserWarning, match="reduction='sum'"):
        assert F.smooth_l1_loss(x, x + 1, size_average=False) == F.smooth_l1_loss(x, x + 1, reduction="sum")
    with pytest.warns(UserWarning, match="Implicit dimension choice for softmax"):
        assert torch.equal(F.softmax(x), F.softmax(x, dim=1))


@verdict(
    "000",
    "RoI pooling, before the change",
    claim="Its allocations go to GPU 0 by default.",
    ruling="incomplete",
    because="They did in the guide's first workers, where cuda:0 was current. A bare `.cuda()` goes to the current "
    "device, and DataParallel and the guide's own changed worker enter the replica's: there the lines were right. "
    "(Post 001 has the same line.)",
    notebook=OWNER,
    words="none of the eight lines needed a repair",
)
def test_before_the_change_pooling_was_right_under_dataparallel():
    before = listing(("features.get_device()", ""), ("argmax.get_device()", ""))
    features = torch.rand(1, 2, 8, 8, device="cuda:1")
    rois = torch.tensor([[0.0, 0, 0, 40, 40]], device="cuda:1")
    with torch.cuda.device(1):
        pooled = pool(before, features, rois)
    assert torch.equal(pooled, ops.roi_pool(features, rois, 3, 1 / 8))
    with pytest.raises(ValueError, match="output on cuda:0"):
        pool(before, features, rois)


@verdict(
    "000",
    "RoI pooling, `output.cuda(features.get_device())`",
    claim="The output is allocated where the features are.",
    ruling="right",
    because="In any thread; `features.new_zeros(...)` says it without the detour over the CPU.",
    notebook=OWNER,
    words="output.cuda(features.get_device())",
)
def test_output_is_where_the_features_are():
    features, rois = torch.rand(1, 2, 8, 8, device="cuda:3"), torch.tensor([[0.0, 0, 0, 40, 40]], device="cuda:3")
    assert torch.equal(pool(listing(PINNED), features, rois), ops.roi_pool(features, rois, 3, 1 / 8))


@verdict(
    "000",
    "RoI pooling, `argmax.cuda(argmax.get_device())`",
    claim="argmax is allocated in the right place, too.",
    ruling="typo",
    because="`features.get_device()` was meant. As printed it asks a CPU tensor: an AttributeError in torch "
    "0.1 (pytorch issue 741), today -1, which is not a device, so the pooling never runs on a GPU.",
    notebook=OWNER,
    words="argmax.cuda(argmax.get_device())",
)
def test_argmax_asks_the_wrong_tensor():
    features, rois = torch.rand(1, 2, 8, 8, device="cuda:1"), torch.tensor([[0.0, 0, 0, 40, 40]], device="cuda:1")
    assert torch.IntTensor(1).get_device() == -1
    with pytest.raises(RuntimeError, match="Device index must not be negative"):
        pool(listing(), features, rois)


@verdict(
    "000",
    "RoI pooling, `if not features.is_cuda`",
    claim="On the CPU the features are handed over as `permute(0, 2, 3, 1)`.",
    ruling="wrong",
    because="A view: C code that reads from its address finds (C, H, W), not (H, W, C), and gives other numbers "
    "from two channels on. The branch keeps no argmax either, so that nothing can be trained.",
    notebook=OWNER,
    words="features.permute(0, 2, 3, 1)",
)
def test_the_cpu_branch_hands_over_a_view():
    rois = torch.tensor([[0.0, 8, 8, 47, 47]])
    one, two = (torch.rand(1, channels, 8, 8, requires_grad=True) for channels in (1, 2))
    assert torch.equal(pool(listing(), one, rois), ops.roi_pool(one, rois, 3, 1 / 8))
    pooled = pool(listing(), two, rois)
    assert not torch.equal(pooled, ops.roi_pool(two, rois, 3, 1 / 8))
    with pytest.raises(AttributeError, match="feature_size"):
        pooled.sum().backward()


@verdict(
    "000",
    "forward, the returned loss",
    claim="`cross_entropy + loss_box * 10` is the loss to train on.",
    ruling="wrong",
    because="It is the head's. The RPN's own stays on a replica, and proposals come from NumPy: on one GPU the RPN's "
    "own layers (its two output layers, and a 3 x 3 convolution before them where there is one) get no gradient, under "
    "DataParallel zeros, which weight decay then works on. The backbone learns from the head.",
    notebook=OWNER,
    words="These are the losses of the *head*",
)
def test_the_rpn_is_left_without_gradient():
    alone, pair, whole = (
        detector(PINNED),
        detector(PINNED),
        detector(PINNED, COMPLETED["BOTH_LOSSES"]),
    )
    alone(*blob(0)).backward()
    on_two_gpus(pair).mean().backward()
    on_two_gpus(whole).mean().backward()
    for name in ("rpn.score_conv.weight", "rpn.bbox_conv.weight"):
        assert alone.get_parameter(name).grad is None
        assert not pair.get_parameter(name).grad.any()
        assert whole.get_parameter(name).grad.any()
    assert alone.get_parameter("rpn.features.weight").grad.any()


@verdict(
    "000",
    "forward, in evaluation",
    claim="forward returns the loss, where it returned cls_prob, bbox_pred and rois.",
    ruling="incomplete",
    because="In training, of which the guide speaks. In evaluation it multiplies None by 10, and has no "
    "scores to return any more.",
    notebook=OWNER,
    words="multiplies `None` by 10",
)
def test_evaluation_is_broken():
    with pytest.raises(TypeError, match="NoneType"):
        detector(PINNED).eval()(*blob(0))


@verdict(
    "000",
    "the image's torch",
    claim="Its parallel_apply is not the newest and fails; it has to be brought to the newest.",
    ruling="right",
    because="The post does not name the error. Until pytorch pull request 1157 of 31 March 2017 results were kept by "
    "input and not by number, and the argument lists of the manual loop cannot be keys: TypeError, unhashable type. "
    "The version that the post quotes is the repair.",
)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # the workers of then end so
def test_before_the_quoted_parallel_apply_lists_were_refused():
    text = (POSTS / "000_parallel_apply.py").read_text(encoding="utf-8")
    by_input = text.replace("results[i] = ", "results[input] = ")
    by_input = by_input.replace("for i in range(len(inputs))", "for i in inputs")
    found = {}
    for words, version in {"then": by_input, "quoted": text}.items():
        scope: dict[str, Any] = {}
        exec(compile(version, words, "exec"), scope)
        found[words] = scope["parallel_apply"]
    lists = [[torch.ones(1, device=f"cuda:{k}")] for k in (0, 1)]
    tuples = [(row[0],) for row in lists]
    for function, inputs in ((found["then"], tuples), (found["quoted"], lists)):
        assert [y.get_device() for y in function([nn.Identity(), nn.Identity()], inputs)] == [0, 1]
    with pytest.raises(TypeError, match="unhashable type: 'list'"):
        found["then"]([nn.Identity(), nn.Identity()], lists)


@verdict(
    "000",
    "the end of the repair",
    claim="With this, Faster R-CNN runs on several GPUs.",
    ruling="incomplete",
    because="As printed it stops at argmax. With that one word put right it runs, and gives each image the loss that "
    "one GPU gives it, equal within 1e-5.",
    notebook=OWNER,
    words="The listing cannot have run as printed",
)
def test_with_one_word_put_right_it_runs():
    with pytest.raises(RuntimeError, match="must not be negative"):
        on_two_gpus(detector())
    net = detector(PINNED)
    torch.testing.assert_close(on_two_gpus(net), torch.stack([net(*blob(0)), net(*blob(1))]), rtol=1e-5, atol=0)


@verdict(
    "000",
    "the open problem",
    claim='The gathered loss cannot call backward: "tensors are located on different GPUs".',
    ruling="right then",
    because="Today it can. Gathering is innocent; a bare `.cuda()` in a Function's backward, while torch 0.1.12 kept "
    "device 0 current there (pytorch issue 2017, mended by pull request 2081 in July 2017), gives such an error.",
    notebook="19_the_cold_case",
    words="It runs, and its gradients are right.",
)
def test_the_gathered_loss_calls_backward(monkeypatch):
    net = detector(PINNED)
    on_two_gpus(net).mean().backward()
    assert net.rpn.features.weight.grad.isfinite().all()
    node = torch.autograd.function.BackwardCFunction
    apply = node.apply

    def on_device_0(ctx, *gradients):
        with torch.cuda.device(0):
            return apply(ctx, *gradients)

    monkeypatch.setattr(node, "apply", on_device_0)
    loss = on_two_gpus(net).mean()
    with pytest.raises(RuntimeError, match="invalid gradient at index 0 - expected device cuda:1 but got cuda:0"):
        loss.backward()
