"""What releases are tried on: simulated people, nobody's data."""

from dphmm.evaluation.city import City, simulate_city

__all__ = ["City", "simulate_city"]
