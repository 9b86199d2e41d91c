"""A folder for PYTHONPATH: Python imports its `sitecustomize` when a process starts."""
