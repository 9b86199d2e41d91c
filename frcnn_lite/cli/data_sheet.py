"""Draw pictures of your own with their boxes onto one sheet, to look at before you train on them.

  python -m frcnn_lite data sheet data/BCCD --out sheet.png
  python -m frcnn_lite data sheet coco/annotations.json --pictures 64 --out sheet.png

The pictures are taken at equal distances from all, with the objects that training would see: what is left out for a
defect is not drawn, and `data check` names it. A file that exists is never replaced.
"""

import argparse
from pathlib import Path

from frcnn_lite.whole_file import whole_file

from .console import say

SIDE, GAP = 256, 4  # pixels of a picture on the sheet, and between two


def add_options(parser: argparse.ArgumentParser) -> None:
    about = "a folder (VOC, YOLO) or a JSON file (COCO); DATA@SPLIT for one split"
    parser.add_argument("data", metavar="DATA", help=about)
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="picture to write, such as sheet.png")
    number = "number of pictures on the sheet, at most (default: %(default)s)"
    parser.add_argument("--pictures", type=int, default=24, metavar="N", help=number)


def run(options: argparse.Namespace) -> int:
    """Write the sheet."""
    import math

    from PIL import Image

    from frcnn_lite.data import AnnotatedPictures, DataSource, Letterbox, LetterboxedScenes
    from frcnn_lite.engine.predict import draw_boxes

    if options.out.exists():
        raise FileExistsError(f"{options.out} exists already; choose another name")
    if options.pictures < 1:
        raise ValueError(f"--pictures must be at least 1, got {options.pictures}")
    source = DataSource.parse(options.data)
    pictures, defects = source.read()
    data = AnnotatedPictures(pictures, source.class_names(pictures), defects=defects)
    if not len(data):
        raise ValueError(f"{source}: not one picture can be used; `data check` says why")
    scenes, count = LetterboxedScenes(data, Letterbox(SIDE, SIDE)), min(options.pictures, len(data))
    columns = math.ceil(math.sqrt(count))
    sheet = Image.new("RGB", (columns * (SIDE + GAP) - GAP, -(-count // columns) * (SIDE + GAP) - GAP), "white")
    for place in range(count):
        scene = scenes[place * len(data) // count]
        image = Image.fromarray(scene.image.permute(1, 2, 0).numpy())
        drawn = draw_boxes(image, scene.boxes, [data.class_names[label] for label in scene.labels.tolist()])
        row, column = divmod(place, columns)
        sheet.paste(drawn, (column * (SIDE + GAP), row * (SIDE + GAP)))
    with whole_file(options.out) as partial:
        sheet.save(partial)
    say(f"wrote {options.out}: {count} of {len(data)} pictures")
    return 0
