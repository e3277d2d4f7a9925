"""Rows for the tests: two that run here and two that do not, with figures that are easy to compute with."""

from cartoolkit.routing.rows.schema import ModelSchema


def row(model_id="acme/large", kind="remote_api", **fields):
    """A row with everything unknown that may be; `fields` are those of `ModelSchema`."""
    given = {"id": model_id, "capabilities": ["generate"], "source": {"kind": kind}}
    return ModelSchema.model_validate(given | {"weights_ready": True} | fields)


def remote(model_id="acme/large", *, usd=(1.0, 4.0), ttft=400.0, speed=100.0, quality=None, **fields):
    """A priced model behind an address."""
    performance = {"ttft_ms": ttft, "tokens_per_second": speed}
    cost = {"input_per_mtok": usd[0], "output_per_mtok": usd[1]}
    return row(model_id, performance=performance, cost=cost, quality=quality, **fields)


def local(model_id="torch/small", *, ttft=400.0, speed=100.0, load=1000.0, quality=None, **fields):
    """A model whose weights lie on this disk."""
    performance = {"ttft_ms": ttft, "tokens_per_second": speed, "load_ms": load}
    return row(model_id, "folder", performance=performance, quality=quality, **fields)
