"""What the notebooks read, and nobody else: set-up, predictions, exercises, figures, workers of spawned processes,
and the code that one notebook takes apart.

A kernel that starts in notebooks/ imports it as `course`. It builds on frcnn_lite, vgpu and multigpu, and none of
them imports it.
"""
