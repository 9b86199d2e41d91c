"""Data sets and batches. Every data set yields `Scene`s; `collate` makes a `Batch` of them."""

from frcnn_lite.data.annotated import Picture
from frcnn_lite.data.augment import Augmentation, mirror
from frcnn_lite.data.batch import PADDING_LABEL, Batch, Ignored, Scene, collate, send
from frcnn_lite.data.dataset import DetectionDataset
from frcnn_lite.data.defects import Defect, Handling, describe_defects
from frcnn_lite.data.digits import draw_glyph, load_glyphs
from frcnn_lite.data.image_file import read_image
from frcnn_lite.data.letterbox import Letterbox, LetterboxedScenes, Room
from frcnn_lite.data.photographs import load_photographs
from frcnn_lite.data.pictures import AnnotatedPictures
from frcnn_lite.data.scenes import DigitScenes
from frcnn_lite.data.source import DataSource, choose_splits
from frcnn_lite.data.statistics import fit_detector
from frcnn_lite.data.summary import summarise

__all__ = [
    "PADDING_LABEL",
    "AnnotatedPictures",
    "Augmentation",
    "Batch",
    "DataSource",
    "Defect",
    "DetectionDataset",
    "DigitScenes",
    "Handling",
    "Ignored",
    "Letterbox",
    "LetterboxedScenes",
    "Picture",
    "Room",
    "Scene",
    "choose_splits",
    "collate",
    "describe_defects",
    "draw_glyph",
    "fit_detector",
    "load_glyphs",
    "load_photographs",
    "mirror",
    "read_image",
    "send",
    "summarise",
]
