"""Loops against their loop-free forms and named peers: `python benchmarks/bench_layers.py`.

Forward and backward, medians of paired runs (every round runs every candidate), results checked equal first. A ratio
is time over the loop's time in the same round, so 0.25 x means four times as fast.

On two CPU cores GroupLinear pays where the layers are small: at 64 -> 16 and batch 2 it was 5 to 28 times as fast as
the loop. At 512 -> 64 and batch 32 it was 0.7 to 3.3 times as fast, by how busy the machine was, and at batch 256 the
loop was faster. Two threads can be far slower than one where other programs use the cores: the threads of OpenMP spin
while they wait for each other, unless OMP_WAIT_POLICY=PASSIVE.
"""

import argparse
import statistics
from collections.abc import Callable, Mapping

import torch
from forms import Form, bottleneck_forms
from stopwatch import median_ratio, paired_times
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap
from torch.nn import functional as F

from course.kit.post_002 import Bottleneck, BottleneckConfig
from course.lessons.nb23.unfold_conv import unfold_conv2d
from frcnn_lite.layers import FastGroupLinear, GroupLinear

EVEN = (7,) * 8 + (6,) * 4  # 12 groups, 80 classes
RAGGED = (3, 9, 7, 5, 11, 6, 8, 4, 10, 2, 7, 8)


