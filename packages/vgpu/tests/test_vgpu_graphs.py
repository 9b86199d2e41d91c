"""CUDA graphs: what a replay computes is compared with the same program run without a graph."""

import copy
import warnings

import pytest
import torch
from torch import nn

import vgpu

F = nn.functional


@pytest.fixture(autouse=True)
def _default_stream(gpus):
    """Until torch 2.15, a capture that fails leaves its stream current."""
    with torch.cuda.stream(torch.cuda.current_stream()):
        yield


def captured(program, *static, warm_up=1, **options):
    """The graph of a program, captured as PyTorch's manual does it, and the static output."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(warm_up):
            program(*static)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, **options):
        out = program(*static)
    return graph, out


def refused(kind, words, use):
    """The error with which a capture of a program ends, and the graph."""
    graph = torch.cuda.CUDAGraph()
    with pytest.raises(kind, match=words) as caught, torch.cuda.graph(graph):
        use()
    return caught.value, graph


def test_a_replay_computes_with_what_its_inputs_hold_then():
    x = torch.ones(4, device="cuda")
    graph, y = captured(lambda x: x * 2, x)
    for value in (3.0, -1.0):
        x.fill_(value)
        graph.replay()
        assert torch.equal(y, x * 2)


def test_a_capture_computes_nothing():
    x, into = torch.ones(4, device="cuda"), torch.zeros(4, device="cuda")
    torch.cuda.manual_seed(3)
    before = torch.cuda.get_rng_state()

    def program():
        x.add_(1)
        into.copy_(x)
        return torch.rand(4, device="cuda") + x

    graph, y = captured(program, warm_up=0)
    assert torch.equal(x, torch.ones(4, device="cuda")) and not into.any()
    assert torch.equal(torch.cuda.get_rng_state(), before)
    assert y.isnan().all()  # memory that nobody has filled
    graph.replay()
    assert torch.equal(into, torch.full((4,), 2.0, device="cuda"))


def test_a_tensor_that_is_bound_anew_does_not_reach_the_graph():
    x = kept = torch.ones(2, device="cuda")
    graph, y = captured(lambda x: x + 1, x)
    x = torch.full((2,), 5.0, device="cuda")
    graph.replay()
    assert torch.equal(y, kept + 1) and not torch.equal(y, x + 1)


@pytest.mark.parametrize("numbers", ["cpu", "cuda"])
def test_every_replay_draws_what_the_program_would_draw(numbers):
    vgpu.enable(1, random=numbers)
    x = torch.ones(100, device="cuda")

    def program(x):
        return F.dropout(x) + torch.rand(100, device="cuda") + torch.randn_like(x)

    graph, y = captured(program, x)
    torch.cuda.manual_seed(5)
    drawn = []
    for _ in range(3):
        graph.replay()
        drawn.append(y.clone())
    after = torch.cuda.get_rng_state()
    torch.cuda.manual_seed(5)
    assert all(torch.equal(one, program(x)) for one in drawn)
    assert torch.equal(torch.cuda.get_rng_state(), after)


def test_a_generator_draws_where_it_was_registered():
    own = torch.Generator("cuda")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the graph is empty
        refused(
            RuntimeError, "a CUDA generator not in capture mode", lambda: torch.rand(3, device="cuda", generator=own)
        )
    graph = torch.cuda.CUDAGraph()
    graph.register_generator_state(own)
    with torch.cuda.graph(graph):
        y = torch.rand(3, device="cuda", generator=own)
    own.manual_seed(4)
    graph.replay()
    assert torch.equal(y, torch.rand(3, device="cuda", generator=own.manual_seed(4)))


PROGRAMS = {
    "views": lambda x, rows: x.view(2, -1).t()[1:].flatten() + x.expand(3, 8)[0, :1],
    "in place on a view": lambda x, rows: x.clone().view(2, 4)[0].mul_(3).add_(x[4:]),
    "out": lambda x, rows: torch.add(x, 1, out=torch.empty(0, device="cuda")),
    "range": lambda x, rows: x + torch.arange(8, device="cuda").mul_(2),
    "range that is the result": lambda x, rows: torch.arange(8, device="cuda") * x.new_ones(()),
    "range alone": lambda x, rows: torch.arange(8, device="cuda"),
    "index": lambda x, rows: x[rows].index_put((rows[:1],), x[:1]),
    "several results": lambda x, rows: torch.cat([*x.sort(), *x.view(2, 4).max(1)]),
    "foreach": lambda x, rows: torch._foreach_add(torch._foreach_mul([x, x[:2]], 2.0), 1.0)[1],
    "complex": lambda x, rows: torch.view_as_real(torch.fft.fft(x).conj() * 2),
    "matrices": lambda x, rows: F.scaled_dot_product_attention(*[x.view(1, 1, 4, 2)] * 3).relu_(),
    "autocast": lambda x, rows: autocast_product(x),
    "without gradients": torch.inference_mode()(lambda x, rows: F.linear(x, x.view(1, 8)).softmax(0)),
    "zeros": lambda x, rows: torch.zeros(8, device="cuda").index_add_(0, rows, x[:3]),
}


def autocast_product(x):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        return x.view(2, 4) @ x.view(4, 2)


@pytest.mark.parametrize("name", PROGRAMS)
def test_operators(name):
    x, rows = torch.randn(8, device="cuda"), torch.tensor([2, 0, 1], device="cuda")
    graph, y = captured(PROGRAMS[name], x, rows)
    for _ in range(2):
        x.normal_()
        rows.copy_(rows.roll(1))
        graph.replay()
        assert torch.equal(y, PROGRAMS[name](x, rows))


class Net(nn.Module):
    """Layers with buffers, random numbers and state."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.rnn = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.LSTM(8, 4, batch_first=True)
        self.embedding, self.head = nn.Embedding(10, 8), nn.Linear(8, 3)

    def forward(self, images, words):
        seen = F.dropout(F.max_pool2d(self.norm(self.conv(images)).relu(), 2), training=self.training).mean((2, 3))
        read = self.rnn(self.embedding(words))[0][:, -1]
        return self.head(torch.cat([seen, read], 1))


