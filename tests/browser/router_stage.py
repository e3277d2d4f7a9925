"""A router with two models that need no weights and one without a key, for the RouterTable's notebooks."""

import tempfile

import stage

from cartoolkit.routing import Deterministic, ModelSchema, Registry, Router

QUICK = [" quick", " <script>window.__pwned=1</script>"]
STEADY = [" steady", " answer"]


def declared(row, *, quality, ttft, speed):
    """The row with figures that somebody has declared."""
    performance = {"ttft_ms": ttft, "tokens_per_second": speed, "load_ms": 0.0}
    given = row.model_dump(mode="json") | {"performance": performance, "quality": quality}
    return ModelSchema.model_validate(given)


def play():
    """`quick` is fast and often wrong, `steady` is slow and mostly right, `acme/large` has no key."""
    router = Router(Registry(), strategy=Deterministic(), folder=tempfile.mkdtemp())
    figures = {
        "quick": (QUICK, {"quality": 0.3, "ttft": 50.0, "speed": 500.0}),
        "steady": (STEADY, {"quality": 0.9, "ttft": 900.0, "speed": 20.0}),
    }
    for name, (words, known) in figures.items():
        row = router.add(stage.play(words, name=name))
        router.registry.add(declared(row, **known), replace=True)
    router.registry.add(
        ModelSchema.model_validate(
            {
                "id": "acme/large",
                "capabilities": ["generate"],
                "source": {"kind": "remote_api", "key_variable": "ACME_KEY_THAT_NOBODY_HAS"},
                "cost": {"input_per_mtok": 2.0, "output_per_mtok": 8.0},
            }
        )
    )
    return router
