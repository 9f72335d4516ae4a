"""Coverage-guided fuzzing of every reader with Atheris (libFuzzer), where it is installed: ``pip install atheris``.

``python tests/fuzz/guided.py [--seconds S] [--keep FOLDER] [READER ...]``: each reader in a process of its own for S
seconds, with the mutations of the registry beside libFuzzer's. Exit 0 if nothing was found; a file that makes a reader
fail is kept in FOLDER, with the command that reads it again. Exit 2 where Atheris is missing.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

#: What libFuzzer is told for files of some kilobytes.
_LARGEST = 65_536


def main() -> int:
    """Fuzz every reader that was named; all of them by default."""
    given = _arguments()
    if given.inside:
        return _inside(given.readers[0], given.seconds, given.keep)
    from fuzz.registry import READERS

    unknown = [name for name in given.readers if name not in READERS]
    if unknown:
        print(f"no reader {unknown[0]!r}; there are {', '.join(READERS)}", file=sys.stderr)
        return 2
    if given.again:
        return _again(given.readers[0], given.again)
    try:
        import atheris  # noqa: F401
    except ImportError:
        print("atheris is not installed here: pip install atheris", file=sys.stderr)
        return 2
    given.keep.mkdir(parents=True, exist_ok=True)
    names = given.readers or list(READERS)
    failed = [name for name in names if not _fuzzed(name, given.seconds, given.keep)]
    print(f"{len(failed)} readers failed" + "".join(f"; {name}" for name in failed))
    return 1 if failed else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("readers", nargs="*", metavar="READER", help="an entry of tests/fuzz/registry.py")
    parser.add_argument("--seconds", type=int, default=10, help="for each reader")
    parser.add_argument(
        "--keep", type=Path, default=Path("fuzz-found"), help="where files that make a reader fail are kept"
    )
    parser.add_argument("--again", type=Path, help="read one such file")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def _fuzzed(name: str, seconds: int, keep: Path) -> bool:
    """One reader in a process of its own; True if nothing was found."""
    command = [sys.executable, __file__, name, "--seconds", str(seconds), "--keep", str(keep), "--inside"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=3 * seconds + 120, check=False)
    except subprocess.TimeoutExpired as late:
        print(f"{name}: no end after {late.timeout:g} s", flush=True)
        return False
    told = (done.stdout + done.stderr).decode(errors="replace")
    runs = re.findall(r"#(\d+)\s.*?cov: (\d+)", told)
    print(f"{name}: {runs[-1][0] if runs else 0} files, {runs[-1][1] if runs else 0} branches", flush=True)
    if done.returncode == 0:
        return True
    print("\n".join([line for line in told.splitlines() if not line.startswith(("#", "0x"))][-30:]))
    print(f"again: python {Path(__file__).name} {name!r} --again FILE, the newest in {keep}")
    return False


def _inside(name: str, seconds: int, keep: Path) -> int:
    import atheris

    # Readers import what they need when they run: that must be seen too.
    with atheris.instrument_imports(include=["dphmm"], enable_loader_override=False):
        from fuzz.mutations import bytes_anywhere
        from fuzz.registry import READERS
        from fuzz.test_files import read_bytes

        reader = READERS[name]
        for seed in reader.seeds():
            read_bytes(reader, seed)

    def mutated(data: bytes, most: int, seed: int) -> bytes:
        rng = random.Random(seed)
        try:
            changed = atheris.Mutate(data, most) if rng.randrange(3) == 0 else rng.choice(reader.mutations)(data, rng)
        except Exception:
            # libFuzzer never comes back from an error in here, and it is not the reader's.
            changed = bytes_anywhere(data, rng)
        return bytes(changed)[:most]

    with tempfile.TemporaryDirectory() as corpus:
        for number, seed in enumerate(reader.seeds()):
            (Path(corpus) / str(number)).write_bytes(seed)
        prefix = f"{keep}{os.sep}{name.replace(' ', '-')}-"
        limits = [f"-max_total_time={seconds}", f"-max_len={_LARGEST}", "-timeout=30", "-rss_limit_mb=2048"]
        options = [*limits, f"-artifact_prefix={prefix}", "-print_final_stats=1", corpus]
        warnings.simplefilter("error")
        atheris.Setup([sys.argv[0], *options], lambda data: read_bytes(reader, data) and None, custom_mutator=mutated)
        atheris.Fuzz()
    return 0


def _again(name: str, path: Path) -> int:
    from fuzz.registry import READERS
    from fuzz.test_files import read_bytes

    warnings.simplefilter("error")
    print("loaded" if read_bytes(READERS[name], path.read_bytes()) else "refused")
    return 0


if __name__ == "__main__":
    sys.exit(main())
