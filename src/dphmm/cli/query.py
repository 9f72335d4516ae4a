"""dphmm query: counts, centroids, degrees and classifiers over records that depend on each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from dphmm.cli.options import CONTEXT, F, force, messages, output


@click.group("query", context_settings=CONTEXT)
def query() -> None:
    """Answer a question about many records, with noise that hides each of them and what depends on it.

    Everything but the records is public, and must be said: states, boxes, people, classes, windows. The table has
    a statement beside it (OUT.privacy.json): epsilon, of what, where it is proved, what is not protected. Noise is
    always drawn from the system's secure randomness: the same question asked again gets another answer, and is paid
    for again. What is not proved is refused (exit 1). No row of DATA decides the exit code or what is printed: rows
    that do not count as they are written are listed in OUT.rejected.csv, for the data owner alone.
    """


def _common(command: F) -> F:
    data = click.argument("data", metavar="DATA")
    epsilon = click.option("--epsilon", required=True, metavar="E", help="The promise: 1, 0.5.")
    return data(epsilon(output("out.parquet")(force(messages(command)))))


def _dependence(forms: str) -> Callable[[F], F]:
    return click.option(
        "--dependence",
        metavar="D",
        help=f"Which records depend on which: {forms}  [default: independent, and a warning]",
    )


_rows = click.option(
    "--max-rows-per-user",
    type=int,
    metavar="K",
    help="A public number: the first K rows of each person count. Needed with group and friends; group:K says it too.",
)
_user = click.option("--user-column", metavar="COL", help="The column of users, where D needs it  [default: user]")


@query.command("histogram", context_settings=CONTEXT)
@_common
@_dependence("markov:MODEL, friends:EDGES, group, group:K or independent.")
@_rows
@click.option("--model-people", metavar="WORD", help="With markov: who MODEL was fitted on: others, same or unknown.")
@click.option("--mechanism", metavar="NAME", help="With markov: group or markov-quilt; others where they are proved.")
@click.option("--states", metavar="S", help="The public states: a,b,c, or a table of names, or a model (.npz).")
@click.option("--user-column", metavar="COL", help="The column of users  [default: user]")
@click.option("--time-column", metavar="COL", help="The column of times  [default: t]")
@click.option("--state-column", metavar="COL", help="The column of states  [default: state, or places on a map]")
@click.option("--times", type=int, metavar="T", help="The public number of steps, 0 to T-1; other rows are left out.")
@click.option("--step", metavar="TIME", help="With times: bins of 5min, the last row of each counts.")
@click.option("--from", "first", metavar="TIME", help="What step 0 is: a time or a number [default: each user's first]")
@click.option("--windows", metavar="W", help="Count in windows: a number of steps, or 0:24,24:48.")
@click.option("--consistent", is_flag=True, help="No counts below 0, same noisy totals (post-processing).")
def histogram(**given: Any) -> int:
    """How many records are in each state, in each window of time. A record is one person's state at one step."""
    from dphmm.cli.query_histogram import histogram_of

    return histogram_of(given)


@query.command("kmeans", context_settings=CONTEXT)
@_common
@_dependence("friends:EDGES, group, group:K or independent.")
@_rows
@click.option("--columns", metavar="X,Y", help="The columns of coordinates.")
@click.option("--box", metavar="BOX", help="The public box, LOW:HIGH for each column; points outside move to it.")
@click.option("--start", metavar="S", help="The public start, in the box: 0,0;1,1 or a table with the columns.")
@click.option("--iterations", type=int, default=7, show_default=True, help="How often centroids move: a public number.")
@_user
def kmeans(**given: Any) -> int:
    """Centroids of points, with noisy counts: k-means by noisy sums and counts. A record is one point."""
    from dphmm.cli.query_points import kmeans_of

    return kmeans_of(given)


@query.command("degree", context_settings=CONTEXT)
@_common
@_dependence("friends:EDGES (node level), group:K or independent.")
@click.option("--people", metavar="N", help="The public people: a number N (named 0 to N-1), or a table of names.")
@click.option("--level", metavar="WORD", help="edge hides one edge; node hides all edges of one person.")
@click.option("--cap", type=int, metavar="K", help="Degrees are counted up to this public number.")
@click.option("--columns", metavar="A,B", help="The columns of the two ends, unless DATA has two.")
@click.option("--consistent/--raw", default=True, help="No counts below 0, and all people counted  [default: so]")
def degree(**given: Any) -> int:
    """How many people have 0, 1, 2, ... edges. DATA has an edge a row (a table, or SNAP's .txt, .txt.gz)."""
    from dphmm.cli.query_graph import degrees_of

    return degrees_of(given)


@query.command("svm", context_settings=CONTEXT)
@_common
@_dependence("friends:EDGES, group, group:K or independent.")
@_rows
@click.option("--label", metavar="COL", help="The column of classes.")
@click.option("--classes", metavar="NO,YES", help="The two public classes.")
@click.option("--features", metavar="X,Y", help="The columns of numbers to tell them by.")
@click.option("--box", metavar="BOX", help="The public box, LOW:HIGH for each feature; values outside move to it.")
@click.option(
    "--regularisation", "--regularization", "regularisation", metavar="L", default="0.01", show_default=True,
    help="From 1e-6 to 1: the larger, the less noise and the less it learns.",
)  # fmt: skip
@click.option("--kind", metavar="WORD", default="svm", show_default=True, help="svm or logistic.")
@_user
def svm(**given: Any) -> int:
    """A linear classifier of two classes, as weights. A record is one row with its class. Needs scikit-learn."""
    from dphmm.cli.query_points import classifier_of

    return classifier_of(given)
