"""Figures that anyone can make again; each is run with ``python -m benchmarks.NAME``."""
