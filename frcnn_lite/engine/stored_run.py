"""A trained detector to use: from the directory of its run, or from one file that was handed on."""

from pathlib import Path
from typing import Any, NamedTuple

import torch
from PIL import Image

from frcnn_lite.data import Letterbox, read_image
from frcnn_lite.detection import FasterRCNN
from frcnn_lite.engine.checkpoint import CheckpointError, load_checkpoint
from frcnn_lite.engine.config import TrainConfig
from frcnn_lite.engine.predict import Prediction, draw_boxes, predict
from frcnn_lite.engine.runs import RunDirectory
from frcnn_lite.engine.weights import model_with
from frcnn_lite.whole_file import whole_file


class Run(NamedTuple):
    """A run as it was read from its directory or file. Called with a picture, it finds what is there.

    Attributes:
        config: how it was trained.
        model: the detector, in eval mode, on the CPU; `run.model.to(device)` decides where it computes.
        step: how many steps it was trained for.
        history: its log, a record for each step; a file has none.
    """

    config: TrainConfig
    model: FasterRCNN
    step: int
    history: list[dict[str, Any]]

    @property
    def letterbox(self) -> Letterbox | None:
        """The canvas on which pictures are shown, as in training; None for digits, which are found at any size."""
        return None if self.config.data == "digits" else Letterbox(*self.config.image_size)

    def __call__(self, image: str | Path | Image.Image, *, min_score: float = 0.5) -> list[dict[str, Any]]:
        """Find objects in one picture of any size, which is shown to the detector as in training.

        Args:
            image: an image file, or RGB such as `read_image` gives.
            min_score: the least score of an object that counts as found, 0..1.

        Returns:
            Best first, a dict for each object: "label" by name, "score", and "box", xyxy in pixels of the picture.

        Raises:
            FileNotFoundError, ValueError: the image cannot be read.
        """
        picture = image if isinstance(image, Image.Image) else read_image(image)
        found = predict(self.model, picture, min_score=min_score, letterbox=self.letterbox)
        return found.objects(self.config.class_names)


def load_run(path: str | Path, *, best: bool = False) -> Run:
    """A run as it was at its last checkpoint, or when it was judged best, or as it was exported.

    Args:
        path: the directory of the run, or a file of `export`, or of `save_weights` with `run`.
        best: take the best weights of a directory in place of the last ones.

    Raises:
        FileNotFoundError: there is no run.
        ValueError: `best` is asked of a file.
        CheckpointError: its checkpoint is damaged or was never written, or the file says nothing of its run.
    """
    if Path(path).is_file():
        if best:
            raise ValueError(f"`best` must be False for a file, which holds one detector: {path}")
        return _read_run(Path(path), None, RunDirectory(Path(path).parent))
    run = RunDirectory.open(path)
    return _read_run(run.best_file if best else run.checkpoint_file, run.read_config(), run)


def _read_run(file: Path, config: TrainConfig | None, run: RunDirectory) -> Run:
    """The run of a file of weights; without `config` the file says how it was trained, and has no log."""
    state = load_checkpoint(file)
    try:
        weights, step = state["weights"] if "weights" in state else _trained(state["trainer"]), state["step"]
        told = config or TrainConfig.from_json(state["data"]["run"])
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        what = "the checkpoint of a run" if config else "of a run: it does not say which classes and canvas it is for"
        raise CheckpointError(f"{file} is not {what}") from error
    require_step(step, told, file)
    return Run(told, model_with(told.model, weights, file), step, run.read_log(before_step=step) if config else [])


def require_step(step: int, config: TrainConfig, file: Path) -> None:
    """Raises CheckpointError when a run of this configuration cannot have taken so many steps."""
    if not 0 <= step <= config.steps:
        raise CheckpointError(f"{file} is not a checkpoint of this run: it is of step {step} of {config.steps}")


def _trained(trainer: dict[str, Any]) -> dict[str, torch.Tensor]:
    """The weights to use: `Trainer.detector`'s."""
    module = "module."  # in the average's names, beside which it counts its steps
    average = {
        name.removeprefix(module): t for name, t in trainer.get("average", {}).items() if name.startswith(module)
    }
    return average or trainer["model"]


def predict_file(
    run: Run, path: str | Path, out_dir: str | Path | None = None, *, min_score: float = 0.5
) -> tuple[Prediction, Path | None]:
    """Find objects in one image file, which is shown to the detector of the run as in training.

    Args:
        run: from `load_run`.
        path: an image file, of any size.
        out_dir: a folder for a picture with the boxes drawn in, as PNG, which never replaces a file; None draws none.
        min_score: the least score of an object that counts as found.

    Returns:
        The prediction, and where the picture was written.

    Raises:
        FileNotFoundError, ValueError: the image cannot be read.
        WriteError: the picture cannot be written.
    """
    image = read_image(path)
    prediction = predict(run.model, image, min_score=min_score, letterbox=run.letterbox)
    if out_dir is None:
        return prediction, None
    captions = [f"{found['label']} {found['score']:.2f}" for found in prediction.objects(run.config.class_names)]
    target = _free_name(Path(out_dir), Path(path).stem)
    with whole_file(target) as partial:
        draw_boxes(image, prediction.boxes, captions).save(partial)
    return prediction, target


def _free_name(folder: Path, stem: str) -> Path:
    target, number = folder / f"{stem}.png", 1
    while target.exists():
        number += 1
        target = folder / f"{stem}-{number}.png"
    return target
