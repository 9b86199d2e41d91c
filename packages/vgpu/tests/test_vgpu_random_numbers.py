"""With `random="cuda"`: the numbers that a real GPU drew, and what must hold where none were recorded."""

import ctypes
import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
import vgpu_ranks
from torch import nn

import vgpu
from vgpu.machine import distributions, philox, rng
from vgpu.operators import drawing as operators

FACTS = json.loads((Path(__file__).parent / "hardware" / "random_numbers.json").read_text(encoding="utf-8"))
LARGE = 50_000  # of numbers: rows above take seconds and come with the long tests

#: Rows without a hash equal the card's to rounding, because these steps are approximations of its hardware.
TO_ROUNDING = {
    "randn": "sine, cosine and logarithm",
    "normal": "sine, cosine and logarithm",
    "log_normal_": "sine, cosine, logarithm and exponential",
    "exponential_": "logarithm",
    "gumbel_softmax": "logarithm",
    "cauchy_": "tangent",
    "trunc_normal_": "sine, cosine and logarithm",
    "orthogonal_": "sine, cosine and logarithm, and the library that factorises",
    "geometric_": "two logarithms, whose quotient is rounded up",
    "poisson": "exponential, up to which products are counted",
    "multinomial": "logarithm of the numbers, or sums of the weights, that decide the order",
}


@pytest.fixture
def drawing() -> Iterator[None]:
    with vgpu.virtual_gpus(2, profile="h200", random="cuda"):
        yield


def draw(program: str, seed: int = 0) -> torch.Tensor:
    torch.manual_seed(seed)
    return eval(program, {"torch": torch, "F": F, "nn": nn, "C": "cuda"}).flatten().cpu()


def check(row: dict) -> None:
    if "trunc_normal_" in row["program"] and not torch.__version__.startswith("2.11"):
        pytest.skip(
            "the card ran torch 2.11, whose trunc_normal_ draws uniform numbers; later ones draw normal numbers"
        )
    numbers = draw(row["program"], row["seed"])
    assert torch.cuda.default_generators[0].get_offset() == row["offset"]
    assert len(numbers) == row["numbers"]
    if "sha256" in row:
        content = ctypes.string_at(numbers.data_ptr(), numbers.nbytes)
        assert hashlib.sha256(content).hexdigest()[:16] == row["sha256"]
        return
    assert any(step in row["program"] for step in TO_ROUNDING)
    few, last = len(row["first"]), len(row["last"])
    found = torch.cat([numbers[:few], numbers[-last:]])
    expected = torch.tensor(row["first"] + row["last"], dtype=found.dtype)
    tolerance = 1e-2 if found.dtype in (torch.float16, torch.bfloat16) else 1e-5
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=2e-6)


@pytest.mark.parametrize("row", [r for r in FACTS["rows"] if r["numbers"] <= LARGE], ids=lambda row: row["program"])
@pytest.mark.usefixtures("drawing")
def test_a_program_draws_what_the_card_drew(row):
    check(row)


@pytest.mark.long
@pytest.mark.parametrize("row", [r for r in FACTS["rows"] if r["numbers"] > LARGE], ids=lambda row: row["program"])
@pytest.mark.usefixtures("drawing")
def test_a_program_draws_as_much_as_the_card_drew(row):
    check(row)


@pytest.mark.usefixtures("drawing")
def test_numbers_of_several_rounds_of_the_grid():
    """The quicker form of the test above: a whole grid, the words after the first, and a second round."""
    names = ("torch.rand(600000, device=C, dtype=torch.float64)", "torch.randperm(100000, device=C)")
    rows = [row for row in FACTS["rows"] if row["program"] in names or "600000, device=C), 0.3" in row["program"]]
    assert len(rows) == 3
    for row in rows:
        check(row)


def test_the_numbers_of_a_gpu_are_a_choice(gpus):
    assert rng.chosen() == "cpu"
    by_default = draw("torch.rand(5, device=C)", seed=3)
    with vgpu.virtual_gpus(4, random="cuda"):
        assert not draw("torch.rand(5, device=C)", seed=3).equal(by_default)
    assert rng.chosen() == "cpu"
    assert draw("torch.rand(5, device=C)", seed=3).equal(by_default)


def test_whose_numbers_there_are():
    with pytest.raises(ValueError, match="random must be one of cpu, cuda, got 'numpy'"):
        vgpu.enable(1, random="numpy")


