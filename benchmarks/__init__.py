"""Measurements: of speed (`python -m benchmarks`), and of releases of real data (`python benchmarks/real_data.py`)."""
