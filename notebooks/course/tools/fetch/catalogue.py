"""Which data sets there are to fetch, from where, and how to know that they arrived as they were sent."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from course.tools.fetch.penn_fudan import write_voc_annotations

MB = 10**6


@dataclass(frozen=True)
class Archive:
    """urls: tried in order; digest: "ALGORITHM:HEX" of the file; max_bytes: a longer answer is not this file."""

    name: str
    urls: tuple[str, ...]
    digest: str
    max_bytes: int


@dataclass(frozen=True)
class Dataset:
    """folder: what it is called when fetched; inside: the folder in the archives that becomes it, laid out as VOC's;
    about: what it is, and its terms; max_unpacked_bytes: more than this is not the data; prepare: what is left to
    do in the folder of all that was unpacked."""

    folder: str
    inside: str
    about: str
    archives: tuple[Archive, ...]
    max_unpacked_bytes: int
    prepare: Callable[[Path], object] | None = None


def _voc_2007(part: str, digest: str, size: int) -> Archive:
    name = f"VOC{part}_06-Nov-2007.tar"
    hosts = ("https://thor.robots.ox.ac.uk/pascal/VOC/voc2007", "http://host.robots.ox.ac.uk/pascal/VOC/voc2007")
    return Archive(name, tuple(f"{host}/{name}" for host in hosts), f"sha256:{digest}", size)


# Addresses: torchvision/datasets/voc.py, and the pages of the data sets. Digests and sizes: the lists of
# tensorflow/datasets (url_checksums/voc.txt, datasets/bccd/checksums.tsv); for Penn-Fudan, whose authors give none and
# which is not listed there, the MD5 in ContinualAI/avalanche (benchmarks/datasets/penn_fudan/penn_fudan_data.py).
DATASETS = {
    "VOC2007": Dataset(
        folder="VOC2007",
        inside="VOCdevkit/VOC2007",
        about="9,963 photographs, 20 classes; Everingham et al., 2007; photographs under the terms of Flickr",
        archives=(
            _voc_2007("trainval", "7d8cd951101b0957ddfd7a530bdc8a94f06121cfc1e511bb5937e973020c7508", 460_032_000),
            _voc_2007("test", "6836888e2e01dca84577a849d339fa4f73e1e4f135d312430c4856b5609b4892", 451_020_800),
        ),
        max_unpacked_bytes=1_000 * MB,
    ),
    "Penn-Fudan": Dataset(
        folder="PennFudanPed",
        inside="PennFudanPed",
        about="170 photographs of pedestrians; Wang, Shi, Song, Shen, ACCV 2007",
        archives=(
            Archive(
                "PennFudanPed.zip",
                ("https://www.cis.upenn.edu/~jshi/ped_html/PennFudanPed.zip",),
                "md5:5aaa3dee905cef73325923716e38fc6d",
                80 * MB,
            ),
        ),
        max_unpacked_bytes=200 * MB,
        prepare=write_voc_annotations,
    ),
    "BCCD": Dataset(
        folder="BCCD",
        inside="BCCD_Dataset-1.0/BCCD",
        about="364 photographs of blood cells, 3 classes; Shenggan, 2017; MIT License",
        archives=(
            Archive(
                "BCCD_Dataset-1.0.zip",
                ("https://github.com/Shenggan/BCCD_Dataset/archive/v1.0.zip",),
                "sha256:97af5cc16d14d293fcb3c82a8f66e49b0339a8d0abd8e9508e0feeb4911caa1f",
                7_875_205,
            ),
        ),
        max_unpacked_bytes=100 * MB,
    ),
}
