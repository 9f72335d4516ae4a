"""Every script in examples/ runs as it stands and prints what it promises."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
#: What each example must print.
PRINTS = {
    "activity_log.py": ["80 answers about 20 people, 41% wrong expected", "of 480 hours"],
    "careers.py": ["all states hide one another: 35% of", "month 4: "],
    "one_subject.py": ["step 1: released [", "step 3: released [", "spent (epsilon, cost): Spent("],
    "table_with_pandas.py": ["z_lat", "576 rows of 4 people", "the same: True"],
    "web_pages.py": ["step 1: released ", "step 4: released ", "% sure", "epsilon = 2;"],
}


def test_every_example_is_known() -> None:
    assert sorted(PRINTS) == sorted(path.name for path in EXAMPLES.glob("*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("name", PRINTS)
def test_example_runs(name: str, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", str(EXAMPLES / name)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    for words in PRINTS[name]:
        assert words in done.stdout
    assert done.stderr == ""
    assert list(tmp_path.iterdir()) == [], "an example leaves nothing behind"