class TestOfTheMachine:
    """What the numbers depend on: the device's generator and the size of its grid."""

    def test_the_grid_is_that_of_the_profile(self):
        for profile, threads in (("t4", 40 * 1024), ("rtx4090", 128 * 1536), ("h200", 132 * 2048)):
            with vgpu.virtual_gpus(1, profile=profile, random="cuda"):
                assert philox.grid(10**6).threads == threads
                many, few = draw("torch.rand(300_000, device=C)"), draw("torch.rand(5, device=C)")
            second = distributions.unit(philox.words(0, 0, 1)[1])
            assert many[:5].equal(few) and many[threads] == second

    def test_without_a_profile_it_is_that_of_an_h200(self):
        with vgpu.virtual_gpus(1, random="cuda"):
            assert philox.grid(10**6).threads == 132 * 2048

    @pytest.mark.usefixtures("drawing")
    def test_each_device_has_its_stream_and_leaves_that_of_the_cpu_alone(self):
        torch.manual_seed(1)
        first, second = torch.rand(4, device="cuda:0"), torch.rand(4, device="cuda:0")
        other = torch.rand(4, device="cuda:1")
        after = torch.rand(4)
        assert first.cpu().equal(other.cpu()) and not first.equal(second)
        torch.manual_seed(1)
        F.dropout(torch.ones(9, device="cuda:0")), torch.randperm(9, device="cuda:0")
        torch.multinomial(torch.ones(9, device="cuda:0"), 2), torch.rand_like(first)
        assert torch.rand(4).equal(after)

    @pytest.mark.usefixtures("drawing")
    def test_a_state_is_seed_and_offset_and_can_be_gone_back_to(self):
        torch.cuda.manual_seed(7)
        torch.rand(3_000_000, device="cuda"), torch.randperm(5, device="cuda")
        kept = torch.cuda.get_rng_state()
        assert kept.tolist() == [7, *[0] * 7, 12 + 4 + 8, *[0] * 7]
        drawn = torch.randn(9, device="cuda")
        torch.cuda.set_rng_state(kept)
        assert torch.randn(9, device="cuda").equal(drawn)
        own = torch.Generator("cuda").manual_seed(7)
        own.set_offset(24)
        assert torch.randn(9, device="cuda", generator=own).equal(drawn)

    def test_spawned_children_draw_them_too(self):
        with vgpu.virtual_gpus(1, random="cuda"):
            context = torch.multiprocessing.get_context("spawn")
            queue = context.SimpleQueue()
            child = context.Process(target=vgpu_ranks.one_number, args=(queue,))
            child.start()
            assert queue.get() == draw("torch.rand(1, device=C)").item()
            child.join(60)

    def test_the_command_line_and_the_programs_below_it(self, tmp_path):
        inner = "import torch; torch.manual_seed(0); print(torch.randint(10, (4,), device='cuda').tolist())"
        (tmp_path / "outer.py").write_text(
            f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {inner!r}])\n"
        )
        command = [sys.executable, "-m", "vgpu", "--gpus", "1", "--random", "cuda", "outer.py"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600)
        assert done.stdout == "[1, 7, 1, 2]\n", done.stderr

    def test_the_plugin(self, tmp_path):
        (tmp_path / "test_it.py").write_text(
            "import torch\n\n"
            "def test_session():\n"
            "    torch.manual_seed(0)\n"
            "    assert torch.randint(10, (4,), device='cuda').tolist() == [1, 7, 1, 2]\n"
        )
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--vgpus", "1"]
        done = subprocess.run([*command, "--vgpus-random", "cuda"], cwd=tmp_path, capture_output=True, text=True)
        assert "1 passed" in done.stdout, done.stdout


