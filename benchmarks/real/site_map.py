"""Numbers for the pages of a web site: places on its map, which is public."""

from __future__ import annotations

import numpy as np
import pandas as pd

#: Which pages link to each other, written by hand from what such a site's menus look like; no visit was looked at.
SITE_MAP = {
    "frontpage": "news tech local opinion on-air misc weather health living business sports summary bbs travel",
    "news": "local opinion summary msn-news weather",
    "tech": "business bbs news",
    "local": "weather on-air sports",
    "opinion": "bbs on-air",
    "on-air": "summary",
    "misc": "bbs",
    "weather": "travel",
    "msn-news": "msn-sports",
    "health": "living",
    "living": "travel misc",
    "business": "summary",
    "msn-sports": "sports",
    "sports": "on-air",
    "summary": "",
    "bbs": "",
    "travel": "",
}
PAGES = list(SITE_MAP)


def site_map_answers() -> pd.DataFrame:
    """state, x, y: the leading coordinates of a spectral embedding of the site map, in integers from 0 to 100."""
    number = {page: i for i, page in enumerate(PAGES)}
    linked = np.zeros((len(PAGES), len(PAGES)))
    for page, others in SITE_MAP.items():
        for other in others.split():
            linked[number[page], number[other]] = linked[number[other], number[page]] = 1.0
    degree = linked.sum(axis=1)
    laplacian = np.eye(len(PAGES)) - linked / np.sqrt(np.outer(degree, degree))
    _, vectors = np.linalg.eigh(laplacian)
    places = vectors[:, 1:3] / np.sqrt(degree)[:, None]
    # An eigenvector's sign means nothing: the largest coordinate is made positive, so that all machines agree.
    places *= np.sign(places[np.abs(places).argmax(axis=0), (0, 1)])
    places -= places.min(axis=0)
    whole = np.rint(100 * places / places.max(axis=0)).astype(int)
    return pd.DataFrame({"state": PAGES, "x": whole[:, 0], "y": whole[:, 1]})
