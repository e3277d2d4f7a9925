"""The command line: `cartoolkit models`, `cartoolkit generate`, `cartoolkit probe`, `cartoolkit doctor`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cartoolkit.errors import CartoolkitError, InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from cartoolkit.routing.probing.measurements import Probe
    from cartoolkit.routing.rows.schema import ModelSchema

__all__ = ["app"]

app = typer.Typer(
    name="cartoolkit", help="Watch a language model decide.", no_args_is_help=True, add_completion=False
)


@app.command()
def models() -> None:
    """List the models of the catalog and whether they are on this machine."""
    from cartoolkit.models import CATALOG, cache_dir
    from cartoolkit.models.fetch import is_ready

    for entry in CATALOG.values():
        here = [name for name in ("gguf", "safetensors") if is_ready(entry, name)]
        missing = f"not here yet, {entry.source.download_bytes / 1e6:.0f} MB to fetch"
        where = f"{' and '.join(here)} in {cache_dir()}" if here else missing
        typer.echo(f"{entry.name}\n  {entry.description}\n  licence {entry.licence}; {where}")


@app.command()
def doctor() -> None:
    """Tell what this machine has, which engines work and why not. Loads and downloads nothing."""
    from cartoolkit.engine.doctor import examine

    examination = examine()
    typer.echo(str(examination))
    if not examination.healthy:
        raise typer.Exit(1)


@app.command()
def generate(  # noqa: PLR0917 - typer reads options off the parameters
    prompt: Annotated[str, typer.Argument(help="What to ask.")],
    model: Annotated[str | None, typer.Option(help="Catalog name, folder, GGUF file or hub name.")] = None,
    engine: Annotated[str, typer.Option(help="torch, mlx, gguf, or auto for the fastest.")] = "auto",
    temperature: Annotated[float, typer.Option(help="0 always takes the likeliest token.")] = 0.7,
    max_tokens: Annotated[int, typer.Option(help="At most this many tokens.")] = 512,
    seed: Annotated[int | None, typer.Option(help="Makes the answer repeatable.")] = None,
    save: Annotated[str | None, typer.Option(help="Write the trace to this file.")] = None,
) -> None:
    """Answer a prompt, token by token, on standard output."""
    settings: dict[str, Any] = {"temperature": temperature, "max_tokens": max_tokens, "seed": seed}
    try:
        _generate(prompt, model, engine, settings, save)
    except CartoolkitError as error:
        _tell(error)
        raise typer.Exit(1) from error


def _tell(error: CartoolkitError) -> None:
    typer.secho(str(error), err=True, fg="red")
    if error.hint:
        typer.echo(error.hint, err=True)


def _generate(
    prompt: str, model: str | None, engine_name: str, settings: dict[str, Any], save: str | None
) -> None:
    from cartoolkit.engine import load
    from cartoolkit.requests import make_request

    # A bad setting is told before a model is loaded for it.
    request = make_request(prompt, **settings)
    if save and not Path(save).absolute().parent.is_dir():
        raise InvalidRequest(f"--save must be a file in a folder that exists; got {save!r}.")
    with load(model, engine=engine_name, quiet=True) as engine:
        for step in engine.stream(request):
            typer.echo(step.text, nl=False)
        typer.echo()
        if save and engine.session:
            typer.echo(f"trace: {engine.session.trace.save(save)}", err=True)


@app.command()
def probe(
    models: Annotated[
        list[str] | None, typer.Argument(help="Ids, catalog names, folders or GGUF files; else what is here.")
    ] = None,
    engine: Annotated[str, typer.Option(help="Only on torch, mlx or gguf; auto for each of them.")] = "auto",
    *,
    quality: Annotated[bool, typer.Option(help="Ask the questions, or leave them out.")] = True,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the table in Markdown.")] = False,
) -> None:
    """Measure models on this machine: speed, memory, load time, right answers; the router goes by it."""
    from cartoolkit.routing.probing.probe import rows_to_probe
    from cartoolkit.routing.probing.probe_table import probe_markdown, probe_text

    try:
        rows = rows_to_probe(models or (), engine)
    except CartoolkitError as error:
        _tell(error)
        raise typer.Exit(1) from error
    probes = [probe for row in rows if (probe := _probed(row, quality=quality))]
    if probes:
        typer.echo((probe_markdown if markdown else probe_text)(probes))
    if len(probes) < len(rows):
        raise typer.Exit(1)


def _probed(row: ModelSchema, *, quality: bool) -> Probe | None:
    """The measurement, kept on disk; None where it failed, which is told."""
    from cartoolkit.routing.probing.measurements import MeasurementStore
    from cartoolkit.routing.probing.probe import probe

    try:
        measured = probe(row, quality=quality, progress=_progress_of(row))
    except CartoolkitError as error:
        _tell(error)
        return None
    try:
        MeasurementStore().save(measured)
    except OSError as error:
        typer.secho(f"The measurement of {row.id} could not be kept: {error}.", err=True, fg="red")
    return measured


def _progress_of(row: ModelSchema) -> Callable[[str, int, int], None]:
    """Says on standard error what is going on: one line for each kind of work."""
    said: set[str] = set()

    def show(what: str, done: int, total: int) -> None:  # noqa: ARG001 - part of the interface
        if what not in said:
            said.add(what)
            typer.echo(f"{row.id}: {what}", err=True)

    return show


if __name__ == "__main__":
    app()
