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
    """Everything that decides a training curve. Equal configs give equal curves, whatever number of devices.

    data: "digits", or what to train on as "voc:DIR" or "coco:FILE", with "@SPLIT" if need be; test_data: what to judge
    on, named likewise, "" for another split of the same; class_names: of its labels; image_size: (height, width) of
    every picture in pixels, one number for a square; flip, zoom, light: how pictures vary in training, see
    `data.Augmentation`;
    handle: what to do about defects of annotations, as ("outside=drop", ...), see `data.Handling`;
    train_images, test_images: how many pictures of either split, at most; gpus: 0 is the CPU, N >= 1 are
    cuda:0 .. cuda:N-1;
    steps: optimizer steps; batch_size: images a step over all devices together; lr: peak learning rate;
    warmup_steps: steps of linear warm-up to it; schedule: what follows, "cosine" falls to zero at the last step;
    weight_decay: decoupled, on weight matrices and filters only; max_grad_norm: gradients are clipped to this norm;
    seed: initial weights, order of pictures and sampling; workers: DataLoader processes (0: none);
    ema: decay of an average of the weights over the last 1 / (1 - ema) steps or so, which is then what is judged and
    handed on (0: none);
    amp: forward under autocast, in float16 on GPUs and bfloat16 on the CPU, whose curves then agree to those digits
    only; weights, boxes and losses stay float32;
    checkpoint_every: steps between two checkpoints; evaluate_every: steps between two evaluations on the test pictures,
    the best weights of which are kept (0: none); model: the detector.
    Raises ValueError or TypeError that names the field.
    """

    data: str = "digits"
    test_data: str = ""
    class_names: tuple[str, ...] = DigitScenes.class_names
    image_size: tuple[int, int] = (128, 128)
    flip: float = 0.0
    zoom: float = 0.0
    light: float = 0.0
    handle: tuple[str, ...] = ()
    train_images: int = 20_000
    test_images: int = 200
    gpus: int = 0
    steps: int = 1000
    batch_size: int = 8
    lr: float = 3e-3
    warmup_steps: int = 50
    schedule: Schedule = "cosine"
    weight_decay: float = 0.01
    max_grad_norm: float = 5.0
    seed: int = 0
    workers: int = 0
    ema: float = 0.0
    amp: bool = False
    checkpoint_every: int = 200
    evaluate_every: int = 0
    model: FasterRCNNConfig = field(default_factory=FasterRCNNConfig)

    def __post_init__(self) -> None:
        if isinstance(self.image_size, int):
            object.__setattr__(self, "image_size", (self.image_size, self.image_size))
        if len(self.image_size) != 2 or not all(isinstance(side, int) and side >= 1 for side in self.image_size):
            raise ValueError(f"image_size must be (height, width), each at least 1, got {self.image_size!r}")
        least = {"train_images": 1, "batch_size": 1, "checkpoint_every": 1}
        for entry in fields(self):
            value = getattr(self, entry.name)
            if entry.type is int:
                if not isinstance(value, int) or isinstance(value, bool):
                    raise TypeError(f"{entry.name} must be an int, got {value!r}")
                if value < least.get(entry.name, 0):
                    raise ValueError(f"{entry.name} must be at least {least.get(entry.name, 0)}, got {value}")
            elif entry.type is float:
                if not isinstance(value, int | float) or isinstance(value, bool):
                    raise TypeError(f"{entry.name} must be a number, got {value!r}")
                if not (math.isfinite(value) and value >= 0):
                    raise ValueError(f"{entry.name} must be a finite number of at least 0, got {value!r}")
        if not isinstance(self.amp, bool):
            raise TypeError(f"amp must be True or False, got {self.amp!r}")
        if self.ema >= 1:
            raise ValueError(f"ema must be below 1, got {self.ema}")
        if self.evaluate_every and not self.test_images:
            raise ValueError(f"evaluate_every={self.evaluate_every} needs test_images of at least 1, got 0")
        Handling.parse(self.handle)
        self.augmentation  # noqa: B018 it checks
        if self.schedule not in get_args(Schedule):
            raise ValueError(f"schedule must be one of {get_args(Schedule)}, got {self.schedule!r}")
        if self.gpus > self.batch_size:
            raise ValueError(
                f"gpus must be at most batch_size, got gpus={self.gpus} with batch_size={self.batch_size}: "
                f"{self.gpus - self.batch_size} of the devices would never see an image"
            )

    @property
    def augmentation(self) -> Augmentation:
        """What happens to every batch before the step."""
        return Augmentation(self.flip, self.zoom, self.light)

    def shown(self) -> dict[str, Any]:
        """For every file of weights, that one found alone says what labels mean and at what size pictures are shown."""
        return {"class_names": list(self.class_names), "image_size": list(self.image_size)}

    def to_json(self) -> str:
        """A JSON object, fields in their order."""
        return json.dumps(asdict(self), indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "TrainConfig":
        """The inverse of `to_json`. Raises ValueError for a field it does not know or text that is no JSON object."""
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
