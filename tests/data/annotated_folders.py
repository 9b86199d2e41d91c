"""Small VOC and YOLO folders and COCO files for tests, each picture a grey noise with the boxes that are asked for."""

import json
from pathlib import Path

import numpy as np
from PIL import Image

OBJECT = (
    "<object><name>{}</name><difficult>{}</difficult><bndbox><xmin>{}</xmin><ymin>{}</ymin><xmax>{}</xmax>"
    "<ymax>{}</ymax></bndbox></object>"
)


def write_image(path, width=64, height=48, **save):
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(0).integers(0, 255, (height, width, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path, **save)


def write_voc(root: Path, pictures: dict[str, list], splits: dict[str, list[str]] | None = None, size=(64, 48)) -> Path:
    """pictures: name -> objects (class, box as written) or (class, box, difficult)."""
    (root / "Annotations").mkdir(parents=True)
    for name, objects in pictures.items():
        write_image(root / "JPEGImages" / f"{name}.jpg", *size)
        write_annotation(root, name, objects, size)
    for split, names in (splits or {}).items():
        (root / "ImageSets" / "Main").mkdir(parents=True, exist_ok=True)
        (root / "ImageSets" / "Main" / f"{split}.txt").write_text("\n".join(names) + "\n")
    return root


def write_annotation(root, name, objects, size=(64, 48), filename=None):
    body = "".join(OBJECT.format(label, int(bool(rest and rest[0])), *box) for label, box, *rest in objects)
    named = f"<filename>{filename or name + '.jpg'}</filename>"
    sized = f"<size><width>{size[0]}</width><height>{size[1]}</height></size>"
    (root / "Annotations" / f"{name}.xml").write_text(f"<annotation>{named}{sized}{body}</annotation>")


def write_coco(file: Path, pictures: dict[str, list], names=("dog", "cat"), size=(64, 48)) -> Path:
    """pictures: file name -> annotations, dicts with at least `bbox` and `category_id`."""
    images, annotations = [], []
    for k, (name, entries) in enumerate(pictures.items()):
        write_image(file.parent / "images" / name, *size)
        images.append({"id": 100 + k, "file_name": name, "width": size[0], "height": size[1]})
        annotations += [{"image_id": 100 + k, "id": len(annotations), **entry} for entry in entries]
    categories = [{"id": 7 * (k + 1), "name": name} for k, name in enumerate(names)]
    file.write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories[::-1]}))
    return file


def write_yolo(
    root: Path, pictures: dict[str, list | None], files: dict[str, str] | None = None, size=(64, 48)
) -> Path:
    """pictures: path of the image -> lines of its label file, or None for no such file; files: path -> text."""
    for name, lines in pictures.items():
        write_image(root / name, *size)
        label = (root / name.replace("images/", "labels/")).with_suffix(".txt")
        label.parent.mkdir(parents=True, exist_ok=True)
        if lines is not None:
            label.write_text("\n".join(lines) + "\n")
    for path, text in (files or {}).items():
        (root / path).write_text(text, encoding="utf-8")
    return root
