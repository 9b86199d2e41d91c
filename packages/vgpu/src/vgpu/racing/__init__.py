"""Races between streams: who may touch which memory at which moment, and what made him wait. watch.py begins."""
