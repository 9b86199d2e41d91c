"""Annotated pictures as scenes of a data set, after a look at every file and every box."""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch

from frcnn_lite.data.annotated import Object, Picture
from frcnn_lite.data.batch import Ignored, Scene
from frcnn_lite.data.defects import Defect, Handling
from frcnn_lite.data.hints import TOLERANCE, has_area, hints
from frcnn_lite.data.image_file import Look, look_at_image, read_image


class AnnotatedPictures:
    """Scenes of the sizes that their pictures have.

    Every image is decoded once, to find the damaged ones.

    Args:
        pictures: from `read_voc`, `read_coco` or `read_yolo`.
        class_names: objects of other classes are unknown.
        handling: what happens to each kind of defect.
        defects: what was found wrong where the pictures were read.

    Attributes:
        defects: all that was found wrong.
        pictures: those that are left.
        hints: reasons to doubt the annotations.
        turned: how many of the files say that the camera was turned.

    Raises:
        ValueError: there is a defect whose handling is "raise".
    """

    def __init__(
        self,
        pictures: Sequence[Picture],
        class_names: Sequence[str],
        handling: Handling | None = None,
        defects: Sequence[Defect] = (),
    ) -> None:
        self.class_names = tuple(class_names)
        handling = Handling() if handling is None else handling
        found, kept = list(defects), []
        with ThreadPoolExecutor(os.cpu_count()) as pool:  # Pillow decodes without holding the interpreter's lock
            looks = list(zip(pictures, pool.map(_look_or_defect, pictures), strict=True))
        for picture, look in looks:
            sound, wrong = _sound_picture(picture, look, frozenset(self.class_names), handling)
            found += wrong
            kept += [sound] if sound is not None else []
        handling.refuse(found)
        self.defects: tuple[Defect, ...] = tuple(found)
        self.pictures: tuple[Picture, ...] = tuple(kept)
        seen = [(picture, look) for picture, look in looks if isinstance(look, Look)]
        self.hints, self.turned = hints(seen), sum(look.turned for _, look in seen)

    def __len__(self) -> int:
        return len(self.pictures)

    def __getitem__(self, index: int, /) -> Scene:
        picture = self.pictures[index]
        image = torch.from_numpy(np.array(read_image(picture.file, picture.size))).permute(2, 0, 1)
        judged = [thing for thing in picture.objects if not thing.ignored]
        ignored = [thing for thing in picture.objects if thing.ignored]
        crowd = torch.tensor([thing.crowd for thing in ignored], dtype=torch.bool)
        regions = Ignored(_boxes(ignored), self._labels(ignored), crowd)
        return Scene(image.contiguous(), _boxes(judged), self._labels(judged), index, regions if ignored else None)

    def boxes(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Sizes of the pictures (P, 2) as (height, width), boxes to be found (n, 4), and the picture of each (n,)."""
        sizes = torch.tensor([picture.size[::-1] for picture in self.pictures if picture.size is not None])
        judged = [[thing for thing in picture.objects if not thing.ignored] for picture in self.pictures]
        counts = torch.tensor([len(things) for things in judged], dtype=torch.int64)  # also where there is no picture
        owner = torch.repeat_interleave(torch.arange(len(judged)), counts)
        return sizes.reshape(-1, 2), _boxes([thing for things in judged for thing in things]), owner

    def _labels(self, objects: Sequence[Object]) -> torch.Tensor:
        return torch.tensor([self.class_names.index(thing.name) for thing in objects], dtype=torch.int64)


def _boxes(objects: Sequence[Object]) -> torch.Tensor:
    return torch.tensor([thing.box for thing in objects], dtype=torch.float32).reshape(-1, 4)


def _look_or_defect(picture: Picture) -> Look | Defect:
    try:
        return look_at_image(picture.file, picture.size)
    except ValueError as error:
        return Defect(picture.source, "unreadable", f"{picture.file.as_posix()}: {error}")


def _sound_picture(
    picture: Picture, look: Look | Defect, class_names: frozenset[str], handling: Handling
) -> tuple[Picture | None, list[Defect]]:
    """The picture as it can be used, None when it cannot, and everything that is wrong with it."""
    if isinstance(look, Defect):
        return None, [look]
    size, defects = look.size, list[Defect]()
    if picture.size is not None and picture.size != size:
        detail = f"annotated as {picture.size[0]} x {picture.size[1]}, the image is {size[0]} x {size[1]}"
        defects.append(Defect(picture.source, "other_size", detail))
        if handling.other_size == "skip":
            return None, defects
    objects, wrong = _sound_objects(picture, size, class_names, handling)
    defects += wrong
    if picture.objects and not objects:
        defects.append(Defect(picture.source, "emptied", f"all of its {len(picture.objects)} objects were dropped"))
    elif not objects:
        defects.append(Defect(picture.source, "empty", "no objects"))
    skipped = any(getattr(handling, defect.kind) == "skip" for defect in defects)
    return None if skipped else picture._replace(objects=objects, size=size), defects


def _sound_objects(
    picture: Picture, size: tuple[int, int], class_names: frozenset[str], handling: Handling
) -> tuple[tuple[Object, ...], list[Defect]]:
    """The objects that can be trained on, their boxes within the picture, and what was wrong with the others."""
    kept, defects, seen = [], [], set[Object]()
    for thing in picture.objects:
        box = _clip(thing.box, size)
        sticks_out = max(abs(a - b) for a, b in zip(box, thing.box, strict=True))
        where, known = f"{picture.source}{thing.where}", thing._replace(where="")
        drawn = f"{thing.name} {' '.join(f'{number:g}' for number in thing.box)}"
        is_kept = True
        if thing.name not in class_names:
            defects.append(Defect(where, "unknown_class", repr(thing.name)))
            is_kept = False
        elif not has_area(thing.box):
            defects.append(Defect(where, "no_area", drawn))
            is_kept = False
        elif known in seen:
            defects.append(Defect(where, "duplicate", drawn))
            is_kept = handling.duplicate == "keep"
        elif sticks_out > TOLERANCE:
            defects.append(Defect(where, "outside", f"{drawn} in {size[0]} x {size[1]}"))
            is_kept = handling.outside == "clip" and has_area(box)
        if is_kept:
            kept.append(thing._replace(box=box))
        seen.add(known)
    return tuple(kept), defects


def _clip(box: tuple[float, float, float, float], size: tuple[int, int]) -> tuple[float, float, float, float]:
    x1, y1, x2, y2 = box
    width, height = size
    return min(max(x1, 0.0), width), min(max(y1, 0.0), height), min(max(x2, 0.0), width), min(max(y2, 0.0), height)
