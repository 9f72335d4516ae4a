"""The parts of a page as HTML: every word that comes from data is escaped here."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from html import escape

import numpy as np
from msgspec import UNSET

from dphmm.accounting.records import in_short
from dphmm.report.charts import degree_figure, error_figure, trace_figure
from dphmm.report.content import ReleaseReport
from dphmm.report.hulls import hull_figure
from dphmm.report.maps import day_figures
from dphmm.report.svg import Drawing
from dphmm.storage.statement_types import ReleaseStatement, epsilons_of, member

Cells = Sequence[object]


def head(report: ReleaseReport) -> str:
    """Title, what was promised in two sentences, and what the reader must know first."""
    statement = report.statement
    owner = f'<p class="owner" role="alert"><strong>{_OWNER[0]}</strong> {_OWNER[1]}</p>' if report.owner_only else ""
    loud = "".join(
        f'<p class="loud"><strong>{escape(word)}:</strong> {escape(why)}.</p>'
        for word, reasons in (
            ("Not private", statement.not_private_because),
            ("Not known to be private", statement.unknown_because or ()),
        )
        for why in reasons
    )
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in report.notes)
    sentences = [*statement.promise.meaning, *_of_places(statement)]
    promise = "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)
    over = _over_the_sequence(statement)
    return f"<header>{owner}<h1>{escape(report.title)}</h1>{loud}{notes}</header>" + section(
        "promise", "What was promised", promise + _tiles(report) + over
    )


_OWNER = (
    "For the data owner alone.",
    "This page shows where real people truly were. It is no release: nothing protects them from whoever reads it.",
)


def _over_the_sequence(statement: ReleaseStatement) -> str:
    """What all answers of a subject promise together, when subjects are asked, and what steps have of their own."""
    parts = (statement.sequence, statement.schedule, statement.varied, statement.beginnings)
    sentences = [sentence for part in parts if part is not UNSET for sentence in part.meaning]
    if not sentences:
        return ""
    return "<h3>Over the whole sequence</h3>" + "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)


def _of_places(statement: ReleaseStatement) -> list[str]:
    """How far apart places are still hidden from each other, on a map; a number and its unit stay on one line."""
    meaning = member(statement, "covered_distance.meaning")
    return [] if meaning is None else [re.sub(r"(?<=[0-9]) (?=k?m\b)", "\u00a0", meaning)]


def pictures(report: ReleaseReport) -> str:
    """The day of one subject, the error and the protection over time, and the hull."""
    parts = []
    if len(report.rows):
        drawings = day_figures(report) if report.space.dimension > 1 else [trace_figure(report)]
        name = f"One subject: {report.subject}"
        parts.append(section("day", name, figure(drawings, _day_caption(report))))
    if report.truth is not None and report.known.any():
        error = error_figure(report)
        drawn = "" if error is None else figure([error], "")
        parts.append(section("error", "How far off", drawn + _error_table(report)))
    degree = degree_figure(report)
    if degree is not None:
        parts.append(section("degree", "Among how many a state hides", figure([degree], _DEGREE_CAPTION)))
    hull = hull_figure(report)
    if hull is not None:
        parts.append(section("hidden", "Whom a state hides among", figure([hull], _HULL_CAPTION, _KEY)))
    return "".join(parts)


def costs(report: ReleaseReport) -> str:
    """What the releases cost, each total with the sentence that says what it means."""
    statement = report.statement
    totals = statement.totals
    cost = totals.cost_sum_meaning
    if totals.cost_unbounded_because:
        cost = f"unbounded: {totals.cost_unbounded_because}"
    rows = [
        (
            "epsilon of each release",
            _epsilon(report),
            "the promise of one release, given all before it",
        ),
        ("cost of a release", _cost_range(report), "Theorem 6.3: bounds the loss of any two possible states"),
        ("sum of epsilons", totals.epsilon_sum, totals.epsilon_sum_meaning),
        ("sum of costs", totals.cost_sum, cost),
    ]
    heading = ("", "value", "what it means")
    after = f"<p>The sums are of {escape(totals.of)}.</p>"
    more = "<h3>Over time</h3>" + table(heading, report.totals, "wordy") if report.totals else ""
    return section("costs", "What it cost", table(heading, rows, "wordy") + after + more)


def limits(report: ReleaseReport) -> str:
    """What is not protected."""
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in report.statement.not_protected)
    assumes = f"<p>{escape(report.statement.promise.assumes)}</p>"
    return section("limits", "What is not protected", f"<ul>{items}</ul>{assumes}")


def parameters(report: ReleaseReport) -> str:
    """Every public choice, and the hashes that name what was used."""
    s = report.statement
    software = f"{s.software.name} {s.software.version} (algorithm {s.software.algorithm_version})"
    chosen = ", ".join(f"{name} ({count:,} rows)" for name, count in s.mechanism.chosen.items())
    policy = ", ".join(
        f"{key} {value}" for key, value in (s.policy.parameters or {}).items() if key != "n_states" and _brief(value)
    )
    rows = [
        ("software", software),
        ("definition", f"{s.promise.definition}, {s.promise.source}"),
        ("unit of privacy", s.unit_of_privacy),
        ("policy", f"{s.policy.kind}: {policy}"),
        ("constraint", f"{s.constraint.name}. {s.constraint.meaning}"),
        ("mechanism", f"{s.mechanism.asked}: {chosen}"),
        ("scope", f"{s.scope.name}. {s.scope.meaning}"),
        ("flat bodies", f"{s.flat.name}. {s.flat.meaning}"),
        ("states", f"{s.space.states:,} ({s.space.kind}, {s.space.dimension} dimensions)"),
        ("model", s.model.meaning),
        ("randomness", s.randomness.meaning),
        ("hash of the states", s.space.sha256),
        ("hash of the model", s.model.sha256),
        ("hash of the policy", s.policy.sha256),
        ("plans", f"{s.plans.count:,}, hash of their hashes {s.plans.sha256}"),
    ]
    if s.file:
        rows.append(("hash of the file", s.file.sha256))
    return section("parameters", "Parameters and hashes", table(("", ""), rows, style="parameters wordy"))


def section(name: str, title: str, content: str) -> str:
    """A section under a heading; ``content`` is HTML."""
    return f'<section aria-labelledby="{name}-h"><h2 id="{name}-h">{escape(title)}</h2>{content}</section>'


def figure(drawings: Sequence[Drawing], caption: str, key: str = "") -> str:
    """Pictures side by side, and what to see in them; ``key`` is HTML."""
    told = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return f'<figure><div class="panels">{"".join(map(str, drawings))}{key}</div>{told}</figure>'


def table(heading: Cells, rows: Iterable[Cells], style: str = "") -> str:
    """A table; the first cell of each row is its heading. An empty heading row is left out."""
    top = "".join(f'<th scope="col">{escape(str(cell))}</th>' if cell else "<td></td>" for cell in heading)
    top = f"<thead><tr>{top}</tr></thead>" if any(heading) else ""
    body = "".join(_row(row) for row in rows)
    return f'<div class="wide"><table class="{style}">{top}<tbody>{body}</tbody></table></div>'


def short(exact: str) -> str:
    """A fraction as a short decimal, never less than it is."""
    return in_short(exact)


def _row(cells: Cells) -> str:
    first, *others = cells
    return f'<tr><th scope="row">{escape(str(first))}</th>' + "".join(
        f"<td>{escape(str(cell))}</td>" for cell in others
    ) + "</tr>"  # fmt: skip


def _answers(report: ReleaseReport) -> int:
    """Rows that have an answer: a schedule leaves others out."""
    schedule = report.statement.schedule
    return report.statement.published.rows - (0 if schedule is UNSET else schedule.not_asked)


def _epsilon(report: ReleaseReport) -> str:
    """The epsilon of each release, or the largest that a step has."""
    least, most = epsilons_of(report.statement)
    return short(str(most)) if least == most else f"at most {short(str(most))}"


def _tiles(report: ReleaseReport) -> str:
    published = report.statement.published
    tiles = [
        (f"{_answers(report):,}", "releases"),
        (f"{published.subjects:,}", "subjects"),
        (_epsilon(report), "epsilon of each"),
    ]
    if report.truth is not None and report.elsewhere.any():
        tiles.append((f"{100 * report.elsewhere.mean():.1f} %", "rows in no state, left out of the errors"))
    if report.truth is not None and report.inside.any():
        tiles.append((report.shown(report.mean_error(report.z)), "mean error as released"))
        tiles.append((report.shown(report.mean_error(report.estimate)), "mean error of the estimate"))
        if report.smoothed is not None:
            tiles.append((report.shown(report.mean_error(report.smoothed)), "mean error with later answers"))
    inside = "".join(f"<div><dt>{escape(what)}</dt><dd>{escape(value)}</dd></div>" for value, what in tiles)
    return f'<dl class="tiles">{inside}</dl>'


def _error_table(report: ReleaseReport) -> str:
    """The errors of rows in a state, and apart from them of rows in none."""
    kinds = [("as released", report.z), ("Bayes estimate", report.estimate)]
    if report.smoothed is not None:
        kinds.append(("with later answers", report.smoothed))
    rows: list[Cells] = []
    for which, apart in ((report.inside, ""), (report.known & report.elsewhere, ", rows in no state")):
        for name, answers in kinds if which.any() else []:
            errors = report.errors(answers, which)
            shown = [report.shown(value) for value in (errors.mean(), *np.quantile(errors, (0.5, 0.9)))]
            rows.append((name + apart, *shown))
    elsewhere = f"{report.elsewhere.sum():,} of {len(report.elsewhere):,} rows ({100 * report.elsewhere.mean():.1f} %)"
    said = f"<p>{elsewhere} are in no state of the model. {_MEASURED[report.on_map]}</p>"
    return table(("distance to the truth", "mean", "median", "9 in 10 below"), rows, style="numbers") + said


def _cost_range(report: ReleaseReport) -> str:
    cost = report.released.column("cost").to_numpy()
    if len(cost) == 0:
        return "none"
    low, high = float(cost.min()), float(cost.max())
    told = ["unbounded" if value == math.inf else f"{value:.4g}" for value in (low, high)]
    return told[0] if low == high else f"{told[0]} to {told[1]}"


def _brief(value: object) -> bool:
    return isinstance(value, (str, int, float, bool)) and len(str(value)) <= 40


def _day_caption(report: ReleaseReport) -> str:
    said = (
        "The estimate is computed from the released answers and the public model alone: anybody can do it, "
        "and it costs no privacy."
    )
    if report.smoothed is not None:
        said += " With later answers means: from all answers of the subject, those after a step too."
    if report.space.dimension > 1:
        said += " Rings at the border are releases that lie farther out."
    if report.space.dimension > 2:
        said += f" Of the {report.space.dimension} numbers of an answer the first two are drawn."
    if report.truth is None:
        return said
    return (
        "What only the subject knows, what was published, and what an attacker makes of it. A place where "
        "the subject stays is released again and again, and the estimate closes in on it: epsilon is the "
        "promise of each "
        "release, not of a day. " + said
    )


#: How errors are measured: elsewhere, and on a map.
_MEASURED = (
    "Distances are between answers; a state that the model does not have has none.",
    "Distances are on the ground, from the true place and not from its cell's middle.",
)
_HULL_CAPTION = (
    "The noise of a release has the shape of the sensitivity hull: wherever a policy neighbour is, moving "
    "the true cell there changes the probability of every answer by at most the factor exp(epsilon)."
)
_DEGREE_CAPTION = (
    "The degree of protection of a state is the number of states, itself counted, that no answer tells from it by more "
    "than the factor exp(epsilon). It is counted for every state of a step; the pictured subject's steps are shown."
)
_KEY = (
    '<ul class="key"><li><span class="swatch self"></span>one state</li>'
    '<li><span class="swatch neighbor"></span>its policy neighbours: not to be told apart from it</li>'
    '<li><span class="swatch covered"></span>as well hidden, for free</li>'
    '<li><span class="swatch hullline"></span>the sensitivity hull: the shape of the noise</li></ul>'
)