@pytest.mark.usefixtures("drawing")
class TestOfTheOperators:
    """What must hold of any numbers."""

    def test_elements_are_filled_in_the_order_of_memory(self):
        row = draw("torch.rand(35, device=C)")
        assert draw("torch.empty(7, 5, device=C).t().uniform_()").view(5, 7).t().flatten().equal(row)
        assert draw("torch.empty(2, 7, 5, device=C)[:, :, ::5].uniform_()").equal(draw("torch.rand(14, device=C)"))
        whole = "torch.empty(1, 5, 7, 1, device=C).to(memory_format=torch.channels_last)"
        assert draw(f"torch.rand_like({whole})").view(5, 7).t().flatten().equal(row)

    def test_dropout_is_one_operator_with_one_mask(self):
        x = torch.ones(4000, device="cuda", requires_grad=True)
        for train in (torch.enable_grad, torch.inference_mode):
            torch.manual_seed(0)
            with train():
                out = F.dropout(x, 0.25)
            assert out.unique().tolist() == pytest.approx([0, 4 / 3]) and abs(out.mean() - 1) < 0.05
            assert out.cpu().equal(draw("F.dropout(torch.ones(4000, device=C), 0.25)"))
        out = F.dropout(x, 0.25)
        out.sum().backward()
        assert x.grad.equal(out.detach())

    def test_where_dropout_decides_nothing_nothing_is_drawn(self):
        torch.manual_seed(0)
        x = torch.ones(9, device="cuda")
        assert F.dropout(x, 0.0).equal(x) and F.dropout(x, 0.5, training=False).equal(x)
        assert F.dropout(x, 1.0).sum() == 0 and F.dropout(x[:0], 0.5).numel() == 0
        assert torch.rand(0, device="cuda").numel() == torch.randperm(0, device="cuda").numel() == 0
        assert torch.cuda.default_generators[0].get_offset() == 0

    @pytest.mark.parametrize(
        ("width", "program"),
        [
            (4, "torch.ones(8, device=C)"),
            (2, "torch.ones(6, device=C)"),
            (1, "torch.ones(7, device=C)"),
            (8, "torch.ones(8, device=C, dtype=torch.half)"),
            (2, "torch.ones(8, device=C, dtype=torch.float64)"),
            (2, "torch.ones(10, device=C)[2:]"),
            (1, "torch.ones(9, device=C)[1:]"),
            (1, "torch.ones(8, 2, device=C)[:, 0]"),
        ],
    )
    def test_a_thread_of_dropout_has_the_elements_that_it_loads_at_once(self, width, program):
        kept = draw(f"F.dropout({program}, 0.5)") != 0
        words = [distributions.unit(word) for word in philox.words(0, 0, 8)]
        second = [distributions.unit(word) for word in philox.words(0, 4, 8)]
        of_thread = torch.stack([*words, *second], 1)[:, :width].flatten()[: len(kept)]
        assert kept.equal(of_thread < 0.5)

    def test_attention_drops_by_one_number_for_each_pair_of_query_and_key(self):
        """The kernel's source says so; no hardware was asked."""
        made = [torch.ones(2, 3, 4, 8, device="cuda", requires_grad=True) for _ in range(3)]
        torch.manual_seed(2**64 - 5)
        out = F.scaled_dot_product_attention(*made, dropout_p=0.5)
        assert torch.cuda.default_generators[0].get_offset() == 2 * 3 * 4 * 4
        numbers = distributions.unit(philox.sequence(2**64 - 5, 0, 96)).view(2, 3, 4, 4)
        kept = (numbers > 0.5).float() / 4 / 0.5
        torch.testing.assert_close(out[..., 0].detach().cpu(), kept.sum(-1))
        out[..., 0].sum().backward()
        torch.testing.assert_close(made[2].grad[..., 0].cpu(), kept.sum(-2))

    def test_a_permutation_has_every_number_once(self):
        for n in (1, 2, 3, 33, 257, 25_000):
            for seed in range(12):
                assert draw(f"torch.randperm({n}, device=C)", seed).sort()[0].equal(torch.arange(n))
        assert draw("torch.randperm(9, device=C, dtype=torch.int32)").dtype == torch.int32

    def test_equal_keys_are_shuffled_among_themselves(self):
        assert list(operators._islands(torch.tensor([1, 1, 4, 7, 7, 7]))) == [(0, 2), (3, 3)]
        orders = set()
        for seed in range(40):
            part = torch.arange(3)
            operators._shuffle(part, seed, 4, thread=5)
            orders.add(tuple(part.tolist()))
        assert len(orders) == 6

    def test_samples_follow_their_weights(self):
        weights = torch.tensor([[1.0, 0, 3], [0, 0, 2]], device="cuda")
        many = torch.multinomial(weights, 4000, replacement=True)
        assert many.shape == (2, 4000) and set(many[0].tolist()) == {0, 2} and set(many[1].tolist()) == {2}
        assert abs(many[0].eq(2).float().mean() - 0.75) < 0.05
        assert torch.multinomial(weights.half(), 1).shape == (2, 1)
        assert sorted(torch.multinomial(weights[0], 2).tolist()) == [0, 2]

    def test_moments(self):
        assert abs(torch.poisson(torch.full((4000,), 20.0, device="cuda")).mean() - 20) < 0.5
        assert abs(torch.poisson(torch.full((400,), 100.0, device="cuda")).mean() - 100) < 3
        mean, std = torch.tensor([0.0, 5], device="cuda"), torch.tensor([[1.0], [2]], device="cuda")
        assert torch.normal(mean, std).shape == (2, 2)
        assert abs(torch.normal(3.0, torch.full((4000,), 2.0, device="cuda")).std() - 2) < 0.2
        for overload in (torch.rand_like, torch.randn_like, lambda x: torch.randint_like(x, 4)):
            assert overload(torch.ones(2, 3, device="cuda", dtype=torch.half)).dtype == torch.half
        assert torch.randint_like(mean, 3, 4).tolist() == [3, 3]
        assert torch.binomial(torch.full((3,), 5.0, device="cuda"), torch.full((3,), 0.4, device="cuda")).max() <= 5

    @pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool])
    def test_integers_reach_the_ends_of_what_a_dtype_holds(self, dtype):
        drawn = torch.empty(20_000, dtype=dtype, device="cuda").random_()
        most = 1 if dtype == torch.bool else torch.iinfo(dtype).max
        assert drawn.min() >= 0 and drawn.double().max() > 0.99 * most
        if dtype == torch.int64:
            whole = drawn.random_(-(2**63), None)
            assert whole.min() < -(2**62) and whole.max() > 2**62

    @pytest.mark.parametrize("dtype", [torch.half, torch.bfloat16, torch.float32])
    @pytest.mark.filterwarnings("ignore:to - 1 is out of bounds")
    def test_integers_of_floating_dtypes_stay_in_their_range(self, dtype):
        largest = int(2 / torch.finfo(dtype).eps)
        drawn = torch.empty(20_000, dtype=dtype, device="cuda").random_()
        assert drawn.min() >= 0 and 0.9 * largest < drawn.max() <= largest
        drawn.random_(0, 2 * largest - 1)
        assert drawn.max() < 2 * largest - 1

    @pytest.mark.parametrize("span", [10, 2**28 + 3, 2**62 - 1, 2**62 + 5, 2**63, 2**63 + 9, 2**64 - 1, 2**64])
    def test_unsigned_rests(self, span):
        numbers = torch.tensor([0, 1, -1, -(2**63), 2**63 - 1, 2**62 + 77, -(2**62) + 3])
        expected = [(n % 2**64) % span for n in numbers.tolist()]
        assert [n % 2**64 for n in distributions._modulo(numbers, span).tolist()] == expected

    @pytest.mark.parametrize(
        ("program", "message"),
        [
            ("torch.empty(3, device=C).uniform_(2, 1)", "uniform_ expects to return a"),
            ("torch.empty(3, device=C).exponential_(0)", "exponential_ expects lambda > 0.0"),
            ("torch.empty(3, device=C, dtype=torch.long).random_(5, 5)", "'from' to be less than 'to'"),
            ("torch.multinomial(torch.ones(3, device=C), 4)", "cannot sample n_sample > prob_dist"),
            ("torch.rand(3, device=C, generator=torch.Generator())", "Expected a 'cuda' device type for generator"),
            ("torch.ones(1, device=C).expand(3).uniform_()", "more than one element of the written-to tensor"),
        ],
    )
    def test_bad_arguments_are_refused_as_ever(self, program, message):
        with pytest.raises(RuntimeError, match=message):
            draw(program)

    @pytest.mark.parametrize(
        ("program", "message"),
        [
            ("torch.bernoulli(torch.full((3,), 2.0, device=C))", "p_in"),
            ("torch.poisson(torch.full((3,), -1.0, device=C))", "invalid Poisson rate"),
        ],
    )
    def test_what_a_kernel_refuses_fails_late_or_by_choice_early(self, program, message):
        with vgpu.virtual_gpus(1, random="cuda", errors="early"), pytest.raises(RuntimeError, match=message):
            draw(program)
        with pytest.raises(torch.AcceleratorError, match="device-side assert triggered"):
            draw(program)
