"""Look through a folder of VOC or YOLO or a file of COCO before training: classes, sizes, and every defect by file.

  python -m frcnn_lite data check data/BCCD
  python -m frcnn_lite data check coco/annotations.json --all

Every image is decoded. The exit code is 1 where there is a defect. Pictures without an annotation are named, too; they
are not defects, since a folder may be annotated in part.
"""

import argparse

MANY = 10**9


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", metavar="DATA", help="a folder or a JSON file; DATA@SPLIT for one split of it")
    parser.add_argument(
        "--all", action="store_true", help="list every defect and picture, not the first twenty of a kind"
    )


def run(options: argparse.Namespace) -> int:
    """Print the page; 1 when the data has defects."""
    from frcnn_lite.data import AnnotatedPictures, DataSource, summarise

    source = DataSource.guess(options.data)
    pictures, defects = source.read()
    data = AnnotatedPictures(pictures, source.class_names(pictures), defects=defects)
    print(summarise(source, data, MANY if options.all else 20, source.unannotated(pictures)))
    return 1 if data.defects else 0
