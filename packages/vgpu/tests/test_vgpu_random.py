"""One stream of random numbers per device."""

import copy
import pickle
import threading

import pytest
import torch
import torch.utils.checkpoint

pytestmark = pytest.mark.usefixtures("gpus")


def draw(device: str) -> list[float]:
    return torch.randn(3, device=device).tolist()


def test_one_seed_for_all_devices():
    torch.manual_seed(5)
    first = [draw(d) for d in ("cuda:0", "cuda:1", "cpu")]
    torch.manual_seed(5)
    assert [draw(d) for d in ("cuda:0", "cuda:1", "cpu")] == first
    assert draw("cuda:0") != first[0]


@pytest.mark.parametrize("seed", [0, 5, 2**63, -1])
def test_all_gpus_draw_the_same_numbers_from_a_seed_and_the_cpu_others(seed):
    torch.manual_seed(seed)
    host, first, second = (torch.rand(5, device=d).cpu() for d in ("cpu", "cuda:0", "cuda:1"))
    assert first.equal(second) and not (first == host).any()
    torch.manual_seed(seed)
    masks = [torch.nn.functional.dropout(torch.ones(64, device=d)).cpu() for d in ("cpu", "cuda:0", "cuda:1")]
    assert masks[1].equal(masks[2]) and not masks[0].equal(masks[1])


def test_devices_do_not_disturb_each_other():
    torch.manual_seed(5)
    alone = draw("cuda:2")
    torch.manual_seed(5)
    draw("cuda:1"), draw("cpu"), torch.nn.functional.dropout(torch.ones(9, device="cuda:3"))
    assert draw("cuda:2") == alone
    torch.manual_seed(5)
    host = draw("cpu")
    torch.manual_seed(5)
    draw("cuda:0"), torch.nn.functional.dropout(torch.ones(9, device="cuda:3"))
    assert draw("cpu") == host


def test_seeding_one_device():
    torch.cuda.manual_seed_all(1)
    first = draw("cuda:1")
    with torch.cuda.device(1):
        torch.cuda.manual_seed(1)
    assert draw("cuda:1") == first
    assert draw("cuda:0") == first
    assert torch.cuda.initial_seed() == 1


def test_states_can_be_saved():
    state = torch.cuda.get_rng_state(2)
    first = draw("cuda:2")
    torch.cuda.set_rng_state(state, 2)
    assert draw("cuda:2") == first
    with torch.random.fork_rng(devices=[2]):
        draw("cuda:2")
    assert len(torch.cuda.get_rng_state_all()) == 4


def test_a_state_that_map_location_has_put_on_a_gpu_is_refused():
    state = torch.get_rng_state()
    generators = torch.Generator().set_state, torch.Generator("cuda").set_state
    for set_state in (torch.set_rng_state, torch.random.set_rng_state, torch.cuda.set_rng_state, *generators):
        with pytest.raises(TypeError, match=r"RNG state must be a torch\.ByteTensor"):
            set_state(state.cuda())
    with pytest.raises(TypeError, match=r"expected a torch\.ByteTensor, but got list"):
        torch.set_rng_state(state.tolist())


def test_generators_of_ones_own():
    generator = torch.Generator("cuda:1").manual_seed(3)
    assert generator.device == torch.device("cuda:1") and isinstance(generator, torch.Generator)
    assert isinstance(torch.default_generator, torch.Generator)
    first = torch.randn(2, device="cuda:1", generator=generator).tolist()
    before = torch.cuda.get_rng_state(1)
    generator.manual_seed(3)
    assert torch.randn(2, device="cuda:1", generator=generator).tolist() == first
    assert torch.equal(torch.cuda.get_rng_state(1), before)


def test_threads_draw_from_their_own_device():
    torch.manual_seed(7)
    expected = {k: torch.nn.functional.dropout(torch.ones(64, device=f"cuda:{k}")).tolist() for k in range(4)}
    torch.manual_seed(7)
    found: dict[int, list[float]] = {}

    def work(k: int) -> None:
        found[k] = torch.nn.functional.dropout(torch.ones(64, device=f"cuda:{k}")).tolist()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == expected


