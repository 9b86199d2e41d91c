"""Post 004, an engineer's notes on PyTorch (2021): learning rates and determinism, run line by line."""

import random
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn
from verdict import verdict

import vgpu
from frcnn_lite.recipes import schedules
from frcnn_lite.recipes.determinism import same_bits, seed_everything
from frcnn_lite.recipes.param_groups import param_groups

POSTS = Path(__file__).resolve().parents[1]
RATES, BITS = "27_learning_rates", "28_determinism"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Linear(2, 2)
        self.conv_X = nn.Linear(2, 2)
        self.seg_head = nn.Linear(2, 2)

    def forward(self, x):
        return self.seg_head(self.conv_X(self.backbone(x)))


def functions(name, **surroundings):
    """What a file of the notes defines, among the names that it takes for granted; its comma is made one."""
    namespace = dict(surroundings)
    exec((POSTS / name).read_text(encoding="utf-8").replace("\uff0c", ","), namespace)
    return namespace


def three_groups():
    return torch.optim.SGD(param_groups(Net(), {"backbone": 0.1, "conv_X": 1.0, "seg_head": 1.0}, lr=0.1))


@verdict(
    "004",
    "rates of parts, backbone and head",
    claim="Sort parameters by `id` and give the backbone's and the others a group each.",
    ruling="right",
    because="Every parameter lands in exactly one group; `in` on tensors would compare their elements.",
    notebook=RATES,
    words="base_params = list(map(id, model.backbone.parameters()))",
)
def test_two_groups_by_id():
    model = Net()
    base_params = list(map(id, model.backbone.parameters()))
    logits_params = filter(lambda p: id(p) not in base_params, model.parameters())
    groups = [{"params": logits_params, "lr": 0.1}, {"params": model.backbone.parameters(), "lr": 0.01}]
    optimizer = torch.optim.SGD(groups, momentum=0.9, weight_decay=1e-4)
    assert [len(group["params"]) for group in optimizer.param_groups] == [4, 2]
    assert {p for group in optimizer.param_groups for p in group["params"]} == set(model.parameters())


@verdict(
    "004",
    "rates of parts, `filter`",
    claim="The rest of the parameters is kept as a `filter`.",
    ruling="incomplete",
    because="It can be read once. Count it first, and its group is empty; the optimizer says nothing.",
    notebook=RATES,
    words="What `filter` makes can be read once",
)
def test_a_filter_is_consumed_once():
    model = Net()
    ids = list(map(id, model.backbone.parameters()))
    rest = filter(lambda p: id(p) not in ids, model.parameters())
    assert len(list(rest)) == 4
    optimizer = torch.optim.SGD([{"params": rest}, {"params": model.backbone.parameters()}], lr=0.1)
    assert [len(group["params"]) for group in optimizer.param_groups] == [0, 2]


@verdict(
    "004",
    "rates of parts, ids",
    claim="The parameters of a layer are kept as a list of ids.",
    ruling="incomplete",
    because="`.to` keeps the objects; `load_state_dict(assign=True)` replaces them, and the list matches nothing.",
    notebook=RATES,
    words="assign=True",
)
def test_ids_after_a_move():
    model = Net()
    ids = list(map(id, model.parameters()))
    with vgpu.virtual_gpus(1):
        assert ids == list(map(id, model.to("cuda:0").parameters()))
        model.cpu()
    kept_alive = list(model.parameters())
    model.load_state_dict({name: value.clone() for name, value in model.state_dict().items()}, assign=True)
    assert not set(ids) & set(map(id, model.parameters())) and len(kept_alive) == len(ids)


@verdict(
    "004",
    "rates of layers",
    claim="`net.conv_X_params.parameters()` is the group of conv_X, `net.conv_x_1_params` that of conv_x_1.",
    ruling="typo",
    because="`net.conv_X` is meant. As printed these are variables that hold ids, and not parts of the model: "
    "AttributeError.",
    notebook=RATES,
    words="conv_X_params",
)
def test_a_list_of_ids_is_no_module():
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'conv_X_params'"):
        Net().conv_X_params.parameters()
    groups = param_groups(Net(), {"conv_X": 2.0}, lr=0.001, rest=1.0)
    assert {group["name"]: group["lr"] for group in groups} == {"conv_X": 0.002, "rest": 0.001}


