"""`python -m benchmarks`: every figure of speed beside its target; see docs/benchmarks.md."""

# Thread pools are sized when NumPy is loaded, so this import comes first.
import benchmarks.speed.one_thread  # noqa: F401
from benchmarks.speed.app import main

if __name__ == "__main__":
    main()
