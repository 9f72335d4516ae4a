"""The palette, without a browser: lines stand out from the ground, and no two kinds of answers look alike.

Light and dark; three kinds of colour blindness. Fails for a colour that is too faint or too near to another one.
"""

from __future__ import annotations

import re
from importlib.resources import files
from itertools import combinations

import pytest

from report.looks import BLIND, apart, contrast

CSS = files("dphmm.report").joinpath("page.css").read_text(encoding="utf-8")
KINDS = ("released", "estimate", "smoothed", "truth")
CELLS = ("self", "neighbor", "covered")


def palette(dark):
    light, other = re.findall(r":root \{(.*?)\}", CSS, re.S)[:2]
    return dict(re.findall(r"--([a-z]+): (#[0-9a-f]{6})", other if dark else light))


@pytest.mark.parametrize("dark", [False, True])
def test_lines_and_words_stand_out(dark):
    colours = palette(dark)
    for kind in (*KINDS, "soft", "ink", "loud"):
        assert contrast(colours[kind], colours["paper"]) >= 4.5, kind
        assert contrast(colours[kind], colours["ground"]) >= 4.5, kind
    assert contrast(colours["self"], colours["neighbor"]) >= 3


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("blindness", [None, *BLIND])
def test_kinds_are_told_apart(dark, blindness):
    colours = palette(dark)
    for one, other in combinations(KINDS, 2):
        assert apart(colours[one], colours[other], blindness) >= 10, (one, other)
    for one, other in combinations(CELLS, 2):
        assert apart(colours[one], colours[other], blindness) >= 20, (one, other)


def test_the_measures_can_fail():
    assert contrast("#ffffff", "#ffffff") == 1 and contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#aaaaaa", "#ffffff") < 3
    # Red and green of one lightness, told apart by most and not by the red-green blind.
    assert apart("#b02020", "#6a6a00") > 50 and apart("#b02020", "#6a6a00", "deuteranopia") < 25