def main() -> None:
    """Print every table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    # one thread by default: on a busy machine several threads measure how long they wait for each other
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    print(f"torch {torch.__version__}, {options.device}, {options.threads} threads, {options.rounds} paired rounds")
    for sizes in (EVEN, RAGGED):
        for fan_in, out, batch in ((512, 64, 32), (64, 16, 2)):
            bench_group_linear(sizes, fan_in, out, batch, options.rounds, options.device)
    bench_group_divided(options.rounds, options.device)
    for channels, batch, size in ((512, 1, 14), (128, 2, 7), (64, 8, 14), (32, 4, 7)):
        for layout in (torch.contiguous_format, torch.channels_last):
            bench_bottleneck(channels, batch, size, layout, max(options.rounds // 3, 3), options.device)
    bench_unfold(options.rounds, options.device)
    bench_residual(options.rounds, options.device)


def bench_group_linear(sizes: tuple[int, ...], fan_in: int, out: int, batch: int, rounds: int, device: str) -> None:
    """GroupLinear and FastGroupLinear beside the loop, twelve plain Linears, vmap, and one bare bmm."""
    layer, fast = (kind(len(sizes), sizes, fan_in, out).to(device) for kind in (GroupLinear, FastGroupLinear))
    fast.load_state_dict(layer.state_dict())
    linears, groups = layer.to_linears(), layer.class_group.tolist()
    by_group = nn.ModuleList(nn.Linear(fan_in, n * out) for n in sizes).to(device)
    for big, weight, bias in zip(by_group, layer.weight.split(sizes), layer.bias.split(sizes), strict=True):
        big.load_state_dict({"weight": weight.detach().flatten(0, 1), "bias": bias.detach().flatten()})
    parameters, _ = stack_module_state(list(linears))
    skeleton = nn.Linear(fan_in, out, device="meta")
    mapped = vmap(lambda p, row: functional_call(skeleton, p, (row,)), in_dims=(0, 1), out_dims=1)
    forms = {
        "ModuleList loop": Form(
            lambda x: torch.stack([linear(x[:, g]) for linear, g in zip(linears, groups, strict=True)], dim=1),
            list(linears.parameters()),
        ),
        "GroupLinear": Form(layer, list(layer.parameters())),
        "FastGroupLinear": Form(fast, list(fast.parameters())),
        f"{len(sizes)} plain Linears": Form(
            lambda x: torch.cat([m(x[:, g]) for g, m in enumerate(by_group)], 1).unflatten(1, (-1, out)),
            list(by_group.parameters()),
        ),
        "repeat + vmap": Form(lambda x: mapped(parameters, x[:, layer.class_group]), list(parameters.values())),
    }
    x = torch.randn(batch, len(sizes), fan_in, device=device, requires_grad=True)
    check_equal(forms, x)
    calls = {name: lambda form=form: form.step(x) for name, form in forms.items()}
    calls["one bare bmm"] = bare_bmm((layer.n_classes, out, fan_in), (layer.n_classes, fan_in, batch), device)
    calls["one bare bmm, x first"] = bare_bmm((layer.n_classes, batch, fan_in), (layer.n_classes, fan_in, out), device)
    kind = "even" if max(sizes) - min(sizes) < 2 else "ragged"
    title = f"{layer.n_classes} classes in {len(sizes)} {kind} groups, {fan_in} -> {out}, batch {batch}"
    times = report(title, calls, "ModuleList loop", rounds)
    for name in ("GroupLinear", "FastGroupLinear"):
        bare = [f"{median_ratio(times, name, peer):.2f} x {peer}" for peer in calls if peer.startswith("one bare")]
        gain = median_ratio(times, "ModuleList loop", name)
        print(f"    {name}: {gain:.2f} times as fast as the loop, {', '.join(bare)}")
    if device == "cpu":
        kept = {n: saved_bytes(forms[n].call, x, forms[n].parameters) for n in ("GroupLinear", "FastGroupLinear")}
        ratio = kept["GroupLinear"] / kept["FastGroupLinear"]
        print(
            f"    kept for backward: {kept['FastGroupLinear']:,} bytes, {kept['GroupLinear']:,} when repeated,"
            f" {ratio:.2f} times as much (arithmetic: {layer.n_classes} / {len(sizes)})"
        )


def bench_group_divided(rounds: int, device: str) -> None:
    """The post's grouped FC, 20480 -> 10240 in 80 groups, beside its loop and Conv1d with groups."""
    layer, fast = (kind(80, (1,) * 80, 256, 128, bias=False).to(device) for kind in (GroupLinear, FastGroupLinear))
    fast.load_state_dict(layer.state_dict())
    linears, conv = layer.to_linears(), nn.Conv1d(20480, 10240, kernel_size=1, bias=False, groups=80).to(device)
    conv.load_state_dict({"weight": layer.weight.detach().reshape(10240, 256, 1)})
    forms = {
        "ModuleList loop": Form(
            lambda x: torch.stack([m(x[:, g]) for g, m in enumerate(linears)], 1), list(linears.parameters())
        ),
        "GroupLinear": Form(layer, list(layer.parameters())),
        "FastGroupLinear": Form(fast, list(fast.parameters())),
        "Conv1d(groups=80)": Form(lambda x: conv(x.reshape(len(x), -1, 1)).view(len(x), 80, 128), [conv.weight]),
    }
    x = torch.randn(2, 80, 256, device=device, requires_grad=True)
    check_equal(forms, x)
    calls = {name: lambda form=form: form.step(x) for name, form in forms.items()}
    report("20480 -> 10240 in 80 groups, batch 2", calls, "ModuleList loop", rounds)