def batches(count):
    generator = torch.Generator().manual_seed(1)
    for _ in range(count):
        yield (
            torch.randn(4, 1, 6, 6, generator=generator),
            torch.randint(10, (4, 5), generator=generator),
            torch.randint(3, (4,), generator=generator),
        )


OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "adam": lambda p: torch.optim.Adam(p, lr=1e-2, capturable=True),
    "one by one": lambda p: torch.optim.AdamW(p, lr=1e-2, capturable=True, foreach=False),
    "fused": lambda p: torch.optim.Adam(p, lr=1e-2, fused=True, capturable=True),
}


@pytest.mark.parametrize("amp", [False, True])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_whole_step_of_training(name, amp):
    """Forward, backward, clipping and the optimizer's step in one graph, beside the same steps without it."""
    net = Net().cuda()
    other = copy.deepcopy(net)
    trained, losses = [], []
    for graphed, model in ((True, net), (False, other)):
        optimizer = OPTIMIZERS[name](model.parameters())
        static = [part.cuda() for part in next(batches(1))]

        def step(images, words, labels, model=model, optimizer=optimizer):
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast("cuda", dtype=torch.bfloat16, enabled=amp):
                loss = F.cross_entropy(model(images, words), labels)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            return loss

        torch.cuda.manual_seed(0)
        if graphed:
            graph, loss = captured(step, *static, warm_up=2)
        else:
            for _ in range(2):
                step(*static)
        seen = []
        for batch in batches(4):
            for kept, part in zip(static, batch, strict=True):
                kept.copy_(part)
            if graphed:
                graph.replay()
            else:
                loss = step(*static)
            seen.append(loss.item())
        losses.append(seen)
        trained.append(model.state_dict() | {f"grad of {n}": p.grad for n, p in model.named_parameters()})
    assert losses[0] == losses[1]
    assert [name for name in trained[0] if not torch.equal(trained[0][name], trained[1][name])] == []


def test_forward_and_backward_of_a_part_of_a_net():
    """`make_graphed_callables` is PyTorch's own code: two graphs that share a pool, as functions of autograd."""
    first, last = nn.Sequential(nn.Linear(4, 8), nn.Tanh()).cuda(), nn.Linear(8, 2).cuda()
    nets = [nn.Sequential(copy.deepcopy(first), nn.Dropout(0.5), copy.deepcopy(last)), None]
    sample = torch.randn(3, 4, device="cuda"), torch.randn(3, 8, device="cuda", requires_grad=True)
    first, last = torch.cuda.make_graphed_callables((first, last), ((sample[0],), (sample[1],)))
    nets[1] = nn.Sequential(first, nn.Dropout(0.5), last)
    found = []
    for net in nets:
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        torch.manual_seed(2)
        losses = []
        for _ in range(3):
            optimizer.zero_grad()
            loss = F.mse_loss(net(torch.randn(3, 4, device="cuda")), torch.ones(3, 2, device="cuda"))
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        found.append((losses, list(net.parameters())))
    assert found[0][0] == found[1][0]
    assert all(map(torch.equal, found[0][1], found[1][1]))


