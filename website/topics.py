"""The subjects of the course as people name them, and the page that each is about.

The first page lists them, and the search answers a subject's name with its page, above the failures that hold the word.
"""

from website import layout

VGPU = "packages/vgpu/README.md"
# The name that is shown, the notebook's number or a page, and other words that mean the same subject.
TOPICS = [
    ("DataParallel's scatter", "01", "dataparallel|scatter|dp|data parallel"),
    ("losses over GPUs", "03", "mean of means"),
    ("device pinning", "18", "pinning|device-pinning|pin devices"),
    ("DDP", "07", "distributeddataparallel|distributed data parallel|torchrun"),
    ("hangs", "08", "hang|watchdog|deadlock"),
    ("several machines", "09", "multi node|multi-node|multinode|slurm|several nodes"),
    ("FSDP2", "10", "fsdp|fully_shard|fully sharded data parallel|sharding|hsdp"),
    (
        "tensor parallelism",
        "11",
        "tensor parallel|tp|device mesh|devicemesh|dtensor|mesh|pipeline parallel|3d parallelism",
    ),
    ("RoI pooling", "15", "roi pool|roipool|roialign|roi align"),
    ("training a detector", "20", "faster rcnn|faster r-cnn|detector|object detection"),
    ("grouped convolution", "24", "group convolution|grouped conv|group conv|groups"),
    ("einsum", "25", "torch.einsum|einsum over gpus"),
    ("many small layers", "26", "einsum fc|many linear layers|grouped linear"),
    ("determinism", "28", "deterministic|reproducibility|seeds"),
    ("checkpoints", "30", "checkpoint|state_dict"),
    ("tests without GPUs", "33", "test without gpu|ci without gpu|testing"),
    ("virtual GPUs", VGPU, "virtual gpu|vgpu|fake gpu|simulate gpus"),
]


def pages() -> list[tuple[str, str]]:
    """(name, page of the site) of each topic, in the order of the course."""
    return [(name, page_of(where)) for name, where, _ in TOPICS]


def words() -> dict[str, tuple[str, str]]:
    """(name, page of the site) by each word that means a topic, in small letters."""
    named = {}
    for name, where, others in TOPICS:
        for word in (name.lower(), *filter(None, others.split("|"))):
            named[word] = (name, page_of(where))
    return named


def page_of(where: str) -> str:
    """The page of a notebook by its number, or of a guide, as a link from the root of the site."""
    if where.endswith(".md"):
        return where.removesuffix(".md") + ".html"
    (path,) = (path for path in layout.notebooks() if path.rpartition("/")[2].startswith(f"{where}_"))
    return path.replace(".ipynb", ".html")