def bench_bottleneck(
    channels: int, batch: int, size: int, layout: torch.memory_format, rounds: int, device: str
) -> None:
    """Twelve bottlenecks in four forms."""
    config = BottleneckConfig(channels, channels // 2, channels)
    blocks = [Bottleneck(config).to(device).to(memory_format=layout) for _ in range(12)]
    x = torch.randn(batch, channels, size, size, device=device).to(memory_format=layout)
    forms = bottleneck_forms(blocks)
    check_equal(forms, x)
    calls = {name: lambda form=form: form.step(x) for name, form in forms.items()}
    name = "channels last" if layout is torch.channels_last else "channels first"
    title = f"12 bottlenecks {channels} -> {channels // 2} -> {channels}, batch {batch}, {size}x{size}, {name}"
    report(title, calls, "loop", rounds)


def bench_unfold(rounds: int, device: str) -> None:
    """Convolution by hand against the library's kernel."""
    x = torch.randn(4, 64, 28, 28, device=device, requires_grad=True)
    weight = torch.randn(64, 64, 3, 3, device=device, requires_grad=True)
    forms = {
        "F.conv2d": Form(lambda x: F.conv2d(x, weight, padding=1), [weight]),
        "unfold_conv2d": Form(lambda x: unfold_conv2d(x, weight, padding=1), [weight]),
        "F.unfold + matmul": Form(
            lambda x: (weight.flatten(1) @ F.unfold(x, 3, padding=1)).unflatten(2, (28, 28)), [weight]
        ),
    }
    check_equal(forms, x)
    calls = {name: lambda form=form: form.step(x) for name, form in forms.items()}
    report("3x3 convolution, 64 -> 64, batch 4, 28x28", calls, "F.conv2d", rounds)


def bench_residual(rounds: int, device: str) -> None:
    """Twelve copies of the shortcut, added to (B, 12 * C, H, W): the ways of the post, and none."""
    x, out = torch.randn(2, 128, 14, 14, device=device), torch.randn(2, 12 * 128, 14, 14, device=device)

    def growing() -> Tensor:
        residual = x
        for _ in range(11):
            residual = torch.cat((residual, x), dim=1)
        return out + residual

    ways: dict[str, Callable[[], Tensor]] = {
        "growing cat": growing,
        "cat of 12": lambda: out + torch.cat([x] * 12, dim=1),
        "stack + flatten": lambda: out + torch.stack([x] * 12, dim=1).flatten(1, 2),
        "repeat": lambda: out + x.repeat(1, 12, 1, 1),
        "broadcast": lambda: (out.unflatten(1, (12, -1)) + x.unsqueeze(1)).flatten(1, 2),
    }
    assert all(torch.equal(way(), growing()) for way in ways.values())
    report("12 shortcuts of (2, 128, 14, 14), forward", ways, "growing cat", rounds)


def bare_bmm(a_shape: tuple[int, int, int], b_shape: tuple[int, int, int], device: str) -> Callable[[], None]:
    """Forward and backward of one batched product with as many FLOPs, gathered before, without bias.

    Weights as the layer keeps them, (n, out, in), times columns of the input; or rows of the input times weights that
    are kept as (n, in, out), which no stacked `nn.Linear` is, but which is the fastest layout for a small batch.
    """
    a, b = (torch.randn(shape, device=device, requires_grad=True) for shape in (a_shape, b_shape))

    def step() -> None:
        a.grad = b.grad = None
        product = torch.bmm(a, b)
        product.backward(product.detach())

    return step


def saved_bytes(call: Callable[[Tensor], Tensor], x: Tensor, weights: list[Tensor]) -> int:
    """Bytes that the form keeps between forward and backward, each storage once, its weights not counted."""
    own = {weight.untyped_storage().data_ptr() for weight in weights}
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own and tensor.is_floating_point():
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        out = call(x)
    assert out.requires_grad
    return sum(kept.values())


def check_equal(forms: Mapping[str, Form], x: Tensor) -> None:
    """All forms agree in float32 to 1e-5 relative."""
    outputs = [form.call(x).detach() for form in forms.values()]
    for out in outputs[1:]:
        torch.testing.assert_close(out, outputs[0], rtol=1e-5, atol=1e-4 * outputs[0].abs().max().item())


def report(title: str, calls: Mapping[str, Callable[[], object]], base: str, rounds: int) -> dict[str, list[float]]:
    """Time the calls and print them, fastest first."""
    times = paired_times(calls, rounds)
    print(f"\n{title}")
    for name in sorted(times, key=lambda name: statistics.median(times[name])):
        print(f"  {name:<21} {1e3 * statistics.median(times[name]):9.3f} ms  {median_ratio(times, name, base):6.2f} x")
    return times


if __name__ == "__main__":
    main()