def test_graphs_that_share_a_pool_hand_results_on():
    x = torch.ones(3, device="cuda")
    first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(first, pool=torch.cuda.graph_pool_handle()):
        y = (x + 1).exp()
    with torch.cuda.graph(second, pool=first.pool()):
        z = y * 2
    del y  # the pool still has it
    x.fill_(2)
    first.replay(), second.replay()
    assert first.pool() == second.pool() and torch.equal(z, (x + 1).exp() * 2)


def test_what_the_program_writes_to_a_result_is_there_at_the_next_replay():
    total = None
    x = torch.ones(3, device="cuda")
    first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(first):
        total = x.clone()
    with torch.cuda.graph(second, pool=first.pool()):
        total.add_(x)
    first.replay(), second.replay()
    total.mul_(10)
    second.replay()
    assert torch.equal(total, x * 21)


def test_memory_that_the_program_has_freed_is_named():
    graph, _ = captured(lambda x: x + 1, torch.ones(4, device="cuda"))
    with pytest.raises(RuntimeError, match="uses 16 bytes that the program has freed since the capture"):
        graph.replay()


def test_tensors_of_a_graph_are_counted_while_the_program_has_them():
    x = torch.ones(1 << 20, device="cuda")
    before = torch.cuda.memory_allocated()
    graph, _kept = captured(lambda x: ((x + 1) * 2).sum(), x, warm_up=0)
    torch.cuda.reset_peak_memory_stats()
    graph.replay()
    assert torch.cuda.memory_allocated() == torch.cuda.max_memory_allocated() == before + 512
    assert {block["segment_pool_id"] for block in torch.cuda.memory_snapshot(graph.pool())} == {graph.pool()}


def test_pinned_memory_is_read_and_written_at_each_replay():
    x, there = torch.ones(3).pin_memory(), torch.zeros(3).pin_memory()

    def program():
        y = x.cuda(non_blocking=True) * 2
        there.copy_(y, non_blocking=True)
        return y.to("cpu", non_blocking=True)

    graph, back = captured(program)
    x.fill_(4)
    there.zero_()
    graph.replay()
    torch.cuda.synchronize()
    assert there.tolist() == back.tolist() == [8.0, 8.0, 8.0]


FAILED = "operation failed due to a previous error during capture"
REFUSED = {
    "item": lambda x: x.sum().item(),
    "nonzero": lambda x: x.nonzero(),
    "mask": lambda x: x[x > 0],
    "bool": lambda x: bool(x.sum()),
    "print": repr,
    "synchronize": lambda x: torch.cuda.synchronize(),
    "stream": lambda x: torch.cuda.current_stream().synchronize(),
    "query": lambda x: torch.cuda.current_stream().query(),
    "pinned, blocking": lambda x: x.copy_(torch.ones(4).pin_memory()),
    "a graph inside": lambda x: torch.cuda.graph(torch.cuda.CUDAGraph()).__enter__(),
}


@pytest.mark.parametrize("name", REFUSED)
def test_who_waits_ends_the_capture(name):
    """The words are those of an H200 with torch 2.11, for `item`."""
    x = torch.ones(4, device="cuda")
    last, graph = refused(torch.AcceleratorError, FAILED, lambda: (x.add_(1), REFUSED[name](x)))
    assert "Search for `cudaErrorStreamCaptureInvalidated' in" in str(last)
    first = last.__context__
    assert isinstance(first, torch.AcceleratorError)
    words = "CUDA error: operation not permitted when stream is capturing\n"
    assert str(first).startswith(f"{words}Search for `cudaErrorStreamCaptureUnsupported' in")
    assert torch.equal(x, torch.ones(4, device="cuda"))
    with pytest.raises(RuntimeError, match="capture"):
        graph.replay()


def test_after_an_error_nothing_can_be_captured_any_more():
    x = torch.ones(4, device="cuda")

    def use():
        with pytest.raises(torch.AcceleratorError, match="not permitted when stream is capturing"):
            x.sum().item()
        with pytest.raises(torch.AcceleratorError, match=FAILED):
            x.add_(1)

    refused(torch.AcceleratorError, FAILED, use)


