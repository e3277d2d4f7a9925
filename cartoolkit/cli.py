"""The command line: `cartoolkit models`, `cartoolkit generate`, `cartoolkit doctor`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cartoolkit.errors import CartoolkitError, InvalidRequest

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
        typer.secho(str(error), err=True, fg="red")
        if error.hint:
            typer.echo(error.hint, err=True)
        raise typer.Exit(1) from error


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


if __name__ == "__main__":
    app()
