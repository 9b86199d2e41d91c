"""Annotations in one JSON file, as COCO writes them.

T.-Y. Lin et al., "Microsoft COCO: Common Objects in Context", ECCV 2014; format: <https://cocodataset.org/#format-data>.
"""

import json
from collections import Counter, defaultdict
from functools import lru_cache
from pathlib import Path
from typing import Any

from frcnn_lite.data.annotated import Object, Picture, hold_out, images_in, path_inside
from frcnn_lite.data.defects import Defect


def coco_splits(file: Path) -> dict[str, list[str]]:
    """The names of the pictures in each split: the file is one, "all"; for lack of more "train" and a fifth, "test"."""
    return hold_out({str(image["file_name"]) for image in _load(file)["images"]})


def coco_class_names(file: Path, pictures: list[Picture]) -> tuple[str, ...]:
    """The names of the categories, by rising id."""
    return tuple(str(category["name"]) for category in sorted(_load(file)["categories"], key=lambda c: c["id"]))


def read_coco(file: Path, names: list[str]) -> tuple[list[Picture], list[Defect]]:
    """The pictures called `names`, and what is wrong with the entries of the others. Raises ValueError for the file."""
    content, wanted = _load(file), set(names)
    categories = {category["id"]: str(category["name"]) for category in content["categories"]}
    objects = defaultdict(list)
    for annotation in content["annotations"]:
        objects[annotation["image_id"]].append(annotation)
    folder = _image_folder(file, content["images"])
    pictures, defects = [], _of_no_image(file, content)
    for image in content["images"]:
        name = str(image["file_name"])
        if name not in wanted:
            continue
        try:
            found = tuple(_read_object(annotation, categories) for annotation in objects[image["id"]])
            width, height = image.get("width"), image.get("height")
            size = (int(width), int(height)) if width and height else None
            pictures.append(Picture(path_inside(folder, name), name, size, found))
        except (ValueError, TypeError) as error:
            defects.append(Defect(f"{file.name}: {name}", "unreadable", str(error)))
    return pictures, defects


def coco_unannotated(file: Path, pictures: list[Picture]) -> list[str]:
    """The images beside those of `file` that it does not list, by file name."""
    images = _load(file)["images"]
    listed = {Path(str(image["file_name"])).name for image in images}
    return [path.name for path in images_in(_image_folder(file, images)) if path.name not in listed]


def _of_no_image(file: Path, content: dict[str, Any]) -> list[Defect]:
    """Annotations that belong to an image which the file does not list, a defect for each such image."""
    listed = {image["id"] for image in content["images"]}
    lost = Counter(entry["image_id"] for entry in content["annotations"] if entry["image_id"] not in listed)
    detail = "the file lists no image with this id, and has {} annotations of it"
    return [Defect(f"{file.name}: image_id {k}", "unreadable", detail.format(count)) for k, count in lost.items()]


def _read_object(annotation: dict[str, Any], categories: dict[Any, str]) -> Object:
    """COCO's boxes are x, y, width, height in continuous pixels from 0."""
    box = annotation.get("bbox")
    if not isinstance(box, list) or len(box) != 4:
        raise ValueError(f"the bbox of an annotation must be four numbers, got {box!r}")
    x, y, width, height = (float(number) for number in box)
    crowd = bool(annotation.get("iscrowd", 0))
    category = annotation.get("category_id")
    name = categories.get(category, f"category {category}")
    return Object((x, y, x + width, y + height), name, ignored=crowd or bool(annotation.get("ignore", 0)), crowd=crowd)


def _image_folder(file: Path, images: list[dict[str, Any]]) -> Path:
    """Where the images lie: beside the file, or in a folder that common layouts have for them."""
    subset = file.stem.rpartition("_")[2]  # annotations/instances_val2017.json, val2017/
    places = [
        folder / part
        for folder in (file.parent, file.parent.parent)
        for part in ("", "images", subset, f"images/{subset}")
    ]
    names = [str(image["file_name"]) for image in images[:100]]

    def fits(place: Path) -> tuple[int, bool]:
        return sum((place / name).is_file() for name in names), bool(images_in(place))

    return max(places, key=fits)


def _load(file: Path) -> dict[str, Any]:
    return _parse(file, file.stat().st_mtime_ns)


@lru_cache(maxsize=2)  # COCO's own file has 450 MB, and is asked for its splits, its classes and its pictures
def _parse(file: Path, changed: int) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file} cannot be read as COCO annotations: {error}") from error
    for key, needed in (("images", {"id", "file_name"}), ("annotations", {"image_id"}), ("categories", {"id", "name"})):
        entries = content.get(key) if isinstance(content, dict) else None
        if not isinstance(entries, list) or not all(isinstance(e, dict) and needed <= e.keys() for e in entries):
            raise ValueError(
                f"{file} holds no COCO annotations: {key!r} must be a list of objects with {sorted(needed)}"
            )
    return content
