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
    What a field means stands under it, in the words that `train --help` shows; `engine.resolve` fills in what follows
    from the data. Raises ValueError or TypeError that names the field.
    """

    data: str = "digits"
    """What to train on: digits (nothing to download), voc:DIR, yolo:DIR or coco:FILE; DIR@SPLIT is a split."""
    test_data: str = ""
    """What to judge on, named likewise; empty: a different split of the same data."""
    class_names: tuple[str, ...] = DigitScenes.class_names
    """Of the labels, in their order."""
    image_size: tuple[int, int] = (128, 128)
    """Height and width in pixels that all pictures are brought to; for your own pictures, what suits their boxes."""
    flip: float = 0.0
    """Share of the pictures that are mirrored; of your own pictures 0.5."""
    zoom: float = 0.0
    """How much larger or smaller pictures are shown at most; your own 0.25, which is from 4/5 to 5/4."""
    light: float = 0.0
    """How much the brightness of each colour varies at most; of your own pictures 0.2."""
    handle: tuple[str, ...] = ()
    """What to do about a defect of the data, as outside=drop; may be given again for other defects.
    Each is reported, and what cannot be used is left out; data/README.md lists them."""
    train_images: int = 20_000
    """Pictures in an epoch, at most; of your own pictures all."""
    test_images: int = 200
    """Pictures to judge on, at most, 0 for none; of your own pictures all."""
    gpus: int = 0
    """0: the CPU; N: that many GPUs, virtual ones if need be; under torchrun one for each process."""
    steps: int = 1000
    """Optimizer steps."""
    batch_size: int = 8
    """Pictures a step, over all devices together."""
    lr: float = 3e-3
    """Peak learning rate."""
    warmup_steps: int = 50
    """Steps of linear warm-up to the peak, at most half of all steps."""
    schedule: Schedule = "cosine"
    """What follows the warm-up: cosine falls to zero at the last step."""
    weight_decay: float = 0.01
    """Decoupled, on weight matrices and filters only."""
    max_grad_norm: float = 5.0
    """Gradients are clipped to this norm."""
    averaging: float = 1 / 6
    """Share of the steps, the last ones, that the weights are averaged over which are judged and handed on; 0: none."""
    seed: int = 0
    """Of initial weights, order of pictures and samples."""
    workers: int = 0
    """Processes that load pictures; 0: the training loads them itself."""
    amp: bool = False
    """Half precision where it is safe: float16 on GPUs, bfloat16 on the CPU, whose curves agree to those digits only;
    weights, boxes and losses stay float32."""
    checkpoint_every: int = 200
    """Steps between two checkpoints, which is what a crash can cost; a stop saves, too."""
    evaluate_every: int = 0
    """Judge every so many steps, and keep the best weights in best.pt; 0: at the end alone."""
    weights: str = ""
    """File with a state dict of the torchvision model that the backbone is taken from, to begin with."""
    model: FasterRCNNConfig = field(default_factory=FasterRCNNConfig)
    """The detector."""

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
        if self.averaging > 1:
            raise ValueError(f"averaging must be a share of the steps, at most 1, got {self.averaging}")
        if self.weights and self.model.backbone == "lite":
            raise ValueError(f"weights must be empty for the backbone 'lite', got {self.weights!r}")
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
        """For every file of weights, that one found alone says what labels mean and at what size pictures are shown."""
        return {"class_names": list(self.class_names), "image_size": list(self.image_size)}

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
