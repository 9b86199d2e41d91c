"""The methods that training and evaluation need of a data set."""

from typing import Protocol

from frcnn_lite.data.batch import Scene


class DetectionDataset(Protocol):
    """Pictures with boxes, by index; labels are places in `class_names`. Any class with these three is one."""

    @property
    def class_names(self) -> tuple[str, ...]: ...

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Scene: ...
