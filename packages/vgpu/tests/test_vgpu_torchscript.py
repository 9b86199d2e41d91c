"""TorchScript: script modules move, and come back from a file to the devices that it names."""

import io
import warnings

import pytest
import torch
from torch import nn

pytestmark = [pytest.mark.usefixtures("gpus"), pytest.mark.filterwarnings("ignore:.*torch.jit:FutureWarning")]


class TwoPlaces(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.near, self.far = nn.Linear(3, 3).to("cuda:0"), nn.Linear(3, 3).to("cuda:2")
        self.register_buffer("shift", torch.ones(3, device="cuda:2"))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.far(self.near(x).to(self.shift.device)) + self.shift


@pytest.fixture
def scripted():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.script(TwoPlaces())


def places(module: nn.Module) -> dict[str, str]:
    return {name: str(value.device) for name, value in module.state_dict().items()}


def test_a_file_brings_every_tensor_back_where_it_was(scripted, tmp_path):
    torch.jit.save(scripted, tmp_path / "module.pt")
    loaded = torch.jit.load(tmp_path / "module.pt")
    expected = {"near.weight": "cuda:0", "near.bias": "cuda:0"}
    expected |= {"far.weight": "cuda:2", "far.bias": "cuda:2", "shift": "cuda:2"}
    assert places(loaded) == places(scripted) == expected
    x = torch.randn(2, 3, device="cuda:0")
    out = loaded(x)
    assert out.device == torch.device("cuda:2") and torch.equal(out, scripted(x))
    out.sum().backward()
    assert {str(p.grad.device) for p in loaded.near.parameters()} == {"cuda:0"}


@pytest.mark.parametrize("location", ["cuda:1", torch.device("cuda:1"), "cuda", "cpu"])
def test_map_location(location, tmp_path):
    traced = torch.jit.trace(nn.Linear(3, 3), torch.ones(1, 3))
    torch.jit.save(traced, tmp_path / "module.pt")
    with torch.cuda.device(1):
        loaded = torch.jit.load(tmp_path / "module.pt", map_location=location)
        expected = "cpu" if location == "cpu" else "cuda:1"
        assert set(places(loaded).values()) == {expected}
        assert str(loaded(torch.ones(1, 3, device=expected)).device) == expected


def test_a_device_that_is_not_there(scripted):
    file = io.BytesIO()
    torch.jit.save(scripted, file)
    file.seek(0)
    with pytest.raises(RuntimeError):
        torch.jit.load(file, map_location="cuda:7")
    with pytest.raises(ValueError, match=r"nowhere\.pt does not exist"):
        torch.jit.load("nowhere.pt")


def test_a_script_module_moves(scripted):
    scripted.cpu()
    assert set(places(scripted).values()) == {"cpu"}
    scripted.cuda(3)
    kept = next(scripted.parameters())
    scripted.double()
    assert set(places(scripted).values()) == {"cuda:3"} and kept.dtype is torch.float64, "the optimizer's parameter"
    assert scripted(torch.ones(1, 3, device="cuda:3", dtype=torch.float64)).requires_grad


def test_constructors_that_are_replaced_can_be_compiled(gpus):
    @torch.jit.script
    def shifted(x: torch.Tensor) -> torch.Tensor:
        return x + torch.tensor(1) + torch.as_tensor(2.0) + torch.ones_like(x) + torch.full([2], 3.0, device=x.device)

    assert shifted(torch.ones(2)).tolist() == [8, 8]
    on_gpu = shifted(torch.ones(2, device=gpus[1]))
    assert on_gpu.device == gpus[1] and on_gpu.tolist() == [8, 8]
