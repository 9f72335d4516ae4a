"""The map of what follows what: its numbers are the answer's, its intervals cover, and noise alone draws nothing.

It would fail for an interval that is too short, for a least count that noise passes, and for a move that is not drawn.
"""

from __future__ import annotations

import json
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import dphmm
from browser import MISSING, find_browser, running
from dphmm.errors import InvalidInput
from dphmm.plot._flows import _in_order, _reach
from dphmm.statement.files import statement_path, write_statement
from dphmm.statement.parts import typed
from dphmm.statement.query import QueryStatement
from dphmm.storage.inputs import file_digest

STATES = ["register", "check", "decide"]
PATHS = [["register", "check", "decide"]] * 60 + [["register", "decide", "register", "decide"]] * 30


def asked(seed=1, paths=PATHS, epsilon=2, **options):
    rows = [(user, step, state) for user, path in enumerate(paths) for step, state in enumerate(path)]
    table = pd.DataFrame(rows, columns=["user", "step", "state"])
    chosen = {"states": STATES, "ends": True, "neighbours": "add-remove", "bits": dphmm.ReplayBits(seed), **options}
    return dphmm.query("flows", table, "group:5", epsilon, **chosen)


def test_the_numbers_are_those_of_the_answer_and_every_one_is_drawn():
    found = asked()
    figure = dphmm.plot.directly_follows(found)
    noisy = {(a, b): n for a, b, n in found.table.itertuples(index=False)}
    shown = {(a, b): int(n) for a, b, n, _, _ in figure.rows}
    assert shown == {pair: noisy[pair] for pair in shown} and 0 < len(shown) < len(noisy)
    assert max(count for pair, count in noisy.items() if pair not in shown) < min(shown.values())
    reach = _reach(float(found.event.parts[0].scale), 1)
    assert all((int(low), int(high)) == (int(n) - reach, int(n) + reach) for _, _, n, low, high in figure.rows)
    picture = str(figure.drawings[0])
    assert sorted(re.findall(r">([\d,]+) ± ", picture)) == sorted(f"{n:,}" for n in shown.values())
    assert {"(start)", "(end)", *STATES} == set(re.findall(r">([a-z()]+)</text>", picture))


def test_a_file_of_the_command_is_drawn_as_the_answer_is(tmp_path):
    codes = {name: f"{10 * number}.0" for number, name in enumerate(STATES, 1)}
    found = asked(paths=[[codes[name] for name in path] for path in PATHS], states=["10", "20", "30"])
    file = tmp_path / "flows.csv"
    found.table.to_csv(file, index=False)
    write_statement(file, typed(found.statement, QueryStatement))
    assert dphmm.plot.directly_follows(file).svg == dphmm.plot.directly_follows(found).svg
    file.write_text(file.read_text() + "10,10,500\n")
    with pytest.raises(InvalidInput, match=r"flows\.csv, which was changed; expected the file as dphmm query flows"):
        dphmm.plot.directly_follows(file)
    of_file = {"query": "flows", "file": {"sha256": file_digest(file)}}
    without = [json.dumps(of_file), json.dumps(of_file | {"noise": []})]
    for spoiled in ("", "[]", "{}", '{"file": 1}', "[" * 9999, *without):
        statement_path(file).write_text(spoiled)
        with pytest.raises(InvalidInput, match="expected the statement that dphmm query flows wrote beside it"):
            dphmm.plot.directly_follows(file)


@pytest.mark.slow
@pytest.mark.skipif(find_browser() is None, reason=MISSING)
@pytest.mark.parametrize("dark", [False, True])
def test_in_a_browser_names_are_in_their_boxes_and_numbers_beside_them(tmp_path, dark):
    names = {
        "register": "O_SEND CONFIRMATION OF RECEIPT (ONLINE)",
        "check": "x" * 90,
        "decide": "T10 Determine necessity to stop indication",
    }
    again = [["register", "check", "check", "decide"]] * 50
    paths = [[names[name] for name in path] for path in [*PATHS, *again] * 20]
    path = dphmm.plot.directly_follows(asked(paths=paths, epsilon="0.5", states=list(names.values()))).save(
        tmp_path / "map.svg"
    )
    drawn = "document.querySelector('rect.inside').parentNode"
    place = "(e => {const b = e.getBoundingClientRect(); return [e.textContent, b.left, b.top, b.right, b.bottom]})"
    with running(find_browser()) as browser:
        tab = browser.open(path, width=1280, dark=dark)
        boxes, words = (tab.ask(f"[...{drawn}.querySelectorAll('{kind}')].map({place})") for kind in ("rect", "text"))
        assert tab.complaints() == []
    assert len(boxes) == 5 and len(words) > 8
    for text, left, top, right, bottom in words:
        assert not [w for w in words if w[0] != text and w[1] < right and left < w[3] and w[2] < bottom and top < w[4]]
        inside = [b for b in boxes if b[1] < left and b[2] < top and right < b[3] and bottom < b[4]]
        touched = [b for b in boxes if b[1] < right and left < b[3] and b[2] < bottom and top < b[4]]
        assert (len(touched), len(inside)) == ((0, 0) if "±" in text else (1, 1)), text


def test_activities_stand_in_the_order_of_most_moves():
    figure = dphmm.plot.directly_follows(asked())
    words = re.findall(r">([a-z()]+)</text>", str(figure.drawings[0]))
    assert words == ["(start)", "register", "check", "decide", "(end)"]
    assert _in_order({("a", "b"): 1, ("b", "a"): 5}) == ["b", "a"] and _in_order({("a", "a"): 3}) == ["a"]


def test_intervals_cover_and_noise_alone_draws_nothing_nine_times_of_ten():
    """Discrete Laplace noise of three scales, 200,000 numbers each: five standard errors of 90 % are below .0034."""
    random = np.random.default_rng(5)
    for scale in (0.5, 3.0, 25.0):
        q = np.exp(-1 / scale)
        noise = random.geometric(1 - q, (2, 200_000)) - 1
        values = np.abs(noise[0] - noise[1])
        assert (values <= _reach(scale, 1)).mean() >= 0.9 - 0.0034
        # A shorter interval would not cover: the bound is as short as whole numbers let it be.
        assert _reach(scale, 1) == 0 or 2 * q ** _reach(scale, 1) / (1 + q) > 0.1
        beyond = (values[:199_000].reshape(-1, 1000) > _reach(scale, 1000)).any(axis=1)
        assert beyond.mean() <= 0.1 + 5 * np.sqrt(0.1 * 0.9 / 199)


def test_what_is_no_answer_of_flows_is_refused():
    with pytest.raises(InvalidInput, match=r"flows: got list; expected what dphmm\.query"):
        dphmm.plot.directly_follows([])
    with pytest.raises(
        InvalidInput, match=r"flows: got no count above [0-9]+, which noise reaches; expected more people"
    ):
        dphmm.plot.directly_follows(asked(paths=[["register"]], epsilon="0.1"))
    other = SimpleNamespace(table=pd.DataFrame({"state": ["a"], "count": [1]}))
    with pytest.raises(InvalidInput, match="flows: got"):
        dphmm.plot.directly_follows(other)
