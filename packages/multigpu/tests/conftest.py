"""What every test of the package needs."""

import gc


def pytest_collection_finish() -> None:
    """Keep what the imports made out of every later collection: none of those objects becomes garbage.

    Each program of the catalogue begins with a collection, which would spend 0.2 s on looking through torch's.
    """
    gc.collect()
    gc.freeze()
