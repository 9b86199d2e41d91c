import pytest
import torch

from frcnn_lite.detection import FasterRCNNConfig
from frcnn_lite.engine import CheckpointError, build_model, load_weights, save_weights


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
    with pytest.raises(CheckpointError, match=r"b\.pt holds weights of another model"):
        load_weights(tmp_path / "b.pt")
