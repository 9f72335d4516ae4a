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
    Curves,
    Line,
    Scale,
    Strip,
    alone,
    band_chart,
    colours_of,
    commonest,
    error_chart,
    log_chart,
    strips,
)
from dphmm.report.palette import LABELS


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
    scale = Scale.of([band(*ends) for ends in believed], [np.array(one, dtype=np.float64) for one in answers])
    digit = scale.step / 10 ** np.floor(np.log10(scale.step) + 1e-9)
    assert min(abs(digit - one) for one in (1, 2, 5)) < 1e-6
    least, most = min(low for low, _ in believed), max(high for _, high in believed)
    room = (most - least or 1) / 4
    near = [value for one in answers for value in one if least - room <= value <= most + room]
    assert scale.low <= min([least, *near]) and scale.high >= max([most, *near])
    # No more than two steps are wasted beyond what must be there.
    assert scale.high <= most + room + 2 * scale.step and scale.low >= least - room - 2 * scale.step
    assert 2 <= len(scale.ticks) <= 7
    for value, name in scale.ticks:
        assert abs(value / scale.step - round(value / scale.step)) < 1e-6
        assert float(name.replace(",", "")) == pytest.approx(value, rel=1e-3, abs=1e-9)
    assert len({name for _, name in scale.ticks}) == len(scale.ticks) or abs(scale.low) > 1e9


def test_all_people_have_one_axis():
    people = [band(0.5, 1.5), band(2.5, 17.5)]
    scale = Scale.of(people, [np.array([1.0]), np.array([4.0])])
    named = set()
    for one in people:
        drawing = str(band_chart(one, one[:, 0].mean(axis=1), np.array([[1.0, 3.0]]), scale, 592, 140, [], "It is so."))
        named.add(tuple(re.findall(r"<text[^>]*>([^<]*)</text>", drawing)))
    assert named == {tuple(name for _, name in scale.ticks)}


def test_an_answer_beyond_the_axis_is_a_dashed_cross_at_its_edge():
    scale = Scale.of([band(0, 4)], [np.array([1000.0])])
    drawing = str(band_chart(band(0, 4), np.full(4, 2.0), np.array([[0.0, 1000.0]]), scale, 592, 140, [], "It is so."))
    assert drawing.count("beyond") == 1 and "-1000" not in drawing


def test_strips_fill_the_pitch():
    one = Strip("a", [0, 0, 1], [0.5, 1.0, 0.9], [(1, 1)])
    for pitch in (52.0, 84.0):
        drawing = strips([one, one], ["x", "y"], 592, pitch, [], "It is so.", [0, 1])
        assert drawing.height == 2 * pitch + 26
        assert f'height="{pitch - 28:g}"' in str(drawing)


def test_the_number_on_top_of_an_axis_of_errors_is_not_cut():
    curves = Curves(np.full(12, 1300.0), None, None, np.full(12, 1400.0), "expected", [])
    drawn = str(error_chart(curves, 540.0, "m", [], "without", "finding"))
    ends = re.findall(r'x="([\d.]+)"[^>]*text-anchor="end">([^<]*)<', drawn)
    assert ("1,500 m" in [told for _, told in ends]) and all(float(x) >= 7.4 * len(told) for x, told in ends)


def test_a_step_between_two_without_rows_is_a_dot():
    values = np.array([np.nan, 3.0, np.nan, 4.0, 5.0, np.nan, 6.0])
    drawn = str(error_chart(Curves(values, None, None, np.full(7, 9.0), "expected", []), 540.0, "", [], "w", "f"))
    assert alone(values).tolist() == [1, 6] and drawn.count('class="dot-main"') == 2


