"""What is no argument of a router is refused in a sentence, and never taken for something else."""

import pytest
from model_rows import remote

from cartoolkit.errors import InvalidRegistry, InvalidRequest, ModelNotFound
from cartoolkit.routing import BreakerRules, Demand, Profile, Registry, Router, SpendLimits, Thompson
from cartoolkit.routing.rows.registry import as_part
from cartoolkit.routing.rows.registry_file import rows_from
from cartoolkit.routing.simulation.simulating import simulate


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"registry": [remote()]}, "registry must be a Registry"),
        ({"registry": "models.toml"}, "registry must be a Registry; got 'models.toml'"),
        ({"strategy": "thompson"}, "strategy must be a Thompson or Deterministic; got 'thompson'"),
        ({"strategy": Thompson}, "strategy must be a Thompson or Deterministic; got the class Thompson"),
        ({"folder": 5}, "folder must be a str or Path; got 5"),
        # A limit that nobody reads would be no limit.
        ({"limits": {"per_day": 1.0}}, "limits must be a SpendLimits; got {'per_day': 1.0}"),
        ({"rules": 3}, "rules must be a BreakerRules; got 3"),
    ],
)
def test_a_router_is_made_of_its_own_parts(part, said, tmp_path):
    with pytest.raises(InvalidRequest, match=said):
        Router(**{"registry": Registry(), "folder": tmp_path} | part)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: SpendLimits(per_day="1"), "per_day must be US dollars ≥ 0, or None for no limit; got '1'"),
        (lambda: SpendLimits(per_call=True), "per_call must be US dollars"),
        (lambda: BreakerRules(failures="3"), "failures must be a whole number of at least 1; got '3'"),
        (lambda: BreakerRules(failures=2.5), "failures must be a whole number"),
        (lambda: BreakerRules(cooldown_s="60"), "cooldown_s must be a number"),
        (lambda: Demand(require=None), "require must be a list of capabilities; got None"),
        (lambda: Demand(require=[["code"]]), "require must be a list of capabilities"),
        (lambda: Profile("", 1.0, 0.0, 0.0), "the name of a profile must be a word; got ''"),
        (lambda: Profile(5, 1.0, 0.0, 0.0), "the name of a profile must be a word; got 5"),
    ],
)
def test_its_parts_are_made_of_numbers_and_names(make, said):
    with pytest.raises(InvalidRequest, match=said):
        make()


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda r: r.weigh(task="sing"), "'sing' is no task"),
        (lambda r: r.evidence("sing"), "'sing' is no task"),
        (lambda r: r.score_table(task="sing"), "'sing' is no task"),
        (lambda r: r.baselines(task="sing"), "'sing' is no task"),
        (lambda r: r.weigh(demand={"prompt_tokens": 3}), "demand must be a Demand; got {'prompt_tokens': 3}"),
        (lambda r: r.score_table("batch"), "workloads must be a list, .*; got 'batch'"),
        (lambda r: r.score_table(5), "workloads must be a list, .*; got 5"),
        (lambda r: r.baselines("batch"), "workloads must be a list"),
        (lambda r: r.score_table(models="script/a"), "models must be a list, .*; got 'script/a'"),
        (lambda r: r.demand("a", require=None), "require must be a list of capabilities; got None"),
        (lambda r: r.demand("a", prompt_token=3), "'prompt_token' is no field of a demand. Did you mean"),
        (lambda r: r.probe("script/a", prompt_lengths=32), "prompt_lengths must be a list"),
        (lambda r: r.simulate("outcomes.jsonl"), "traffic must be a list"),
        (lambda r: r.simulate(["a row"]), "the rows of a log are those of a ledger; got 'a row'"),
        (lambda r: r.simulate(policies=["thompson"], requests=10), "a policy is one of .*; got 'thompson'"),
    ],
)
def test_what_is_asked_of_a_router_is_named_if_it_is_nothing(router, ask, said):
    with pytest.raises(InvalidRequest, match=said):
        ask(router)


def test_a_list_of_models_is_not_one_model(router):
    with pytest.raises(ModelNotFound, match="model not found: \\['script/a'\\]"):
        router.probe(["script/a"])


def test_a_task_that_is_none_is_refused_by_a_simulation():
    with pytest.raises(InvalidRequest, match="'sing' is no task"):
        simulate(task="sing", requests=10)


def test_a_model_that_is_named_twice_is_shown_once(router):
    table = router.score_table(["batch"], models=["script/b", "b (script)", "script/a"])
    assert list(table.index) == ["script/b", "script/a"]
    assert table["batch"]["rank"].tolist() == [2, 1]


def test_a_key_in_the_place_of_its_variable_s_name_is_not_repeated():
    row = {"id": "acme/large", "capabilities": ["generate"]}
    row["source"] = {"kind": "remote_api", "key_variable": "sk-very-secret"}
    with pytest.raises(InvalidRegistry, match="must be the name of an environment variable") as caught:
        rows_from([row])
    assert "secret" not in str(caught.value)


def test_an_id_is_short_enough_for_the_ledger():
    with pytest.raises(InvalidRegistry, match="id: must have at most 200 characters"):
        rows_from([{"id": "acme/" + "x" * 196, "capabilities": ["generate"], "source": {"kind": "hub"}}])
    assert as_part("x" * 255) == "x" * 60
