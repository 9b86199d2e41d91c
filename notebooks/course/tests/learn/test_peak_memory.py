"""Bytes at the worst moment: what an operation returns counts until it is freed, and nothing else."""

import torch

from course.kit.learn.peak_memory import MemoryMeter, peak_bytes


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
