"""One decoder a library, each behind the contract of `cartoolkit.engine.decoder`."""

__all__: list[str] = []