def test_a_row_lies_on_the_axis_that_all_people_share():
    """One person has a single row, two steps after the others begin; another a gap."""
    drawn = [
        str(strips([Strip("a", [0] * 4, [0.9] * 4, []), other], ["x", "y"], 592, 60.0, [], "It is so.", [0, 1]))
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
    """The points (n, 2) of the path, and the place and words of the texts, of a class."""
    path = re.search(rf'<path class="{style}" d="([^"]*)"', chart)
    pairs = re.findall(r"(-?[\d.]+) (-?[\d.]+)", path[1]) if path else []
    texts = re.findall(rf'<text class="{style}" x="([\d.]+)" y="([\d.]+)"[^>]*>([^<]*)<', chart)
    return np.array(pairs, dtype=np.float64), [(float(x), float(y), words) for x, y, words in texts]


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
def test_a_name_stands_by_its_own_line_and_over_no_other(case, width):
    """Or below the chart, after a piece of its line; the error without the file is a line, or named above the chart."""
    given, without = STAYS[case]
    lines = [Line([(day, of(day)) for day in DAYS if day <= last], name, style) for name, style, of, last in given]
    chart = str(log_chart(lines, width, "m", "It is so.", (without, "without the file"), str, inside=340.0))
    curves = {f"name-{line.style}": drawn(chart, f"line-{line.style}")[0] for line in lines}
    if 'class="reference"' in chart:
        curves["soft"] = drawn(chart, "reference")[0]
        texts = drawn(chart, "soft")[1]
    else:
        texts = []
        assert (
            "↑ without the file" in chart
            and float(re.search(r'text class="soft" x="[^"]*" y="([^"]*)"', chart)[1]) < 20
        )
    height = float(re.search(r'height="([\d.]+)" role', chart)[1])
    for style in curves:
        ((x, y, words),) = texts if style == "soft" else drawn(chart, style)[1]
        across = np.linspace(x, x + 7 * len(words), 80)
        assert across[-1] <= width and y <= height
        if y > 215:
            # Below the chart: a piece of the line stands before the name.
            assert f'd="M{x - 32:g} {y - 4:g}L{x - 6:g} {y - 4:g}"' in chart
            continue
        gap = {
            other: np.nan_to_num(np.interp(across, *points.T, left=np.nan, right=np.nan) - (y - 4), nan=np.inf)
            for other, points in curves.items()
        }
        assert all(np.abs(one).min() >= 7 for one in gap.values()), style
        own = curves[style]
        near = np.hypot(np.clip(own[:, 0], x, across[-1]) - own[:, 0], 0) + np.abs(own[:, 1] - (y - 4))
        assert min(near.min(), np.abs(gap[style]).min()) <= 40
        if np.abs(gap[style]).min() < np.inf:
            assert min(gap, key=lambda other: np.abs(gap[other]).min()) == style


def test_a_chart_within_one_cell_is_shaded_as_far_as_it_goes():
    lines = [Line([(1, 300.0), (2, 250.0)], "this file", "main")]
    for inside in (600.0, 5000.0):
        chart = str(log_chart(lines, 540, "m", "It is so.", (2700.0, "without"), str, inside=inside))
        assert float(re.search(r'<rect class="inside"[^>]*height="([\d.]+)"', chart)[1]) > 80


def test_the_name_of_a_measured_error_ends_within_the_chart():
    """Its lowest step is the last one of the day."""
    steps = np.arange(144)
    curves = Curves(1.2 + 0.2 * np.sin(steps / 20), 2.0 - steps / 144, None, np.full(144, 2.7), "expected", [11, 83])
    chart = str(error_chart(curves, 340, "m", [(0, "0:00"), (144, "24:00")], "without the file 3 m", "It is so."))
    ((x, _, words),) = drawn(chart, "measured-name")[1]
    assert x + 8 * len(words) <= 340


def test_the_labels_named_most_often_have_a_colour():
    """By the order of names the commonest of many was "other", and nearly every strip of one colour."""
    few = [chr(97 + number) for number in range(len(LABELS))]
    assert colours_of(few, np.array([5, 5, 5])) == list(range(len(LABELS)))
    names = ["c", "b", "a", "g", "f", "e", "d", "h"]
    # h three times, g twice, a and c once; of those that nobody named the first by name is "b".
    assert colours_of(names, np.array([7, 7, 7, 3, 3, 0, 2])) == [3, 4, 2, 1, 5, 5, 5, 0]
    assert commonest(names, np.array([7, 7, 3, 0])) == [7, 0, 3, 2, 1, 6, 5, 4]
    one = Strip("a", [7, 6], [1.0, 1.0], [(1, 3)])
    drawn = str(strips([one], names, 592, 60.0, [], "It is so.", [3, 4, 2, 1, 5, 5, 5, 0]))
    assert re.findall(r'"label-(\d)(?: sure-10)?"', drawn) == ["1", "0", "5"]
