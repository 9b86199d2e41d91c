"""One stream of random numbers per device."""

import threading

import pytest
import torch

pytestmark = pytest.mark.usefixtures("gpus")


def draw(device: str) -> list[float]:
    return torch.randn(3, device=device).tolist()


def test_one_seed_for_all_devices():
    torch.manual_seed(5)
    first = [draw(d) for d in ("cuda:0", "cuda:1", "cpu")]
    torch.manual_seed(5)
    assert [draw(d) for d in ("cuda:0", "cuda:1", "cpu")] == first
    assert draw("cuda:0") != first[0]


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
