"""The whole configuration of one training run, as one frozen dataclass that goes to JSON and back."""

import json
import math
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, get_args

from frcnn_lite.data import Augmentation, DigitScenes, Handling
from frcnn_lite.detection import FasterRCNNConfig

Schedule = Literal["cosine", "constant"]


@dataclass(frozen=True)
class TrainConfig:
    """Everything that decides a training curve.

    Equal configs give equal curves: bit for bit on the same devices and threads, up to rounding on other numbers.
    The meaning of a field is written under it, in the words that `train --help` shows. `engine.resolve` fills in what
    follows from the data. Raises ValueError or TypeError that names the field.
    """

    data: str = "digits"
    """What to train on: digits, which are drawn on the spot, or pictures of your own as voc:DIR, yolo:DIR or coco:FILE,
    or the path alone. DIR@SPLIT names one split of them."""
    test_data: str = ""
    """What to evaluate on, named in the same way. Left out, it is a different split of the training data."""
    class_names: tuple[str, ...] = DigitScenes.class_names
    """Names of the labels, in the order of their numbers."""
    image_size: tuple[int, int] = (128, 128)
    """Height and width in pixels of the canvas onto which every picture is scaled, such as 480x640.
    Your own pictures: what suits their boxes."""
    flip: float = 0.0
    """Fraction of pictures that are mirrored, left for right. Your own pictures: 0.5."""
    zoom: float = 0.0
    """How much larger or smaller a picture is shown at most: with 0.25 at 4/5 to 5/4 of its size.
    Your own pictures: 0.25."""
    light: float = 0.0
    """How much brighter or darker each colour of a picture is made at most: with 0.2 by a factor of 0.8 to 1.2.
    Your own pictures: 0.2."""
    handle: tuple[str, ...] = ()
    """How to treat one kind of defect in the data, such as outside=drop; repeat the option for other kinds.
    data/README.md lists them. All defects are reported, and what cannot be used is left out."""
    train_images: int = 20_000
    """Number of pictures to train on, at most. Your own pictures: all."""
    test_images: int = 200
    """Number of pictures to evaluate on, at most; with 0 nothing is evaluated. Your own pictures: all."""
    gpus: int = 0
    """Number of GPUs; with 0 the CPU computes. Where the machine has fewer, virtual GPUs take their place.
    Under torchrun give the number of its processes."""
    steps: int = 1000
    """Number of optimizer steps."""
    batch_size: int = 8
    """Number of pictures in a step, over all devices together."""
    lr: float = 3e-3
    """Learning rate at its peak; where training starts from trained weights, 0.0003."""
    backbone_lr: float = 1.0
    """Factor on the learning rate of the backbone; where training starts from trained weights, 0.1."""
    warmup_steps: int = 50
    """Number of steps in which the learning rate rises to its peak, at most half of all steps."""
    schedule: Schedule = "cosine"
    """How the learning rate goes on after its peak: cosine falls to zero at the last step, constant stays."""
    weight_decay: float = 0.01
    """How strongly AdamW pulls weights towards zero; biases and normalisation are left alone."""
    max_grad_norm: float = 5.0
    """Gradients whose norm is larger are scaled down to this norm."""
    averaging: float = 1 / 6
    """Evaluate and save the average of the weights over this last fraction of the steps; with 0 the last weights."""
    seed: int = 0
    """Decides the initial weights, the order of the pictures and what is sampled: equal seeds give equal runs."""
    workers: int = 0
    """Number of processes that load pictures; with 0 the training loads them itself."""
    amp: bool = False
    """Compute in half precision where it is safe: float16 on GPUs, bfloat16 on the CPU; weights, boxes and losses stay
    float32. Results then agree in fewer digits."""
    checkpoint_every: int = 200
    """Number of steps between two checkpoints. A crash loses the steps since the last one; Ctrl-C loses none."""
    evaluate_every: int = 0
    """Evaluate after every so many steps, and keep the best weights in best.pt; with 0 only at the end."""
    weights: str = ""
    """File with trained weights to start from: a state dict of torchvision's, of a backbone or of a whole Faster R-CNN,
    or a detector that export wrote. Which detector it is follows from the file; the layers that know its classes begin
    anew where yours are others."""
    model: FasterRCNNConfig = field(default_factory=FasterRCNNConfig)
    """The detector."""

    def __post_init__(self) -> None:
        if isinstance(self.image_size, int):
            object.__setattr__(self, "image_size", (self.image_size, self.image_size))
        if len(self.image_size) != 2 or not all(isinstance(side, int) and side >= 1 for side in self.image_size):
            raise ValueError(f"`image_size` must be (height, width), each at least 1, got {self.image_size!r}")
        least = {"train_images": 1, "batch_size": 1, "checkpoint_every": 1}
        for entry in fields(self):
            value = getattr(self, entry.name)
            if entry.type is int:
                if not isinstance(value, int) or isinstance(value, bool):
                    raise TypeError(f"`{entry.name}` must be an int, got {value!r}")
                if value < least.get(entry.name, 0):
                    raise ValueError(f"`{entry.name}` must be at least {least.get(entry.name, 0)}, got {value}")
            elif entry.type is float:
                if not isinstance(value, int | float) or isinstance(value, bool):
                    raise TypeError(f"`{entry.name}` must be a number, got {value!r}")
                if not (math.isfinite(value) and value >= 0):
                    raise ValueError(f"`{entry.name}` must be a finite number of at least 0, got {value!r}")
        if not isinstance(self.amp, bool):
            raise TypeError(f"`amp` must be True or False, got {self.amp!r}")
        if self.averaging > 1:
            raise ValueError(f"`averaging` must be a fraction of the steps, at most 1, got {self.averaging}")
        if self.evaluate_every and not self.test_images:
            raise ValueError(f"`test_images` must be at least 1 with evaluate_every={self.evaluate_every}, got 0")
        Handling.parse(self.handle)
        self.augmentation  # noqa: B018 it checks
        if self.schedule not in get_args(Schedule):
            raise ValueError(f"`schedule` must be one of {get_args(Schedule)}, got {self.schedule!r}")
        if self.gpus > self.batch_size:
            raise ValueError(
                f"`gpus` must be at most `batch_size`, got gpus={self.gpus} with batch_size={self.batch_size}: "
                f"{self.gpus - self.batch_size} of the devices would never see an image"
            )

    @property
    def augmentation(self) -> Augmentation:
        """The change of every batch before its step."""
        return Augmentation(self.flip, self.zoom, self.light)

    @property
    def ema(self) -> float:
        """Decay of the moving average of the weights, over the last 1 / (1 - ema) steps or so; 0: no average is kept.

        With a sixth of 2900 steps, on 292 pictures of blood cells, the average found 0.004 more AP50 and 0.007 more AP
        than the last weights (means of three seeds, each judged both ways); on digits, of which there is no end, it
        found the same. Less than two steps are no average.
        """
        steps = self.averaging * self.steps
        return 1 - 1 / steps if steps >= 2 else 0.0

    def shown(self) -> dict[str, Any]:
        """For every file of weights, that one found alone says what labels mean, at what size pictures are shown, and
        how it was trained."""
        return {
            "class_names": list(self.class_names),
            "image_size": list(self.image_size),
            "run": self.to_json(),
        }

    def to_json(self) -> str:
        """A JSON object, fields in their order."""
        return json.dumps(asdict(self), indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "TrainConfig":
        """The inverse of `to_json`. Raises ValueError for an unknown field or text that is not a JSON object."""
        values = json.loads(text)
        if not isinstance(values, dict):
            raise ValueError(f"a configuration is a JSON object, got {type(values).__name__}")
        model = values.pop("model", {})
        unknown = sorted(values.keys() - {entry.name for entry in fields(cls)})
        if unknown:
            raise ValueError(f"unknown fields {unknown}: was this written by another version?")
        frozen: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in values.items()
        }
        return cls(**frozen, model=FasterRCNNConfig.from_dict(model))
