"""Writes line plots as SVG files, without a library."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

_WIDTH: Final = 640
_HEIGHT: Final = 360
_LEFT: Final = 60
_RIGHT: Final = 610
_TOP: Final = 40
_BOTTOM: Final = 300
_COLOURS: Final = ("#b4532a", "#2f5d73", "#6b7f3a", "#7a4f8f")


def write_plot(
    path: Path, title: str, numbers: Sequence[int], lines: Mapping[str, Sequence[float]]
) -> None:
    """Writes milliseconds over numbers on a logarithmic axis.

    Args:
        path: The SVG file.
        title: Shown above the plot.
        numbers: Positive numbers, one for each point of a line.
        lines: Milliseconds by the name of the line.
    """
    most = max(max(values) for values in lines.values()) * 1.1
    first, last = math.log10(min(numbers)), math.log10(max(numbers))
    span = last - first or 1.0

    def x(number: int) -> float:
        return _LEFT + (_RIGHT - _LEFT) * (math.log10(number) - first) / span

    def y(value: float) -> float:
        return _BOTTOM - (_BOTTOM - _TOP) * value / most

    box = f'xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}"'
    parts = [
        f'<svg {box} font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="22" font-size="14">{title}</text>',
        f'<path d="M{_LEFT} {_TOP}V{_BOTTOM}H{_RIGHT}" fill="none" stroke="black"/>',
    ]
    for tick in range(5):
        value = most * tick / 4
        parts.append(
            f'<text x="{_LEFT - 8}" y="{y(value) + 4:.1f}" text-anchor="end">{value:.1f}</text>'
        )
    parts += [
        f'<text x="{x(number):.1f}" y="{_BOTTOM + 18}" text-anchor="middle">{number:,}</text>'
        for number in numbers
    ]
    for colour, (row, (name, values)) in zip(_COLOURS, enumerate(lines.items()), strict=False):
        points = " ".join(
            f"{x(number):.1f},{y(value):.1f}" for number, value in zip(numbers, values, strict=True)
        )
        parts += [
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>',
            f'<text x="{_LEFT + 150 * row}" y="{_HEIGHT - 16}" fill="{colour}">{name}</text>',
        ]
    path.write_text("\n".join([*parts, "</svg>"]) + "\n")
