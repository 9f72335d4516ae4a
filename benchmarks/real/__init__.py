"""Real trajectories, web sessions and careers, released by the commands alone; `benchmarks/real_data.py` runs it."""