PAGEABLE = {
    "cpu": lambda x: x.cpu(),
    "cuda": lambda x: torch.ones(4).cuda(),
    "numbers": lambda x: torch.tensor([1.0], device="cuda"),
    "copy_": lambda x: x.copy_(torch.ones(4)),
}


@pytest.mark.parametrize("name", PAGEABLE)
def test_pageable_memory_is_refused(name):
    """As on an H200 with torch 2.11, for `cpu`: the error, and a warning that the graph is empty."""
    x = torch.ones(4, device="cuda")
    with pytest.warns(UserWarning, match=r"The CUDA Graph is empty\. This usually means that the graph was attempted "):
        _, graph = refused(RuntimeError, "Cannot copy between CPU and CUDA tensors during", lambda: PAGEABLE[name](x))
    graph.replay()


GENERATORS = {
    "current_seed": lambda: torch.cuda.get_rng_state(),
    "set_current_seed": lambda: torch.cuda.manual_seed(1),
    "get_offset": lambda: torch.cuda.default_generators[0].get_offset(),
}


@pytest.mark.filterwarnings("ignore:The CUDA Graph is empty")
@pytest.mark.parametrize("name", GENERATORS)
def test_a_generator_keeps_its_state_to_itself(name):
    refused(RuntimeError, f"CUDAGeneratorImpl::{name} during CUDA graph capture", GENERATORS[name])


def test_a_capture_needs_a_stream_of_its_own():
    graph, words = torch.cuda.CUDAGraph(), "CUDA graphs must be captured on a non-default stream"
    with pytest.raises(RuntimeError, match=words):
        graph.capture_begin()
    with pytest.raises(RuntimeError, match=words), torch.cuda.graph(graph, stream=torch.cuda.default_stream()):
        pass
    assert not torch.cuda.is_current_stream_capturing()


def test_begin_end_and_reset_in_their_order():
    x, graph = torch.ones(2, device="cuda"), torch.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="capture"):
        graph.replay()
    with pytest.raises(RuntimeError, match=r"Called CUDAGraph::pool\(\) without a preceding successful capture"):
        graph.pool()
    with (
        pytest.raises(RuntimeError, match="Unknown capture error mode"),
        torch.cuda.graph(graph, capture_error_mode="loose"),
    ):
        pass
    with torch.cuda.stream(torch.cuda.Stream()):
        graph.capture_begin(capture_error_mode="thread_local")
        assert torch.cuda.is_current_stream_capturing() and torch.cuda.current_stream().is_capturing()
        y = x * 2
        with torch.cuda.stream(torch.cuda.Stream()):
            assert not torch.cuda.is_current_stream_capturing()
            with pytest.raises(RuntimeError, match="Capture must end on the same stream it began on"):
                graph.capture_end()
        graph.capture_end()
        with pytest.raises(RuntimeError, match="This CUDAGraph instance already owns a captured graph"):
            graph.capture_begin()
    assert not torch.cuda.is_current_stream_capturing()
    graph.replay()
    assert torch.equal(y, x * 2)
    graph.reset()
    with pytest.raises(RuntimeError, match="capture"):
        graph.replay()
    with torch.cuda.graph(graph):
        y = x * 3
    graph.replay()
    assert torch.equal(y, x * 3)


def test_a_graph_that_is_kept_is_instantiated_when_it_is_needed():
    x, graph = torch.ones(2, device="cuda"), torch.cuda.CUDAGraph(keep_graph=True)
    with torch.cuda.graph(graph):
        y = x * 2
    graph.instantiate(), graph.instantiate()
    graph.replay()
    assert torch.equal(y, x * 2)


def test_streams_that_wait_for_the_capture_belong_to_it():
    x, side = torch.ones(4, device="cuda"), torch.cuda.Stream()

    def program(x):
        here = torch.cuda.current_stream()
        side.wait_stream(here)
        with torch.cuda.stream(side):
            y = x * 2
        here.wait_stream(side)
        return y + 1

    graph, y = captured(program, x)
    x.fill_(7)
    graph.replay()
    assert torch.equal(y, x * 2 + 1)


def test_a_stream_that_nobody_waits_for():
    x, side = torch.ones(4, device="cuda"), torch.cuda.Stream()

    def use():
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            x.mul(2)

    refused(torch.AcceleratorError, "capturing stream has unjoined work", use)
    assert not side.is_capturing()