def test_tensors_without_values_are_drawn_on_as_before():
    """Layers are initialised on the meta device, too; the check of generators must let that pass."""
    layer = torch.nn.Linear(3, 4, device="meta")
    assert layer.weight.is_meta and torch.empty(3, device="meta").uniform_().is_meta


class TestStateOfPhilox:
    """CUDA's generators have 16 bytes of state, and programs read and set the two halves."""

    def test_its_bytes_are_seed_and_offset(self):
        torch.cuda.manual_seed_all(7)
        draw("cuda:1"), draw("cuda:1")
        state = torch.cuda.get_rng_state(1)
        assert state.tolist() == [7, *[0] * 7, 8, *[0] * 7] and state.dtype == torch.uint8
        assert torch.cuda.default_generators[1].get_offset() == 8
        assert torch.cuda.default_generators[0].get_offset() == 0

    def test_any_offset_can_be_drawn_from_again(self):
        generator = torch.Generator("cuda:2").manual_seed(3)
        first, second = (torch.rand(4, device="cuda:2", generator=generator) for _ in range(2))
        generator.set_offset(4)
        assert torch.rand(4, device="cuda:2", generator=generator).equal(second) and not first.equal(second)
        twin = generator.clone_state()
        kept = generator.graphsafe_get_state()
        after = torch.rand(4, device="cuda:2", generator=generator)
        assert torch.rand(4, device="cuda:2", generator=twin).equal(after)
        generator.graphsafe_set_state(kept)
        assert torch.rand(4, device="cuda:2", generator=generator).equal(after)
        with pytest.raises(RuntimeError, match="offset must be a multiple of 4"):
            generator.set_offset(3)
        with pytest.raises(RuntimeError, match="RNG state is wrong size"):
            generator.set_state(torch.zeros(5056, dtype=torch.uint8))

    def test_what_generators_of_the_cpu_have_is_as_before(self):
        generator = torch.Generator().manual_seed(3)
        assert len(generator.get_state()) == 5056 and generator.initial_seed() == 3
        with pytest.raises(RuntimeError, match="does not use offset"):
            generator.get_offset()

    def test_forks_and_activation_checkpoints_replay(self):
        layer, x = torch.nn.Dropout(0.5), torch.ones(256, device="cuda:3", requires_grad=True)

        def block(t):
            torch.rand(3, device="cuda:3")
            return layer(layer(t))

        for reentrant in (True, False):
            x.grad = None
            out = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=reentrant)
            out.sum().backward()
            assert x.grad.equal(out.detach()), "the masks of the recomputation are those of the forward pass"
        before = torch.cuda.get_rng_state(3)
        with torch.random.fork_rng(devices=[3]):
            draw("cuda:3")
        assert torch.cuda.get_rng_state(3).equal(before)

    def test_operators_one_after_the_other_draw_independent_numbers(self):
        rows = torch.stack([torch.rand(4096, device="cuda") for _ in range(64)]).cpu()
        rows = torch.cat([rows, torch.rand(1, 4096, device="cuda", generator=torch.Generator("cuda")).cpu()])
        assert len({tuple(row.tolist()) for row in rows}) == 65
        assert torch.corrcoef(rows).fill_diagonal_(0).abs().max() < 0.1  # 1 / 64 is one standard deviation
        assert abs(rows.mean() - 0.5) < 0.005


@pytest.mark.parametrize("device", ["cuda", "cuda:1", "cpu"])
def test_a_generator_says_what_it_was_made_for_and_is_copied_and_pickled_so(device):
    one = torch.Generator(device).manual_seed(5)
    torch.rand(3, device=device, generator=one)
    for twin in (pickle.loads(pickle.dumps(one)), copy.deepcopy(one), one.clone_state(), one.graphsafe_get_state()):
        assert str(twin.device) == device and type(twin).__name__ == "Generator" and twin.initial_seed() == 5
        assert twin.get_state().equal(one.get_state())
    drawn = [torch.rand(4, device=device, generator=g) for g in (one, twin)]
    assert drawn[0].equal(drawn[1])
