"""A horizontal bar chart as SVG, readable on light and dark pages, from nothing but text."""

from collections.abc import Sequence
from html import escape
from pathlib import Path

_STYLE = """
text { font: 14px sans-serif; fill: #24292f; }
.title { font-weight: bold; font-size: 16px; }
.note { fill: #57606a; font-size: 12px; }
rect { fill: #8c959f; }
.own { fill: #0969da; }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3; } .note { fill: #9198a1; } }
"""


def write_bars(
    path: Path, title: str, rows: Sequence[tuple[str, float, bool]], unit: str, note: str
) -> None:
    """Draw (label, value, is ours) as bars with their values; `note` says what was measured."""
    longest = max(value for _, value, _ in rows)
    left, width, step = 230, 480, 30
    height = 70 + step * len(rows)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 820 {height}" role="img">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style>",
        f'<text class="title" x="10" y="24">{escape(title)}</text>',
    ]
    for number, (label, value, is_own) in enumerate(rows):
        y = 44 + step * number
        bar = max(2.0, width * value / longest)
        kind = ' class="own"' if is_own else ""
        parts.append(f'<text x="{left - 10}" y="{y + 15}" text-anchor="end">{escape(label)}</text>')
        parts.append(f'<rect{kind} x="{left}" y="{y}" width="{bar:.1f}" height="20" rx="2"/>')
        parts.append(f'<text x="{left + bar + 8:.1f}" y="{y + 15}">{value:.3f} {unit}</text>')
    parts.append(f'<text class="note" x="10" y="{height - 8}">{escape(note)}</text></svg>')
    path.write_text("\n".join(parts) + "\n", encoding="utf-8")
