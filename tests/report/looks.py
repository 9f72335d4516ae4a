"""What can be measured of how a page looks: contrast (WCAG 2), and colours as colour-blind readers see them."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from dphmm.report.svg import style

#: Each colour of the palette by its role, on light and on dark paper.
LIGHT, DARK = (dict(re.findall(r"--([a-z0-9-]+):(#[0-9a-f]{6})", part)) for part in style("palette").split("@media"))
ROLES = {role: (LIGHT[role], DARK[role]) for role in LIGHT | DARK}

#: For a page in a browser: every visible text whose contrast with what is behind it is too low, as [text, ratio].
FAINT_TEXTS = """
(() => {
  const parse = (c) => { const m = c.match(/[\\d.]+/g).map(Number); return m.length < 4 ? [...m, 1] : m; };
  const light = (c) => { const f = (v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
    return 0.2126 * f(c[0]) + 0.7152 * f(c[1]) + 0.0722 * f(c[2]); };
  const behind = (e) => { for (let p = e; p; p = p.parentElement) {
    const c = parse(getComputedStyle(p).backgroundColor); if (c[3] > 0.5) return c; } return [255, 255, 255, 1]; };
  const faint = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement, text = walker.currentNode.textContent.trim();
    if (!text || ['SCRIPT', 'STYLE', 'TITLE', 'DESC', 'OPTION', 'NOSCRIPT'].includes(e.tagName.toUpperCase())) continue;
    if (!e.getClientRects().length) continue;
    const style = getComputedStyle(e), svg = e instanceof SVGElement;
    const front = parse(svg ? style.fill : style.color), back = behind(svg ? e.ownerSVGElement : e);
    const [a, b] = [light(front), light(back)].sort((x, y) => y - x), size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700), ratio = (a + 0.05) / (b + 0.05);
    if (ratio < (large ? 3 : 4.5)) faint.push([text.slice(0, 40), ratio]);
  }
  return faint;
})()
"""
#: Protanopia, deuteranopia and tritanopia in linear RGB (Machado, Oliveira and Fernandes 2009, severity 1).
BLIND = {
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def linear(colour: str) -> NDArray[np.float64]:
    """A colour #rrggbb in linear RGB."""
    values = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    """The contrast of two colours, from 1 to 21."""
    low, high = sorted(float(linear(colour) @ [0.2126, 0.7152, 0.0722]) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def lab(rgb: NDArray[np.float64]) -> NDArray[np.float64]:
    """Linear RGB in CIE Lab (D65)."""
    xyz = np.clip(rgb, 0, 1) @ np.array(
        [[0.4124564, 0.2126729, 0.0193339], [0.3575761, 0.7151522, 0.1191920], [0.1804375, 0.0721750, 0.9503041]]
    )
    ratio = xyz / np.array([0.95047, 1.0, 1.08883])
    f = np.where(ratio > 216 / 24389, np.cbrt(ratio), (24389 / 27 * ratio + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def apart(one: str, other: str, blindness: str | None = None) -> float:
    """How far two colours are from each other (CIE76) for somebody with a blindness; below 2.3 nobody sees it."""
    seen = [linear(colour) for colour in (one, other)]
    if blindness is not None:
        seen = [np.array(BLIND[blindness]) @ colour for colour in seen]
    return float(np.linalg.norm(lab(seen[0]) - lab(seen[1])))
