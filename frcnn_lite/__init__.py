"""A Faster R-CNN small enough to read, and what trains it on several GPUs.

    from frcnn_lite import TrainConfig, train

These names are enough to train, to use what was trained, and to make a training loop of one's own exact on several
GPUs; the subpackages hold the rest. Torch is loaded with the first name that is asked for, and not before, so that
`--help` is quick.
"""

from importlib import import_module

__version__ = "0.1.0"

_NAMES = {
    "detection": ("Detections", "FasterRCNN", "FasterRCNNConfig", "LossParts"),
    "engine": (
        *("Pictures", "Prediction", "Run", "TrainConfig", "TrainResult", "evaluate", "load_run", "load_weights"),
        *("predict", "predict_file", "resolve", "save_weights", "train"),
    ),
    "parallel": (
        *("CollectiveHang", "RankFailed", "Watchdog", "data_parallel", "is_main_rank", "process_group"),
        *("reduce_loss", "reduce_loss_over_ranks", "rows_of_rank", "run_ranks"),
    ),
}
_HOMES = {name: f"{__name__}.{package}" for package, names in _NAMES.items() for name in names}
__all__ = list(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)  # found without this function from now on
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
