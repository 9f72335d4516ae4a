"""Everything that the web server of a running Spark shows: its pages, its REST interface, its metrics."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from typing import Any

#: Where Spark's own pages and interfaces begin; links lead to the others.
BEGINNINGS = (
    "/jobs/", "/stages/", "/storage/", "/environment/", "/executors/", "/SQL/", "/metrics/json/",
    "/metrics/executors/prometheus/", "/api/v1/version", "/api/v1/applications",
)  # fmt: skip
#: Below the address of an application.
OF_AN_APPLICATION = (
    "", "/jobs", "/stages?details=true&withSummaries=true", "/allexecutors", "/storage/rdd", "/environment",
    "/sql?details=true&planDescription=true&length=1000", "/executors/driver/threads",
)  # fmt: skip
#: What looks the same, sorted otherwise, or is of Spark's installation alone.
_ELSEWHERE = re.compile(r"^/static/|\.sort=|/kill/")
_LINK = re.compile(r'href="(/[^"#]*)"')


def everything(spark: Any) -> dict[str, str]:
    """The content of every page by its address. Raises OSError where one cannot be had."""
    # Jobs that have ended are shown as running until Spark gets to the event.
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    whole, application = spark.sparkContext.uiWebUrl, spark.sparkContext.applicationId
    rest = f"/api/v1/applications/{application}"
    found: dict[str, str] = {}
    waiting = [*BEGINNINGS, *(rest + more for more in OF_AN_APPLICATION)]
    while waiting:
        page = waiting.pop()
        if page in found:
            continue
        with urllib.request.urlopen(whole + page, timeout=60) as answer:
            found[page] = answer.read().decode()
        waiting += [link.replace("&amp;", "&") for link in _LINK.findall(found[page]) if not _ELSEWHERE.search(link)]
        if page.startswith(rest + "/stages?"):
            stages = [f"{rest}/stages/{one['stageId']}/{one['attemptId']}" for one in json.loads(found[page])]
            waiting += [stage + more for stage in stages for more in ("?details=true", "/taskList?length=1000")]
        if page == rest + "/jobs":
            waiting += [f"{rest}/jobs/{one['jobId']}" for one in json.loads(found[page])]
        if page.startswith(rest + "/sql?"):
            waiting += [f"{rest}/sql/{one['id']}?details=true" for one in json.loads(found[page])]
    return found
