"""Probes, baselines and simulated traffic by way of a router; the parts have tests of their own."""

import pytest
from probe_rows import FreshDecoder, scripted_engine
from scripted_engines import ask

from cartoolkit.errors import ModelNotFound
from cartoolkit.routing import Deterministic, Registry, Router

SHORT = {"prompt_lengths": (8,), "repeats": 2, "answer_tokens": 4, "quality": False}


class Spelling(FreshDecoder):
    """Knows every letter, so that prompts of all lengths can be made, and says which weights it has."""

    name = "speller"

    def __init__(self, *args, **settings):
        super().__init__(*args, **settings)
        self.info = self.info.model_copy(update={"name": self.name, "weights_hash": f"sha256:{self.name}"})


class Breaking(Spelling):
    """Fails in every forward."""

    name = "breaker"

    def forward(self, ids, pos):
        raise RuntimeError("gone")


@pytest.fixture
def speller():
    with scripted_engine(kind=Spelling) as engine:
        yield engine


@pytest.fixture
def measuring(speller, tmp_path):
    router = Router(Registry(), strategy=Deterministic(), folder=tmp_path)
    router.add(speller)
    return router


def test_a_probe_of_an_engine_that_was_handed_over_is_kept_and_used(measuring, tmp_path):
    frame = measuring.probe("script/speller", **SHORT)
    assert list(frame.index) == ["script/speller"]
    speed = measuring.models[0].performance.tokens_per_second
    assert (speed.basis, speed.value) == ("measured", frame.loc["script/speller", "tokens_per_second"])
    assert measuring.weigh().candidates[0].score.latency.basis == "measured"
    assert [path.suffix for path in (tmp_path / "measurements").glob("*/*")] == [".json"]


def test_without_names_every_model_that_is_ready_is_probed_and_a_failure_is_told(measuring, capsys):
    with scripted_engine(kind=Breaking) as broken:
        measuring.add(broken)
        frame = measuring.probe(**SHORT)
    assert list(frame.index) == ["script/speller"]
    assert list(frame.attrs["not_measured"]) == ["script/breaker"]
    assert "the model's forward raised" in frame.attrs["not_measured"]["script/breaker"]
    assert "script/breaker was not measured: the model's forward raised" in capsys.readouterr().out


def test_a_probe_says_how_far_it_is_to_whoever_listens_and_else_with_a_bar(measuring, capsys):
    told = []
    measuring.probe(**SHORT, progress=lambda what, done, total: told.append((what, done, total)))
    assert told
    assert all(0 <= done <= total for _, done, total in told)
    assert "script/speller" not in capsys.readouterr().err
    measuring.probe(**SHORT)
    assert "script/speller" in capsys.readouterr().err


def test_another_router_uses_what_this_one_measured(measuring, speller, tmp_path):
    measuring.probe(**SHORT)
    other = Router(Registry(), strategy=Deterministic(), folder=tmp_path)
    other.add(speller)
    assert other.models[0].performance.tokens_per_second.basis == "measured"


def test_a_model_to_probe_must_be_there(router):
    with pytest.raises(ModelNotFound, match="model not found: 'script/d'"):
        router.probe("script/d")


def test_baselines_say_why_there_are_none_yet(router):
    frame = router.baselines(["batch"])
    assert frame.empty
    assert "router.probe()" in frame.attrs["note"]


def test_the_router_s_rule_is_simulated_with_its_rows(router):
    done = router.simulate(requests=400, runs=2)
    assert "router" in done.policies


def test_the_router_s_own_log_can_be_simulated(router):
    for name in ("a", "b", "c"):
        for _ in range(3):
            ask(router, model=f"script/{name}")
    rows = router.history.ledger.read().rows
    done = router.simulate(rows, requests=100, runs=2, min_calls=3)
    assert set(done.traffic.models) == {"script/a", "script/b", "script/c"}


def test_the_table_shows_every_model_under_every_workload(router):
    table = router.score_table(["batch", "fastest"])
    assert list(table.index) == ["script/a", "script/b", "script/c"]
    assert list(dict.fromkeys(table.columns.get_level_values(0))) == ["batch", "fastest"]
