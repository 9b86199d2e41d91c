"""The names of data sets on the command line: "voc:DIR", "coco:FILE", "yolo:DIR", each with "@SPLIT" if need be."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from frcnn_lite.data.annotated import Picture
from frcnn_lite.data.coco import coco_class_names, coco_splits, coco_unannotated, read_coco
from frcnn_lite.data.defects import Defect
from frcnn_lite.data.voc import read_voc, voc_class_names, voc_splits, voc_unannotated
from frcnn_lite.data.yolo import is_yolo, read_yolo, yolo_class_names, yolo_splits

TRAIN_SPLITS, TEST_SPLITS = ("trainval", "train"), ("test", "val")  # the first that is there


class Format(NamedTuple):
    """How data of one kind is read, each by its path; `in_a_file`: the path is a file's, and else a folder's."""

    in_a_file: bool
    splits: Callable[[Path], dict[str, list[str]]]
    read: Callable[[Path, list[str]], tuple[list[Picture], list[Defect]]]
    class_names: Callable[[Path, list[Picture]], tuple[str, ...]]
    unannotated: Callable[[Path, list[Picture]], list[str]]


FORMATS = {
    "voc": Format(False, voc_splits, read_voc, voc_class_names, voc_unannotated),
    "coco": Format(True, coco_splits, read_coco, coco_class_names, coco_unannotated),
    # A picture without a label file is one without objects there, and is trained on.
    "yolo": Format(False, yolo_splits, read_yolo, yolo_class_names, lambda path, pictures: []),
}


@dataclass(frozen=True)
class DataSource:
    """The place of annotated pictures.

    Attributes:
        kind: one of `FORMATS`.
        path: a folder, or a file.
        split: a name, "" for all.
    """

    kind: str
    path: Path
    split: str = ""

    @classmethod
    def parse(cls, name: str) -> "DataSource":
        """The place of a name; of a bare path, a file is COCO's, and a folder is YOLO's or VOC's.

        Raises:
            ValueError: the name means nothing.
            FileNotFoundError: the path is not there.
        """
        kind, colon, place = name.partition(":")
        if not colon or kind not in FORMATS:
            bare = Path(name if Path(name).exists() else name.rpartition("@")[0])
            if not name or not bare.name or not bare.exists():
                forms = "'digits', 'voc:DIR', 'yolo:DIR' or 'coco:FILE', or the path of one of these"
                raise ValueError(f"`data` must be {forms}, got {name!r}")
            return cls.parse(f"{'coco' if bare.is_file() else 'yolo' if is_yolo(bare) else 'voc'}:{name}")
        path, _, split = (place, "", "") if "@" not in place or Path(place).exists() else place.rpartition("@")
        if not path or not Path(path).exists():
            raise FileNotFoundError(f"data {name!r}: no such file or directory: {path!r}")
        if Path(path).is_file() != FORMATS[kind].in_a_file:
            raise ValueError(f"data {name!r}: {kind} takes a {'file' if FORMATS[kind].in_a_file else 'folder'}")
        source = cls(kind, Path(path).absolute(), split)
        if split and split not in source.splits():
            raise ValueError(f"data {name!r}: no split {split!r}; there are {', '.join(sorted(source.splits()))}")
        return source

    def __str__(self) -> str:
        return f"{self.kind}:{self.path}" + (f"@{self.split}" if self.split else "")

    def splits(self) -> dict[str, list[str]]:
        """The names of the pictures of every split."""
        return FORMATS[self.kind].splits(self.path)

    def names(self) -> list[str]:
        """The names of the pictures of this split, or of all, each once."""
        splits = self.splits()
        return splits[self.split] if self.split else list(dict.fromkeys(n for names in splits.values() for n in names))

    def read(self) -> tuple[list[Picture], list[Defect]]:
        """The annotations as they are, and those that cannot be read or that share their image with others."""
        pictures, defects = FORMATS[self.kind].read(self.path, self.names())
        sources = defaultdict(list)
        for picture in pictures:
            sources[picture.file].append(picture.source)
        detail = "{} belongs to {}, and each would teach that the objects of the others are background"
        defects += [
            Defect(one, "not_unique", detail.format(file.name, " and ".join(shared)))
            for file, shared in sources.items()
            for one in shared
            if len(shared) > 1
        ]
        return [picture for picture in pictures if len(sources[picture.file]) == 1], defects

    def unannotated(self, pictures: list[Picture]) -> list[str]:
        """The file names of images beside `pictures`, which `read` gave, that have no annotation."""
        return FORMATS[self.kind].unannotated(self.path, pictures)

    def class_names(self, pictures: list[Picture]) -> tuple[str, ...]:
        """Those of the data's own list, in its order; without a list those that occur in `pictures`, sorted."""
        return FORMATS[self.kind].class_names(self.path, pictures)


def choose_splits(data: str, test_data: str = "") -> tuple[DataSource, DataSource]:
    """The data to train on and to judge on, each with its split.

    A split that is not named is the first that is there, of `TRAIN_SPLITS` and `TEST_SPLITS`; but no picture that is
    judged on is trained on, so "trainval" gives way to "train" where "val" is all there is to judge on.

    Args:
        data: the name of what to train on, as in `DataSource.parse`.
        test_data: the name of what to judge on; without it both are of one source.

    Raises:
        ValueError: no choice is possible, or the named splits share pictures.
        FileNotFoundError: nothing is there.
    """
    train = DataSource.parse(data)
    test = DataSource.parse(test_data) if test_data else replace(train, split="")
    alone = test.path == train.path
    if not test.split:
        test = replace(test, split=_first(test, TEST_SPLITS, alone, {train.split}, frozenset()))
    judged = frozenset(test.names()) if alone else frozenset()
    if not train.split:
        train = replace(train, split=_first(train, TRAIN_SPLITS, alone, set(), judged))
    elif shared := judged & set(train.names()):
        raise ValueError(
            f"{train} and {test} share {len(shared)} pictures: a detector is judged on pictures it never saw"
        )
    return train, test


def _first(source: DataSource, wanted: tuple[str, ...], alone: bool, taken: set[str], judged: frozenset[str]) -> str:
    splits = source.splits()
    wanted = wanted if alone else ("all", *wanted)  # a source without lists of its own is split only where it must be
    for name in wanted:
        if splits.get(name) and name not in taken and not judged & set(splits[name]):
            return name
    if empty := [name for name in wanted if name in splits and not splits[name]]:
        count = len(splits.get("all", ()))
        raise ValueError(
            f"{source}: too few pictures ({count}) to hold some out by their names, the split {empty[0]!r} is empty; "
            "name other pictures to judge on (test_data, --test-data), or annotate more"
        )
    raise ValueError(f"{source}: no split of {sorted(splits)} can be {' or '.join(wanted)}; name one: {source}@SPLIT")
