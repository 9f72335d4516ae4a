"""The shortest way on the WGS84 ellipsoid, by Vincenty's iteration: another way than the package's, and slower.

Source: T. Vincenty, Survey Review 23(176), 1975, direct transcription of the inverse formulae.
"""

from __future__ import annotations

import math

_A, _F = 6_378_137.0, 1 / 298.257223563
_B = (1 - _F) * _A


def metres(lat: float, lon: float, to_lat: float, to_lon: float) -> float:
    """Metres between two places in degrees, to a millimetre; ValueError where they are nearly antipodal."""
    u1, u2 = (math.atan((1 - _F) * math.tan(math.radians(one))) for one in (lat, to_lat))
    turn = math.radians((to_lon - lon + 180) % 360 - 180)
    angle = turn
    for _ in range(200):
        across, along = math.sin(angle), math.cos(angle)
        sine = math.hypot(math.cos(u2) * across, math.cos(u1) * math.sin(u2) - math.sin(u1) * math.cos(u2) * along)
        if sine == 0:
            return 0.0
        cosine = math.sin(u1) * math.sin(u2) + math.cos(u1) * math.cos(u2) * along
        arc = math.atan2(sine, cosine)
        azimuth = math.cos(u1) * math.cos(u2) * across / sine
        square = 1 - azimuth**2
        middle = cosine - 2 * math.sin(u1) * math.sin(u2) / square if square else 0.0
        c = _F / 16 * square * (4 + _F * (4 - 3 * square))
        before = angle
        angle = turn + (1 - c) * _F * azimuth * (arc + c * sine * (middle + c * cosine * (2 * middle**2 - 1)))
        if abs(angle - before) < 1e-13:
            break
    else:
        raise ValueError("nearly antipodal")
    u = square * (_A**2 - _B**2) / _B**2
    a = 1 + u / 16384 * (4096 + u * (-768 + u * (320 - 175 * u)))
    b = u / 1024 * (256 + u * (-128 + u * (74 - 47 * u)))
    inner = cosine * (2 * middle**2 - 1) - b / 6 * middle * (4 * sine**2 - 3) * (4 * middle**2 - 3)
    return _B * a * (arc - b * sine * (middle + b / 4 * inner))