def test_a_stream_that_has_not_joined_computes_at_once():
    x, side, graph = torch.ones(4, device="cuda"), torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x * 2
        with torch.cuda.stream(side):
            x.add_(1)
    assert torch.equal(x, torch.full((4,), 2.0, device="cuda"))
    graph.replay()
    assert torch.equal(y, torch.full((4,), 4.0, device="cuda"))


def test_a_capture_cannot_wait_for_what_it_does_not_have():
    def use():
        torch.cuda.current_stream().wait_stream(torch.cuda.default_stream())

    last, _ = refused(torch.AcceleratorError, FAILED, use)
    assert "dependency created on uncaptured work in another stream" in str(last.__context__)


def test_the_host_cannot_wait_for_an_event_of_a_graph():
    event = torch.cuda.Event()
    last, _ = refused(torch.AcceleratorError, FAILED, lambda: (event.record(), event.synchronize()))
    assert "operation not permitted on an event last recorded in a capturing stream" in str(last.__context__)


@pytest.mark.filterwarnings("ignore:The CUDA Graph is empty")
def test_an_optimizer_that_is_not_capturable():
    parameter = nn.Parameter(torch.ones(2, device="cuda"))
    optimizer = torch.optim.Adam([parameter])
    parameter.grad = torch.ones(2, device="cuda")
    refused(RuntimeError, "Attempting CUDA graph capture of step", optimizer.step)


def test_an_error_of_the_program_ends_the_capture_and_changes_nothing():
    x = torch.ones(2, device="cuda")
    refused(ValueError, "of the program", lambda: (x.add_(1), int("of the program")))
    assert torch.equal(x, torch.ones(2, device="cuda")) and not torch.cuda.is_current_stream_capturing()


NOT_SIMULATED = {
    "copy to a different device": ("copies between devices in a CUDA graph", lambda x, _: x.to("cuda:1")),
    "copy into one": ("copies between devices", lambda x, _: torch.ones(2, device="cuda:1").copy_(x)),
    "replicas": ("copies between devices", lambda x, _: nn.DataParallel(nn.Identity(), [0, 1])(x[:, None])),
    "replay": ("replays of a CUDA graph inside of a capture", lambda x, earlier: earlier.replay()),
    "its nodes": ("raw_cuda_graph", lambda x, earlier: earlier.raw_cuda_graph()),
}


@pytest.mark.filterwarnings("ignore:The CUDA Graph is empty")
@pytest.mark.parametrize("name", NOT_SIMULATED)
def test_what_is_not_simulated_is_refused_by_name(name):
    x = torch.ones(2, device="cuda")
    earlier, _ = captured(lambda x: x + 1, x)
    words, use = NOT_SIMULATED[name]
    refused(NotImplementedError, words, lambda: use(x, earlier))


def test_races_are_not_looked_for_in_graphs():
    x = torch.ones(2, device="cuda")
    earlier, _ = captured(lambda x: x + 1, x)
    words = "CUDA graphs while races are looked for"
    with vgpu.races():
        refused(NotImplementedError, words, lambda: None)
        with pytest.raises(NotImplementedError, match=words):
            earlier.replay()


@pytest.mark.filterwarnings("ignore:The CUDA Graph is empty")
def test_collectives_are_refused_by_name():
    @vgpu.ranks(2)
    def reduced(x):
        x = x.cuda()
        refused(NotImplementedError, "collectives in a CUDA graph", lambda: torch.distributed.all_reduce(x))
        return x.tolist()

    assert reduced(torch.ones(2)) == [[1.0, 1.0]] * 2


def test_ranks_that_are_threads_capture_each_its_own():
    @vgpu.ranks(2)
    def replayed(start):
        x = torch.full((4,), start, device="cuda")
        graph, y = captured(lambda x: x * 2 + torch.rand(4, device="cuda") * 0, x)
        x.add_(1)
        graph.replay()
        return y.tolist()

    assert replayed(3.0) == [[8.0] * 4] * 2


def test_graphs_go_with_the_gpus():
    made = torch.cuda.CUDAGraph
    assert isinstance(made(), torch.cuda.graphs.CUDAGraph) and made.__module__ == "torch.cuda.graphs"
    with torch.cuda.stream(torch.cuda.Stream()):
        made().capture_begin()
    vgpu.disable()
    assert torch.cuda.CUDAGraph is torch.cuda.graphs.CUDAGraph is not made
    vgpu.enable(1)
    _, y = captured(lambda x: x + 1, torch.ones(2, device="cuda").requires_grad_())
    assert not torch.cuda.is_current_stream_capturing() and y.requires_grad
