"""The part of a page that a reader moves through: a map with a slider, what hides a state, and lines over time.

Without JavaScript it stays hidden; whatever comes from data is put in by the scripts as text, never as markup.
"""

from __future__ import annotations

from html import escape
from importlib.resources import files

from dphmm.report.content import ReleaseReport
from dphmm.report.dataset import dataset
from dphmm.report.encoding import script_json
from dphmm.report.timeline import Timeline

_PARTS = ("data.js", "map.js", "charts.js", "explorer.js")


def explorer(report: ReleaseReport) -> str:
    """The section; nothing where no subject is to be explored."""
    if not len(report.explored):
        return ""
    return (
        '<section id="explorer" aria-labelledby="explorer-h" hidden>'
        '<h2 id="explorer-h">Step by step</h2>'
        f"{_controls()}"
        '<div class="stage"><div class="mapside">'
        f"{_map(report)}{_layers(report)}</div>"
        '<dl id="facts" class="facts"></dl></div>'
        '<p id="said" role="status" class="unseen"></p>'
        f"{_charts(report)}</section>"
        '<noscript><p class="note">With JavaScript this page also shows every step by itself, with a slider; the '
        "script is part of the page and loads nothing.</p></noscript>"
    )


def data_block(report: ReleaseReport) -> str:
    """What the scripts read; nothing where there is nothing to explore."""
    if not len(report.explored):
        return ""
    return f'<script type="application/json" id="release-data">{script_json(dataset(report))}</script>'


def script() -> str:
    """The scripts of the explorer, the same on every page."""
    folder = files("dphmm.report").joinpath("script")
    parts = "\n".join(folder.joinpath(name).read_text(encoding="utf-8") for name in _PARTS)
    return f'(() => {{\n"use strict";\n{parts}}})();\n'


def _controls() -> str:
    return (
        '<div class="controls"><label>Subject <select id="subject"></select></label>'
        '<div class="buttons"><button type="button" id="back" aria-label="One step back">◀</button>'
        '<button type="button" id="play">Play</button>'
        '<button type="button" id="forward" aria-label="One step forward">▶</button></div>'
        '<input type="range" id="step" min="0" max="0" value="0" step="1" aria-label="Time step">'
        '<output id="when" for="step subject"></output></div>'
    )


def _map(report: ReleaseReport) -> str:
    words = "The states, and around one of them the sensitivity hull; the marks are the answers at this step."
    if report.timeline is None:
        words = "The states, and the answers at this step."
    pick = ' tabindex="0"' if report.timeline is not None else ""
    return f'<svg id="map" class="live" role="img" aria-label="{escape(words)}"{pick}></svg>'


def _layers(report: ReleaseReport) -> str:
    kinds = [("released", "released"), ("estimate", "Bayes estimate")]
    if report.smoothed is not None:
        kinds.append(("smoothed", "with later answers"))
    if report.truth is not None:
        kinds.insert(0, ("truth", "truth (simulated)" if report.simulated else "truth"))
    boxes = [_box(layer, f'<span class="mark-{layer}" aria-hidden="true"></span>{words}') for layer, words in kinds]
    if report.timeline is not None:
        boxes.append(_box("hull", '<span class="mark-hull" aria-hidden="true"></span>who hides whom'))
        boxes.append(_box("edges", '<span class="mark-edge" aria-hidden="true"></span>policy edges'))
    return f'<div class="layers" role="group" aria-label="Shown on the map">{"".join(boxes)}</div>{_around(report)}'


def _box(layer: str, words: str) -> str:
    return f'<label><input type="checkbox" data-layer="{layer}">{words}</label>'


def _around(report: ReleaseReport) -> str:
    """Around which state the hull is drawn, and for answers of more than two numbers which are shown."""
    parts = []
    if report.timeline is not None and report.space.dimension > 0:
        options = [("estimate", "the likeliest state"), ("released", "the state nearest to the answer")]
        if report.truth is not None:
            options.append(("truth", "the true state"))
        options.append(("picked", "a state that I click, or reach with the arrow keys"))
        chosen = "".join(f'<option value="{value}">{words}</option>' for value, words in options)
        parts.append(f'<label>Hull around <select id="around">{chosen}</select></label>')
        parts.append(_key(report.timeline, report.space.n_states))
    if report.space.dimension > 2:
        for axis, default in (("across", 0), ("up", 1)):
            options = [(str(j), f"number {j + 1}") for j in range(report.space.dimension)]
            chosen = "".join(
                f'<option value="{value}"{" selected" if int(value) == default else ""}>{words}</option>'
                for value, words in options
            )
            parts.append(f'<label>{axis.capitalize()} <select id="{axis}">{chosen}</select></label>')
    return f'<div class="around">{"".join(parts)}</div>' if parts else ""


def _key(timeline: Timeline, n_states: int) -> str:
    """What the colours of states mean, as far as they occur."""
    plans = timeline.plans
    kinds = [("self", "this state", True), ("neighbor", "its policy neighbours", True)]
    kinds += [
        ("joined", "joined to it by protection", any(plan.joins for plan in plans)),
        ("covered", "hidden with it as well", True),
        ("unplanned", "possible, but answered as another state", any(plan.support != plan.plan_set for plan in plans)),
        ("excluded", "not possible", any(plan.states[0] < n_states for plan in plans)),
    ]
    items = "".join(f'<li><span class="swatch {style}"></span>{words}</li>' for style, words, there in kinds if there)
    return f'<ul class="key">{items}</ul>'


def _charts(report: ReleaseReport) -> str:
    parts = []
    if report.timeline is not None:
        words = "Degree of protection over the steps: among how many states a state is hidden, itself counted; the "
        words += "line is the mean over the states of a step, the band reaches from the least to the most protected."
        parts.append(_chart("degrees", "Degree of protection", words))
    if report.truth is not None:
        unit = ", in metres" if report.on_map else ""
        parts.append(
            _chart(
                "errors",
                "Error",
                f"Distance to the truth, where it is in a state, over the steps{unit}: {_lines(report)}.",
            )
        )
    words = "What was spent up to each step: the solid line is the sum of costs, which bounds the loss of "
    words += "any two histories (Theorem 7.2); the dashed line is the sum of epsilons, which bounds the loss of two "
    words += "paths that are equal or joined by the policy at every step, but not that of two states of one step."
    parts.append(_chart("spending", "What was spent", words))
    return f'<div class="charts">{"".join(parts)}</div>'


def _lines(report: ReleaseReport) -> str:
    said = "orange dots the released answers, blue dashes the Bayes estimate"
    return said + (", green the estimate with later answers" if report.smoothed is not None else "")


def _chart(name: str, title: str, words: str) -> str:
    return (
        f'<figure><h3>{escape(title)}</h3><svg id="{name}" class="live" role="img"></svg>'
        f'<figcaption id="{name}-words" data-words="{escape(words)}">{escape(words)}</figcaption></figure>'
    )
