"""The settings of a Spark session that would show true states, or a job's key, to somebody who should not see them.

Proof: docs/proofs/keyed-words.md (its precondition: where the key may be).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from dphmm.errors import InvalidInput


class _Wanted(NamedTuple):
    """A setting, its required value, its default, and the harm of other values."""

    name: str
    value: str
    default: str
    why: str


#: Everywhere: what Python functions write into logs.
_ALWAYS = (
    _Wanted(
        "spark.sql.execution.pyspark.udf.hideTraceback.enabled",
        "true",
        "false",
        "an error's traceback goes into the logs",
    ),
    _Wanted(
        "spark.sql.execution.pyspark.udf.tracebackWithLocals.enabled",
        "false",
        "false",
        "a traceback has local variables, which are true states",
    ),
)
#: Where executors are on other machines, or in other processes.
_OUTSIDE = (
    _Wanted("spark.authenticate", "true", "false", "anybody in the network can ask for the rows and the job key"),
    _Wanted("spark.network.crypto.enabled", "true", "false", "rows and the job key cross the network in clear"),
    _Wanted("spark.io.encryption.enabled", "true", "false", "shuffle files and spilled blocks have rows in clear"),
)


def check(spark: Any) -> list[str]:
    """The settings of a session that are unsafe for `dphmm.spark.release`, each with its remedy; empty if all are safe.

    Parameters
    ----------
    spark : a SparkSession, whose master tells where executors are.

    A master ``local`` or ``local[...]`` keeps everything in one process tree on one machine: encryption is not asked
    for there, and its folders (``spark.local.dir``) must be protected like the input.

    Examples
    --------
    ``for unsafe in dphmm.spark.check(spark): print(unsafe)``

    Source: docs/proofs/keyed-words.md.
    """
    from pyspark.sql.utils import is_remote

    if is_remote():
        return ["a Spark Connect session: the job key would pass through its server; use a classic session"]
    unsafe = []
    if not hasattr(type(spark.range(0)), "repartitionById"):
        unsafe.append("this Spark has no repartitionById; use pyspark 4.1 or newer")
    master = spark.sparkContext.master
    local = master == "local" or master.startswith("local[")
    # Those of the context were fixed when it began. A session may say otherwise (`getOrCreate` on a running one writes
    # whatever it is given into the session), and nothing is encrypted for that.
    begun = spark.sparkContext.getConf()
    for wanted in _ALWAYS if local else (*_ALWAYS, *_OUTSIDE):
        held = begun if wanted in _OUTSIDE else spark.conf
        value = str(held.get(wanted.name, wanted.default)).lower()
        if value != wanted.value:
            unsafe.append(f"{wanted.name} is {value}: {wanted.why}; set it to {wanted.value}")
    return unsafe


def require_safe(spark: Any) -> None:
    """Raise InvalidInput with the first unsafe setting."""
    unsafe = check(spark)
    if unsafe:
        what, _, remedy = unsafe[0].rpartition("; ")
        more = f" ({len(unsafe) - 1} more: dphmm.spark.check lists them)" if len(unsafe) > 1 else ""
        raise InvalidInput("spark", what, remedy + more)


def require_fixed(frame: Any) -> None:
    """Raise InvalidInput for a frame that Spark knows to give other rows each time, as one with ``rand()`` does.

    Facts that Spark does not know, such as files that are being written, are not found. A remote session does not tell.
    """
    plan = getattr(frame, "_jdf", None)
    if plan is not None and not plan.queryExecution().analyzed().deterministic():
        raise InvalidInput(
            "frame",
            "rows that are others each time (rand(), uuid(), or a function that is said to be non-deterministic)",
            "the same rows whenever it is evaluated: write it to files first, and read these",
        )