@verdict(
    "004",
    "milestones, warm-up",
    claim="`to(epoch)` returns 1 while `epoch <= args.warmup`.",
    ruling="right",
    because="A constant warm-up, as in He et al. (2015) and in PyTorch's `ConstantLR`, with which it agrees "
    "at every epoch. Goyal et al. (2017) find it helpful for fine-tuning trained and new layers "
    "together; for very large batches they let the rate rise gradually.",
    notebook=RATES,
    words="This is a *constant* warm-up, and it is right",
)
def test_the_warm_up_is_constant():
    notes = functions("004_milestones.py", args=SimpleNamespace(warmup=3, base_lr=0.1))
    optimizer, taken = torch.optim.SGD([nn.Parameter()], lr=0.1), []
    for epoch in range(1, 13):
        notes["adjust_learning_rate"](optimizer, epoch, milestones=[6, 9])
        taken.append(optimizer.param_groups[0]["lr"])
    assert taken == pytest.approx([0.02] * 3 + [0.1] * 3 + [0.02] * 3 + [0.004] * 3)

    def of_pytorch(optimizer):
        flat = torch.optim.lr_scheduler.ConstantLR(optimizer, factor=0.2, total_iters=3)
        drops = torch.optim.lr_scheduler.MultiStepLR(optimizer, [6, 9], gamma=0.2)
        return torch.optim.lr_scheduler.ChainedScheduler([flat, drops])

    assert taken == pytest.approx(schedules.preview(of_pytorch, {"all": 0.1}, 12)["all"])
    gradual = schedules.preview(lambda o: schedules.milestones(o, [6, 9], gamma=0.2, warmup_steps=3), {"all": 0.1}, 12)
    assert gradual["all"][:3] == pytest.approx([0.01, 0.04, 0.07]) and gradual["all"][3:] == pytest.approx(taken[3:])


@verdict(
    "004",
    "milestones, the default",
    claim="`adjust_learning_rate(optimizer, epoch, milestones=None)`: milestones may be left out.",
    ruling="wrong",
    because="The call runs during the warm-up. The first epoch after it compares with `milestones[0]`: TypeError, "
    "'NoneType' object is not subscriptable.",
    notebook=RATES,
    words="`milestones=None",
)
def test_the_default_milestones_raise_after_the_warm_up():
    notes = functions("004_milestones.py", args=SimpleNamespace(warmup=3, base_lr=0.1))
    optimizer = torch.optim.SGD([nn.Parameter()], lr=0.1)
    for epoch in (1, 2, 3):
        notes["adjust_learning_rate"](optimizer, epoch)
    with pytest.raises(TypeError, match="'NoneType' object is not subscriptable"):
        notes["adjust_learning_rate"](optimizer, 4)


@verdict(
    "004",
    "milestones, `global lr`",
    claim="`lr` is global, perhaps because code outside the function uses it.",
    ruling="incomplete",
    because="Probably so, and it has a price: any `lr` of that file is overwritten, while a file that "
    "imported it keeps the old number. A function can return it.",
    notebook=RATES,
    words="`global lr` reaches out of the function",
)
def test_global_lr_overwrites():
    notes = functions("004_milestones.py", args=SimpleNamespace(warmup=1, base_lr=0.1), lr=0.001)
    imported = notes["lr"]
    notes["adjust_learning_rate"](three_groups(), 2, milestones=[6, 9])
    assert notes["lr"] == 0.1 and imported == 0.001


