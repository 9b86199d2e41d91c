from dataclasses import asdict

import pytest
import torch

from frcnn_lite.detection import FasterRCNN, FasterRCNNConfig
from frcnn_lite.engine import CheckpointError, build_model, load_weights, save_weights
from frcnn_lite.engine.checkpoint import save_checkpoint


def test_half_precision_is_half_the_size_and_close(tmp_path):
    model = build_model(FasterRCNNConfig(head_width=64), seed=1)
    save_weights(model, tmp_path / "half.pt")
    save_weights(model, tmp_path / "full.pt", half=False)
    assert (tmp_path / "half.pt").stat().st_size < 0.55 * (tmp_path / "full.pt").stat().st_size
    half, full = load_weights(tmp_path / "half.pt"), load_weights(tmp_path / "full.pt")
    assert half.config == full.config == model.config and not half.training
    for name, tensor in model.state_dict().items():
        assert torch.equal(full.state_dict()[name], tensor)
        assert half.state_dict()[name].dtype == tensor.dtype
        torch.testing.assert_close(half.state_dict()[name], tensor, rtol=1e-3, atol=1e-6)


def test_an_existing_file_is_kept(tmp_path):
    (tmp_path / "mine.pt").write_bytes(b"mine")
    with pytest.raises(FileExistsError, match=r"mine\.pt exists already"):
        save_weights(build_model(FasterRCNNConfig(), seed=0), tmp_path / "mine.pt")
    assert (tmp_path / "mine.pt").read_bytes() == b"mine"


def test_other_files_are_refused(tmp_path):
    torch.save({"format": 1, "step": 3, "trainer": {}}, tmp_path / "run.pt")
    with pytest.raises(CheckpointError, match=r"run\.pt holds no weights"):
        load_weights(tmp_path / "run.pt")
    model = build_model(FasterRCNNConfig(), seed=0)
    save_weights(model, tmp_path / "a.pt")
    state = torch.load(tmp_path / "a.pt", weights_only=True)
    torch.save({**state, "config": {**state["config"], "head_width": 8}}, tmp_path / "b.pt")
    with pytest.raises(
        CheckpointError, match=r"b\.pt holds weights of a different model: of a different shape: box_head.*and 1 more"
    ):
        load_weights(tmp_path / "b.pt")
    torch.save({**state, "config": 5}, tmp_path / "c.pt")
    with pytest.raises(CheckpointError, match=r"c\.pt is not a checkpoint"):
        load_weights(tmp_path / "c.pt")


def _on_meta_alone(make):
    def checked(model, config):
        assert torch.get_default_device().type == "meta"
        make(model, config)

    return checked


@pytest.mark.parametrize("width", [300_000, 10**8])
def test_a_small_file_that_says_it_is_large_is_refused_before_memory_is_asked_for(tmp_path, width, monkeypatch):
    model = build_model(FasterRCNNConfig(), seed=0)
    monkeypatch.setattr(FasterRCNN, "__init__", _on_meta_alone(FasterRCNN.__init__))
    config = {**asdict(model.config), "head_width": width}
    save_checkpoint(tmp_path / "large.pt", {"config": config, "weights": model.state_dict()})
    with pytest.raises(CheckpointError, match=r"large\.pt holds weights of a different model"):
        load_weights(tmp_path / "large.pt")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_refused_by_name(tmp_path, value):
    model = build_model(FasterRCNNConfig(), seed=0)
    name, parameter = next(iter(model.named_parameters()))
    parameter.data.view(-1)[0] = value
    save_weights(model, tmp_path / "w.pt")
    with pytest.raises(CheckpointError, match=rf"w\.pt holds weights that are not finite: {name}$"):
        load_weights(tmp_path / "w.pt")
