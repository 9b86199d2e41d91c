"""Check pictures of your own before you train on them: classes, sizes, and every defect with its file.

  python -m frcnn_lite data check data/BCCD
  python -m frcnn_lite data check coco/annotations.json --all

It reads folders in the layouts of VOC and YOLO, and files of COCO. Every image is decoded. The exit code is 1 if there
is a defect. Pictures without an annotation are listed but are not defects, as a folder may be annotated in part.
"""

import argparse

MANY = 10**9


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "data", metavar="DATA", help="a folder (VOC, YOLO) or a JSON file (COCO); DATA@SPLIT for one split"
    )
    parser.add_argument(
        "--all", action="store_true", help="list all defects and pictures, not the first twenty of each kind"
    )


def run(options: argparse.Namespace) -> int:
    """Print the page; 1 when the data has defects."""
    from frcnn_lite.data import AnnotatedPictures, DataSource, summarise

    source = DataSource.parse(options.data)
    pictures, defects = source.read()
    data = AnnotatedPictures(pictures, source.class_names(pictures), defects=defects)
    print(summarise(source, data, MANY if options.all else 20, source.unannotated(pictures)))
    return 1 if data.defects else 0