@verdict(
    "004",
    "milestones, groups",
    claim="Every group is set to the one rate.",
    ruling="incomplete",
    because="Right for an optimizer with one rate. The factors between groups, which the notes set up a page "
    "earlier, are lost in the first epoch.",
    notebook=RATES,
    words="so the backbone's tenth is lost in the first epoch",
)
def test_one_rate_for_all_groups():
    notes = functions("004_milestones.py", args=SimpleNamespace(warmup=1, base_lr=0.1))
    one = torch.optim.SGD(Net().parameters(), lr=0.5)
    notes["adjust_learning_rate"](one, 2, milestones=[6, 9])
    assert one.param_groups[0]["lr"] == 0.1
    optimizer = three_groups()
    assert len({group["lr"] for group in optimizer.param_groups}) == 2
    notes["adjust_learning_rate"](optimizer, 2, milestones=[6, 9])
    assert {group["lr"] for group in optimizer.param_groups} == {0.1}
    kept = schedules.preview(lambda o: schedules.milestones(o, [6, 9]), {"backbone": 0.01, "head": 0.1}, 12)
    assert [10 * rate for rate in kept["backbone"]] == pytest.approx(kept["head"])


@verdict(
    "004",
    "LambdaLR",
    claim="Each `scheduler.step()` applies the lambda; after total_iters the rate is 0.",
    ruling="right",
    because="A straight line to 0 that stays there. (The lambda is not part of the scheduler's state.)",
    notebook=RATES,
    words="The notes' own `LambdaLR`",
)
def test_lambda_lr_ends_at_zero():
    optimizer = torch.optim.SGD([nn.Parameter()], lr=1.0)
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: (1.0 - step / 4) if step <= 4 else 0, last_epoch=-1
    )
    taken = []
    for _ in range(7):
        taken.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    assert taken == pytest.approx([1, 0.75, 0.5, 0.25, 0, 0, 0])
    assert scheduler.state_dict()["lr_lambdas"] == [None]


@verdict(
    "004",
    "poly, signature",
    claim="`power=0.9， nbb_mult=10`",
    ruling="typo",
    because="The comma is full-width, U+FF0C: a SyntaxError.",
    notebook=RATES,
    words="The comma is a full-width",
)
def test_a_full_width_comma():
    with pytest.raises(SyntaxError, match=r"U\+FF0C"):
        compile((POSTS / "004_poly.py").read_text(encoding="utf-8"), "004_poly.py", "exec")


@verdict(
    "004",
    "poly, docstring",
    claim="The rate is divided by 5 at epochs 60, 120 and 160.",
    ruling="wrong",
    because="The docstring is another schedule's: the function falls smoothly and knows no milestones.",
    notebook=RATES,
    words="belongs to another schedule",
)
def test_the_docstring_is_stale():
    notes = functions("004_poly.py")
    taken = [notes["lr_poly"](1.0, step, 200, 0.9) for step in (59, 60, 61)]
    assert taken[0] > taken[1] > taken[2] > 0.9 * taken[0]
    assert "divided by 5" in notes["adjust_learning_rate"].__doc__


@verdict(
    "004",
    "poly, the formula",
    claim="`base_lr*((1-float(iter)/max_iter)**(power))`",
    ruling="incomplete",
    because="Right up to max_iter. One step later it is a complex number, which SGD refuses.",
    notebook=RATES,
    words="a complex number",
)
def test_poly_turns_complex():
    notes = functions("004_poly.py")
    assert notes["lr_poly"](0.1, 50, 100, 0.9) == pytest.approx(0.1 * 0.5**0.9)
    assert notes["lr_poly"](0.1, 100, 100, 0.9) == 0 and isinstance(notes["lr_poly"](0.1, 101, 100, 0.9), complex)
    weight = nn.Parameter(torch.ones(1))
    weight.grad = torch.ones(1)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    notes["adjust_learning_rate"](optimizer, 0.1, 101, 100)
    with pytest.raises(RuntimeError, match="complex"):
        optimizer.step()
    assert schedules.preview(lambda o: schedules.poly(o, 100), {"all": 0.1}, 150)["all"][100:] == [0.0] * 50


@verdict(
    "004",
    "poly, two groups",
    claim="If there are two groups, the second gets nbb_mult times the rate.",
    ruling="incomplete",
    because="With three groups all but the first keep the rate they began with, silently.",
    notebook=RATES,
    words="leaves all groups but the first where they are",
)
def test_a_third_group_is_ignored():
    notes = functions("004_poly.py")
    two = torch.optim.SGD([{"params": [nn.Parameter()]}, {"params": [nn.Parameter()]}], lr=0.1)
    notes["adjust_learning_rate"](two, 0.1, 50, 100)
    assert two.param_groups[1]["lr"] == pytest.approx(10 * two.param_groups[0]["lr"])
    three = three_groups()
    notes["adjust_learning_rate"](three, 0.1, 50, 100)
    assert [group["lr"] for group in three.param_groups[1:]] == [0.1, 0.1]


