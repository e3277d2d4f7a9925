"""Measurements as tables: for a notebook with every interval, and for a page with what people compare."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pandas as pd

    from cartoolkit.routing.probing.measurements import Probe
    from cartoolkit.routing.rows.figures import Figure

__all__ = ["probe_frame", "probe_markdown", "probe_text"]

_FIGURES = (
    "ttft_ms", "prefill_tokens_per_second", "tokens_per_second", "load_ms", "ram_mb", "quality",
)  # fmt: skip


def probe_frame(probes: Iterable[Probe]) -> pd.DataFrame:
    """One row a measurement, indexed by model id.

    Returns:
        Columns ``engine``, ``device``, ``dtype``; ``ttft_ms at N``, medians, for every prompt length N that
        was asked for; each figure of `Probe` with ``… low`` and ``… high``, the ends of its 95 % interval;
        shares right of both splits together, ``facts`` and ``arithmetic``; ``measured_at`` in UTC,
        ``machine``, ``notes``. What was not measured is NA.
    """
    import pandas as pd

    probes = list(probes)
    rows = [_row(probe) for probe in probes]
    lengths = sorted({length for probe in probes for length in _lengths(probe)})
    columns = [
        "engine", "device", "dtype", *(f"ttft_ms at {length}" for length in lengths),
        *(part for name in _FIGURES for part in (name, f"{name} low", f"{name} high")),
        "facts", "arithmetic", "measured_at", "machine", "notes",
    ]  # fmt: skip
    index = pd.Index([probe.model_id for probe in probes], name="model")
    table = pd.DataFrame(rows, columns=columns, index=index)
    numbers = columns[3 : columns.index("measured_at")]
    return table.astype(dict.fromkeys(numbers, "Float64"))


def _row(probe: Probe) -> dict[str, Any]:
    import pandas as pd

    row: dict[str, Any] = {name: getattr(probe, name) for name in ("engine", "device", "dtype")}
    row |= {f"ttft_ms at {point.aimed_at}": point.ttft_ms.value for point in probe.points}
    for name in _FIGURES:
        figure: Figure | None = getattr(probe, name)
        if figure is not None:
            row |= {name: figure.value, f"{name} low": figure.low, f"{name} high": figure.high}
    for kind in ("facts", "arithmetic"):
        marks = [item.right for item in probe.items if item.kind == kind]
        row[kind] = sum(marks) / len(marks) if marks else None
    row["measured_at"] = pd.Timestamp(probe.measured_at, unit="s", tz="UTC").floor("s")
    return row | {"machine": str(probe.machine), "notes": " ".join(probe.remarks)}


def _lengths(probe: Probe) -> list[int]:
    return [point.aimed_at for point in probe.points]


def probe_text(probes: Sequence[Probe]) -> str:
    """The measurements as a table for a terminal, with the machine and the libraries under it.

    Times are medians; what is right is the share of the `choice` items, with its 95 % interval. A dash stands
    for what was not measured.
    """
    rows = _cells(probes)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(_padded(row, widths)).rstrip() for row in rows]
    return "\n".join([*lines, "", *_under(probes)])


def _padded(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    first, *rest = row
    return [
        first.ljust(widths[0]),
        *(cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True)),
    ]


def probe_markdown(probes: Sequence[Probe]) -> str:
    """As `probe_text`, in Markdown."""
    head, *rows = _cells(probes)
    marked = [[f"`{model}`", *cells] for model, *cells in rows]
    lines = [_line(row) for row in (head, ["---", *["---:"] * (len(head) - 1)], *marked)]
    return "\n".join([*lines, "", *_under(probes)])


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cells(probes: Sequence[Probe]) -> list[list[str]]:
    """The names of the columns, and the cells of each measurement."""
    lengths = sorted({length for probe in probes for length in _lengths(probe)})
    times = (f"first token after {length:,} tokens" for length in lengths)
    head = ["model", *times, "tokens/s", "memory", "load", "right"]
    return [head, *(_cells_of(probe, lengths) for probe in probes)]


def _cells_of(probe: Probe, lengths: Sequence[int]) -> list[str]:
    at = {point.aimed_at: point.ttft_ms for point in probe.points}
    return [
        probe.model_id,
        *(_shown(at.get(length), "{:,.0f} ms") for length in lengths),
        _shown(probe.tokens_per_second, "{:,.1f}"),
        _shown(probe.ram_mb, "{:,.0f} MB"),
        _shown(probe.load_ms, "{:,.0f} ms"),
        _share(probe.quality),
    ]


def _shown(figure: Figure | None, form: str) -> str:
    return "–" if figure is None else form.format(figure.value)


def _share(figure: Figure | None) -> str:
    if figure is None:
        return "–"
    ends = "" if figure.low is None or figure.high is None else f" ({figure.low:.0%} to {figure.high:.0%})"
    return f"{figure.value:.0%}{ends}"


def _under(probes: Sequence[Probe]) -> list[str]:
    """Which machine and libraries the figures are of, and what was left out."""
    lines: list[str] = []
    for machine in dict.fromkeys(str(probe.machine) for probe in probes):
        measured = [probe for probe in probes if str(probe.machine) == machine]
        own = {"python", "platform"}
        versions = {
            f"{name} {version}"
            for probe in measured
            for name, version in probe.versions.items()
            if name not in own
        }
        lines.append(f"{machine}; {', '.join(sorted(versions))}.")
    missed = [
        f"{probe.model_id}: prompts of {point.aimed_at:,} tokens had {point.prompt_tokens:,}."
        for probe in probes
        for point in probe.points
        if point.prompt_tokens != point.aimed_at
    ]
    notes = [f"{probe.model_id}: {note}" for probe in probes for note in probe.remarks]
    return [*lines, *missed, *notes]
