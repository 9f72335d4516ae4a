"""Axes of charts: round numbers, one for all people of a page.

Claim: the numbers on an axis are whole multiples of 1, 2 or 5 times a power of ten, the axis holds everything that is
believed, and what is answered up to a quarter beyond it; charts of different people have the same numbers. It would
fail for an axis that ends at its data, or that each person has of their own.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from dphmm.report.charts import (
    Curve,
    Strip,
    alone,
    band_chart,
    commonest,
    line_chart,
    named,
    shared_scale,
    strips,
)


def band(low, high, steps=4):
    return np.broadcast_to(np.array([low, high], dtype=np.float64), (steps, 3, 2))


@pytest.mark.parametrize(
    ("believed", "answers"),
    [
        ([(-0.5, 3.5)], [[-9.0, 1.0]]),
        ([(0.5, 1.5), (2.5, 17.5)], [[], [3.0, 99.0]]),
        ([(2.0**40, 2.0**40)], [[2.0**40]]),
        ([(0.001, 0.0047)], [[0.002]]),
        ([(-340.0, 9_871.0)], [[12_000.0]]),
        ([(5.0, 5.0)], [[]]),
    ],
)
def test_ticks_are_round_and_hold_everything(believed, answers):
    scale = shared_scale([band(*ends) for ends in believed], [np.array(one, dtype=np.float64) for one in answers])
    step, ticks = scale[1] - scale[0], named(scale, "")
    digit = step / 10 ** np.floor(np.log10(step) + 1e-9)
    assert min(abs(digit - one) for one in (1, 2, 5)) < 1e-6
    least, most = min(low for low, _ in believed), max(high for _, high in believed)
    room = (most - least or 1) / 4
    near = [value for one in answers for value in one if least - room <= value <= most + room]
    assert scale[0] <= min([least, *near]) and scale[-1] >= max([most, *near])
    # No more than two steps are wasted beyond what must be there.
    assert scale[-1] <= most + room + 2 * step and scale[0] >= least - room - 2 * step
    assert 2 <= len(ticks) <= 7
    for value, name in ticks:
        assert abs(value / step - round(value / step)) < 1e-6
        assert float(name.replace(",", "")) == pytest.approx(value, rel=1e-3, abs=1e-9)
    assert len({name for _, name in ticks}) == len(ticks) or abs(scale[0]) > 1e9


def test_all_people_have_one_axis():
    people = [band(0.5, 1.5), band(2.5, 17.5)]
    scale = shared_scale(people, [np.array([1.0]), np.array([4.0])])
    found = set()
    for one in people:
        drawing = str(band_chart(one, one[:, 0].mean(axis=1), np.array([[1.0, 3.0]]), scale, 592, 140, [], "It is so."))
        found.add(tuple(re.findall(r"<text[^>]*>([^<]*)</text>", drawing)))
    assert found == {tuple(name for _, name in named(scale, ""))}


def test_an_answer_beyond_the_axis_is_a_dashed_cross_at_its_edge():
    scale = shared_scale([band(0, 4)], [np.array([1000.0])])
    drawing = str(band_chart(band(0, 4), np.full(4, 2.0), np.array([[0.0, 1000.0]]), scale, 592, 140, [], "It is so."))
    assert drawing.count("beyond") == 1 and "-1000" not in drawing


def test_strips_fill_the_pitch():
    one = Strip("a", [0, 0, 1], [0.5, 1.0, 0.9], [(1, 1)], range(3))
    for pitch in (52.0, 84.0):
        drawing = strips([one, one], ["x", "y"], 592, pitch, [], "It is so.", [0, 1])
        assert drawing.height == 2 * pitch + 26
        assert f'height="{pitch - 28:g}"' in str(drawing)


def over_steps(values, without, width=540.0, unit="m", name="expected", style="other"):
    """A chart of errors over the steps of a block."""
    steps = np.arange(len(values)) + 0.5
    base = Curve(np.stack([steps, np.full(len(values), without)], axis=1), "without the file", "faint")
    return str(line_chart([Curve(np.stack([steps, values], axis=1), name, style)], base, width, unit, [], "It is so."))


def test_the_number_on_top_of_an_axis_of_errors_is_not_cut():
    drawn = over_steps(np.full(12, 1300.0), 1400.0)
    ends = re.findall(r'x="([\d.]+)"[^>]*text-anchor="end">([^<]*)<', drawn)
    assert ("1,500 m" in [told for _, told in ends]) and all(float(x) >= 7.4 * len(told) for x, told in ends)


def test_a_step_between_two_without_rows_is_a_dot():
    values = np.array([np.nan, 3.0, np.nan, 4.0, 5.0, np.nan, 6.0])
    assert alone(values).tolist() == [1, 6] and over_steps(values, 9.0, unit="").count('class="dot-other"') == 2


def test_a_row_lies_on_the_axis_that_all_people_share():
    """One person has a single row, two steps after the others begin; another a gap."""
    drawn = [
        str(
            strips(
                [Strip("a", [0] * 4, [0.9] * 4, [], range(4)), other], ["x", "y"], 592, 60.0, [], "It is so.", [0, 1]
            )
        )
        for other in (Strip("b", [1], [0.9], [(0, 1)], [2]), Strip("b", [1, 1], [0.9] * 2, [], [0, 3]))
    ]
    grey = [[float(x) for x in re.findall(r'<rect class="label-1 sure-9" x="([\d.]+)"', drawing)] for drawing in drawn]
    own = [float(x) for x in re.findall(r'<rect class="label-0 sure-9" x="([\d.]+)"', drawn[0])]
    assert grey == [[own[2]], [own[0], own[3]]]
    (square,) = re.findall(r'<rect class="label-1" x="([\d.]+)"', drawn[0])
    assert own[2] < float(square) < own[3]


def test_a_name_in_a_strip_is_told_or_left_out():
    from dphmm.report.charts import whole_or_short

    assert whole_or_short("employment", 70.0) == "employment" and whole_or_short("employment", 30.0) == ""
    assert whole_or_short("job", 21.0) == "job" and whole_or_short("job", 14.0) == ""


def drawn(chart, style):
    """The points (n, 2) of each path of a class."""
    paths = re.findall(rf'<path class="{style}" d="([^"]*)"', chart)
    return [np.array(re.findall(r"(-?[\d.]+) (-?[\d.]+)", path), dtype=np.float64) for path in paths]


DAYS = (1, 2, 3, 5, 7, 10, 14, 21, 30)
#: Lines as plans have them: name, style, error by day; what is known without the file.
STAYS = {
    "apart": ([("3 a day", "other", lambda day: 900 / day**0.4, 30), ("12 a day (this file)", "main",
               lambda day: 150, 30)], 700.0),
    "a short line under the main one": ([("3 a day", "other", lambda day: 770 / day**0.6, 30),
        ("12 a day (this file)", "main", lambda day: max(130, 270 / day**0.5), 30),
        ("an answer at every step", "faint", lambda day: 128, 3)], 2600.0),
    "all found at once": ([("2 a day", "other", lambda day: 1900 - 40 * day, 30),
        ("8 a day (this file)", "main", lambda day: 230, 30),
        ("an answer at every step", "faint", lambda day: 229, 3)], 2700.0),
    "far below a cell": ([("8 a day (this file)", "main", lambda day: 300 / day**0.2, 5)], 2760.0),
}  # fmt: skip


@pytest.mark.parametrize("width", [540, 340])
@pytest.mark.parametrize("case", STAYS)
def test_every_line_is_named_above_the_chart_after_a_piece_of_it(case, width):
    """The error without the file is a line, or has an arrow where it is far beyond the others."""
    given, without = STAYS[case]
    lines = [Curve([(day, of(day)) for day in DAYS if day <= last], name, style) for name, style, of, last in given]
    base = Curve([(1, without), (30, without)], "without the file", "faint")
    chart = str(line_chart(lines, base, width, "m", [(1, "1 day"), (30, "30")], "It is so.", log=True, inside=340.0))
    own = [points for style in ("main", "other", "faint") for points in drawn(chart, f"line-{style}")]
    curves, pieces = ([one for one in own if (one[0, 0] == 0) == beside] for beside in (False, True))
    texts = re.findall(r'<text x="([\d.]+)" y="([\d.]+)">([^<]*)<', chart)
    far = without > 2.5 * max(340.0, *(error for line in lines for _, error in line.points))
    assert [name for _, _, name in texts] == [line.name for line in lines] + ["↑ " * far + base.name]
    assert len(curves) == len(pieces) == len(lines) + (not far)
    highest = min(points[:, 1].min() for points in curves)
    for x, y, name in texts:
        assert float(x) + 7 * len(name) <= width and float(y) + 10 <= highest
    assert sorted(piece[0, 1] + 4 for piece in pieces) == [float(y) for _, y, _ in texts][: len(pieces)]


def test_a_chart_within_one_cell_is_shaded_as_far_as_it_goes():
    lines, base = [Curve([(1, 300.0), (2, 250.0)], "this file", "main")], Curve([(1, 2700.0)], "without", "faint")
    for inside in (600.0, 5000.0):
        chart = str(line_chart(lines, base, 540, "m", [], "It is so.", log=True, inside=inside))
        assert float(re.search(r'<rect class="inside"[^>]*height="([\d.]+)"', chart)[1]) > 80


def test_labels_go_by_how_often_they_are_published():
    names = ["c", "b", "a", "g", "f", "e", "d", "h"]
    assert commonest(names, np.array([7, 7, 3, 0])) == [7, 0, 3, 2, 1, 6, 5, 4]
    one = Strip("a", [7, 6], [1.0, 1.0], [(1, 3)], range(2))
    drawn = str(strips([one], names, 592, 60.0, [], "It is so.", [3, 4, 2, 1, 5, 5, 5, 0]))
    assert re.findall(r'"label-(\d)(?: sure-10)?"', drawn) == ["1", "0", "5"]