def draw():
    drawn = {"python": random.random(), "numpy": np.random.random(), "cpu": torch.rand(1)}
    return drawn | {device: torch.rand(1, device=device).cpu() for device in ("cuda:0", "cuda:1")}


def repeated(seed_them):
    """The generators that give the same numbers again after `seed_them`."""
    draws = []
    for _ in range(2):
        seed_them()
        draws.append(draw())
    return {name for name, value in draws[0].items() if same_bits(value, draws[1][name])}


@verdict(
    "004",
    "cudnn, seeds",
    claim="`manual_seed`, `cuda.manual_seed` and `cuda.manual_seed_all` fix the random seed.",
    ruling="incomplete",
    because="Those of torch, on all devices; Python's and NumPy's generators go on.",
    notebook=BITS,
    words="Python's and NumPy's generators are missing",
)
def test_the_recipe_leaves_python_and_numpy():
    def recipe():
        torch.manual_seed(404)
        torch.cuda.manual_seed(404)
        torch.cuda.manual_seed_all(404)

    with vgpu.virtual_gpus(2):
        assert repeated(recipe) == {"cpu", "cuda:0", "cuda:1"}
        assert repeated(lambda: seed_everything(404)) == {"cpu", "cuda:0", "cuda:1", "python", "numpy"}


@verdict(
    "004",
    "cudnn, three seeds",
    claim="For CUDA, call `manual_seed`, `cuda.manual_seed` and `cuda.manual_seed_all`.",
    ruling="right",
    because="The numbers of every GPU repeat. `torch.manual_seed` alone seeds the CPU and every GPU; the two "
    "calls after it repeat that and do no harm.",
    notebook=BITS,
    words="torch.cuda.manual_seed_all(seed)",
)
def test_manual_seed_reaches_every_device():
    with vgpu.virtual_gpus(2):
        assert repeated(lambda: torch.manual_seed(404)) == {"cpu", "cuda:0", "cuda:1"}


@verdict(
    "004",
    "cudnn, the two switches",
    claim="`deterministic = True` and `benchmark = False` make each training give the same result.",
    ruling="incomplete",
    because="They speak to cuDNN alone. Operations outside it are refused by `use_deterministic_algorithms` only.",
    notebook=BITS,
    words="torch.backends.cudnn.deterministic = True",
)
def test_the_cudnn_switches_leave_other_operations(monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "deterministic", True)
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", False)
    where, values = torch.tensor([0, 0]), torch.tensor([1.0, 2.0])
    torch.zeros(3).put_(where, values)  # two values for one place: runs
    torch.use_deterministic_algorithms(True)
    try:
        with pytest.raises(RuntimeError, match="does not have a deterministic implementation"):
            torch.zeros(3).put_(where, values)
    finally:
        torch.use_deterministic_algorithms(False)


@verdict(
    "004",
    "cudnn, cost",
    claim="`deterministic = True` makes a model very slow.",
    ruling="not tried",
    because="cuDNN runs on GPUs, and none was measured. The switch narrows its choice of algorithms, so the "
    "cost depends on the shapes. What a CPU can show is that its convolution never asks the switch.",
    notebook=BITS,
    words="it was **not tried** here",
)
def test_the_cudnn_switch_is_nothing_to_the_cpu(monkeypatch):
    conv, x = nn.Conv2d(3, 4, 3), torch.rand(2, 3, 8, 8)
    results, traced = [], []
    for setting in (False, True):
        monkeypatch.setattr(torch.backends.cudnn, "deterministic", setting)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            results.append(conv(x))
        traced.append([event.name for event in profile.events()])
    assert same_bits(*results) and traced[0] == traced[1]
    assert not any("cudnn" in name for name in traced[0])
