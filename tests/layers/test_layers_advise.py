import time

import pytest
import torch

from frcnn_lite.layers import Bottleneck, BottleneckConfig
from frcnn_lite.layers.advise import Advice, advise_bottleneck, advise_group_linear, faster_form
from frcnn_lite.layers.forms import bottleneck_forms
from frcnn_lite.layers.measure import MemoryMeter, median_ratio, paired_times, peak_bytes


@pytest.mark.parametrize("config", [BottleneckConfig(6, 4, 6), BottleneckConfig(6, 4, 8, 2, True, True, 2)])
@pytest.mark.parametrize("training", [True, False])
def test_all_forms_agree_in_value_and_gradient(config, training):
    blocks = [Bottleneck(config).double().train(training) for _ in range(3)]
    x = torch.randn(2, 6, 6, 6, dtype=torch.float64)
    forms = bottleneck_forms(blocks)
    outputs = {name: form.call(x).detach() for name, form in forms.items()}
    for form in forms.values():
        form.step(x)
    for name, out in outputs.items():
        torch.testing.assert_close(out, outputs["loop"], rtol=1e-10, atol=1e-10, msg=lambda m, n=name: f"{n}: {m}")
        norm = sum(p.grad.square().sum() for p in forms[name].parameters)
        torch.testing.assert_close(norm, sum(p.grad.square().sum() for p in forms["loop"].parameters))


@pytest.mark.parametrize(
    ("ratio", "words"),
    [(0.25, "use the grouped form: 4.0 times"), (1.0, "gains nothing"), (1.5, "do not use the grouped form here: 1.5")],
)
def test_advice_says_when_not_to(ratio, words):
    assert words in str(Advice("shapes", {"loop": 1.0, "grouped": ratio}, {"loop": 1.0, "grouped": ratio}))


def test_advice_times_every_form():
    advice = advise_bottleneck(BottleneckConfig(4, 2, 4), 3, (1, 5, 5), channels_last=True, rounds=2)
    assert set(advice.milliseconds) == {"loop", "grouped", "vmap", "bmm"}
    assert advice.fastest in advice.milliseconds
    assert set(advise_group_linear((2, 1), 4, 2, batch=2, backward=False, rounds=2).milliseconds) == {"loop", "grouped"}


def test_faster_form_computes_the_same_and_leaves_the_blocks_alone():
    blocks = [Bottleneck(BottleneckConfig(4, 2, 4)) for _ in range(3)]
    before = [block.bn1.running_mean.clone() for block in blocks]
    x = torch.randn(2, 4, 5, 5)
    chosen = faster_form(blocks, x, rounds=2)
    assert all(torch.equal(a, block.bn1.running_mean) for a, block in zip(before, blocks, strict=True))
    assert all(p.grad is None for block in blocks for p in block.parameters())
    torch.testing.assert_close(chosen(x), torch.cat([block(x) for block in blocks], dim=1))


def test_paired_times_run_every_candidate_every_round():
    calls = []

    def slow(name):
        calls.append(name)
        time.sleep(0.005)  # longer than a turn: one call each

    times = paired_times({"a": lambda: slow("a"), "b": lambda: slow("b")}, rounds=3)
    assert calls[:4] == ["a", "a", "b", "b"]
    assert [sorted(calls[k : k + 2]) for k in (4, 6, 8)] == [["a", "b"]] * 3
    assert [len(seconds) for seconds in times.values()] == [3, 3]
    assert median_ratio({"a": [1.0, 2.0, 9.0], "b": [2.0, 4.0, 3.0]}, "a", "b") == 0.5
    with pytest.raises(ValueError, match="rounds: expected 1 or more, got 0"):
        paired_times({}, rounds=0)


def test_a_short_call_is_repeated():
    calls = []
    paired_times({"short": lambda: calls.append(1)}, rounds=1)
    assert len(calls) > 3


def test_peak_counts_what_is_alive_at_once():
    def chain():
        a = torch.zeros(1000)
        b = a.view(10, 100) + 1
        del a
        return (b * 2).sum()

    assert peak_bytes(chain) == 2 * 4000 + 4


def test_views_and_inputs_cost_nothing():
    x = torch.zeros(1000)
    with MemoryMeter() as meter:
        kept = x.expand(12, 1000).unflatten(1, (10, 100))
        x.add_(1)
    assert meter.peak == 0
    assert kept.shape == (12, 10, 100)


def test_backward_is_counted():
    weight = torch.zeros(100, 100, requires_grad=True)

    def step():
        product = weight * 2
        product.sum().backward()  # product and gradient, 40000 bytes each, are alive together

    assert 80000 <= peak_bytes(step) < 81000
