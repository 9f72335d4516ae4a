"""The palette, without a browser: words stand out from the paper, and no two marks look alike to the colour-blind.

Light and dark; three kinds of colour blindness, and grey. Fails for a colour that is too faint or too near to another.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from dphmm.report.figures import COLOURS
from dphmm.report.svg import style
from report.looks import BLIND, DARK, ROLES, apart, contrast, linear

#: Roles that words are written in.
WORDS = ("ink", "soft", "belief-line", "guarantee", "danger")
GROUNDS = ("paper", "panel")
#: Marks that lie on one map: an answer, the believed sets and their outline, the truth.
MARKS = ("published", "belief-line", "ink", "guarantee")
SHADES = ("land", "belief-95", "belief-80", "belief-50")


@pytest.mark.parametrize("dark", [False, True])
def test_words_stand_out(dark):
    for word in WORDS:
        for ground in GROUNDS:
            assert contrast(ROLES[word][dark], ROLES[ground][dark]) >= 4.5, (word, ground)
    for word in ("soft", "ink"):
        assert contrast(ROLES[word][dark], ROLES["paper"][dark]) >= 4.7
        assert contrast(ROLES[word][dark], ROLES["land"][dark]) >= 4.5


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("blindness", [None, *BLIND])
def test_marks_are_told_apart(dark, blindness):
    """From one another and from the land; a cross and a ring also have outlines of paper."""
    for one, other in combinations(MARKS, 2):
        assert apart(ROLES[one][dark], ROLES[other][dark], blindness) >= 10, (one, other)
    for mark in MARKS:
        assert contrast(ROLES[mark][dark], ROLES["land"][dark]) >= 3, mark


@pytest.mark.parametrize("dark", [False, True])
def test_the_shades_of_a_belief_are_a_scale_in_grey_too(dark):
    """Each step is darker (or lighter) than the one before; the palest has an outline, for it is near the land."""
    light = [float(linear(ROLES[shade][dark]) @ [0.2126, 0.7152, 0.0722]) for shade in SHADES]
    steps = np.diff(light) if dark else -np.diff(light)
    assert (steps > 0).all()
    assert contrast(ROLES["belief-line"][dark], ROLES["land"][dark]) >= 4.5


@pytest.mark.parametrize("dark", [False, True])
def test_the_best_guess_is_seen_in_the_likeliest_cells(dark):
    assert contrast(ROLES["guess"][dark], ROLES["belief-50"][dark]) >= (2.2 if dark else 1.4)


@pytest.mark.parametrize("dark", [False, True])
def test_labels_have_colours_of_their_own(dark):
    colours = [colours[dark] for role, colours in ROLES.items() if role.startswith("label-")]
    assert len(colours) == COLOURS
    for one, other in combinations(colours, 2):
        assert apart(one, other) >= 20
    assert all(contrast(colour, ROLES["paper"][dark]) >= 3 for colour in colours)


def test_a_page_prints_in_light_colours():
    light, dark = style("palette").split("@media screen and (prefers-color-scheme:dark)")
    assert DARK["ink"] in dark and not any(f":{colour};" in light for colour in set(DARK.values()) - {"#ffffff"})


def test_the_measures_can_fail():
    assert contrast("#ffffff", "#ffffff") == 1 and contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#aaaaaa", "#ffffff") < 3
    # Red and green of one lightness, told apart by most and not by the red-green blind.
    assert apart("#b02020", "#6a6a00") > 50 and apart("#b02020", "#6a6a00", "deuteranopia") < 25
