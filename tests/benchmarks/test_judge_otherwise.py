"""A run is judged in every way."""

import dataclasses

from judge_otherwise import main

from frcnn_lite.detection import FasterRCNNConfig
from frcnn_lite.engine import TrainConfig, train


def test_a_run_is_judged_in_every_way(tmp_path, monkeypatch, capsys):
    config = TrainConfig(steps=1, batch_size=2, image_size=64, train_images=2, test_images=2)
    config = dataclasses.replace(config, model=FasterRCNNConfig(widths=(8, 8, 8), blocks=(0, 0, 0), head_width=8))
    train(config, tmp_path / "run")
    monkeypatch.setattr("sys.argv", ["judge_otherwise.py", str(tmp_path / "run")])
    main()
    rows = capsys.readouterr().out.splitlines()
    assert [row.split("|")[1].strip() for row in rows[2:5]] == ["as it is", "twice the proposals", "mirrored too"]
    assert all(len(row.split("|")) == 7 for row in rows), "a table"
