"""Bugs seeded on purpose, and the tests that must notice them.

`PYTHONPATH=tests python -m mutants --jobs 2` plants every seeded privacy bug in a copy of the project and runs the
tests that claim to kill it; `python -m mutants.generic` does the same with a sample of small changes of any kind.
"""
