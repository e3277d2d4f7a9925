"""Models on servers beside ones that run here: real HTTP, keys, refusals, limits and bills."""

import sys
import time
from pathlib import Path

import pandas as pd
import pytest
from model_rows import row
from scripted_engines import ask

from cartoolkit.errors import (
    ContentRefused,
    DecodeTimeout,
    NoEligibleModel,
    PromptTooLong,
    RateLimited,
    RemoteError,
    SpendLimitExceeded,
)
from cartoolkit.remote import connect
from cartoolkit.routing import Deterministic, Registry, Router, SpendLimits

# The server that says what a test tells it is at home with the tests of remote engines.
sys.path.insert(0, str(Path(__file__).parents[1] / "remote"))

from speaking_server import SpeakingServer, failing, usage, words


@pytest.fixture
def server():
    with SpeakingServer() as server:
        yield server
        server.shutdown()


@pytest.fixture
def parrot(server):
    """A row that everything speaks for; USD 1 for a million tokens read, 4 for a million written."""
    return row(
        "acme/parrot:large",
        source={"kind": "remote_api", "location": server.address, "model": "parrot-2026"},
        cost={"input_per_mtok": 1.0, "output_per_mtok": 4.0},
        quality=1.0,
        performance={"ttft_ms": 1, "tokens_per_second": 100_000},
    )


@pytest.fixture
def router(parrot, engines, tmp_path):
    with Router(Registry([parrot]), strategy=Deterministic(), folder=tmp_path) as router:
        router.add(engines["a"])
        yield router


def test_a_model_on_a_server_answers_and_is_billed_by_its_prices(router, server):
    answer = ask(router)
    assert (answer.text, answer.model_id) == ("Hello there.", "acme/parrot:large")
    assert server.requests[0]["model"] == "parrot-2026"
    # 7 tokens read and 3 written, as the server counts: 7 · 1 + 3 · 4 millionths of a dollar.
    assert answer.usd == pytest.approx(19e-6)
    board = router.scoreboard().set_index("model_id").loc["acme/parrot:large"]
    assert (board["usd"], board["usd_is_estimate"]) == (pytest.approx(19e-6), True)


def test_a_rate_limit_hands_over_to_a_model_that_runs_here(router, server):
    server.answers = [failing(429, {"message": "Slow down."})]
    answer = ask(router)
    assert answer.model_id == "script/a"
    assert isinstance(answer.attempts[0].error, RateLimited)
    assert answer.attempts[0].usd == 0.0


def test_a_server_that_is_gone_hands_over(router, server):
    server.shutdown()
    server.server_close()
    answer = ask(router)
    assert (answer.model_id, answer.attempts[0].reason) == ("script/a", "error")


def test_content_that_a_provider_refuses_is_not_put_to_another_model(router, server):
    server.answers = [words("How to", finish="content_filter")]
    with pytest.raises(ContentRefused):
        ask(router)
    tally = router.history.tracker.profile("acme/parrot:large").total
    assert (tally.inconclusive_count, tally.fail_count) == (1, 0)
    assert router.breakers.circuit("acme/parrot:large").failures == 0
    assert "script/a" not in router.history.tracker.profiles


def test_what_a_server_cannot_heed_leaves_its_model_out_before_anything_is_sent(router, server):
    answer = ask(router, ignore_eos=True, max_tokens=3)
    assert answer.model_id == "script/a"
    refused = answer.decision.candidates[-1].refused[0].reason
    assert refused.startswith("ignore_eos does not go with parrot")
    assert server.requests == []


def test_a_row_whose_key_is_not_set_cannot_be_used(parrot, tmp_path, monkeypatch):
    monkeypatch.delenv("ACME_TEST_KEY", raising=False)
    source = parrot.source.model_copy(update={"key_variable": "ACME_TEST_KEY"})
    router = Router(Registry([parrot.model_copy(update={"source": source})]), folder=tmp_path)
    with pytest.raises(NoEligibleModel, match="not available here: no key set: ACME_TEST_KEY"):
        router.decide("a")
    monkeypatch.setenv("ACME_TEST_KEY", "abc-123456")
    assert router.decide("a").model_id == "acme/parrot:large"


def test_a_spend_limit_holds_for_what_a_call_may_cost_with_all_its_tokens(parrot, engines, tmp_path):
    router = Router(Registry([parrot]), folder=tmp_path, limits=SpendLimits(per_call=0.002))
    router.add(engines["a"])
    # 500 tokens written cost USD 0.002, and reading comes on top.
    assert ask(router, max_tokens=500).model_id == "script/a"
    assert router.decide("a", max_tokens=400, workload="batch").candidates[-1].refused == ()


def test_an_engine_on_a_server_that_was_handed_over_answers_for_a_row_of_its_own(server, tmp_path):
    router = Router(Registry(), folder=tmp_path)
    with connect("parrot", base_url=server.address) as engine:
        added = router.add(engine)
        assert (added.id, added.source.kind) == ("openai/parrot", "local_server")
        assert (added.source.location, added.source.model) == (server.address, "parrot")
        assert ask(router).text == "Hello there."
    assert router.models.to_frame().loc["openai/parrot", "because"] == "its engine was closed"


# Bills of what went wrong


def silent(handler):
    handler.begin_stream()
    handler.server.left.wait(5)


def test_an_answer_that_nobody_waited_for_may_be_billed_and_counts_as_it_was_held(server, parrot, tmp_path):
    server.answers = [silent]
    with Router(Registry([parrot]), folder=tmp_path, limits=SpendLimits(per_day=1.0)) as router:
        with pytest.raises(DecodeTimeout):
            ask(router, "a", model=parrot.id, max_tokens=100, time_limit=0.2)
        # One token of a prompt and 100 of an answer: 1 · 1 + 100 · 4 millionths of a dollar.
        assert router.spending.status(time.time())[1].spent == pytest.approx(401e-6)
        board = router.scoreboard().iloc[0]
        assert board["usd"] is pd.NA
        assert board["prompt_tokens"] is pd.NA
    with Router(Registry([parrot]), folder=tmp_path, limits=SpendLimits(per_day=1.0)) as later:
        assert later.spending.status(time.time())[1].spent == pytest.approx(401e-6)
    server.left.set()


@pytest.mark.parametrize("status", [401, 404, 500])
def test_an_error_in_the_place_of_an_answer_is_billed_by_nobody(router, server, status):
    server.answers = [failing(status, {"message": "The model does not like you."})]
    answer = ask(router)
    assert (answer.model_id, answer.attempts[0].usd, answer.usd) == ("script/a", 0.0, 0.0)


def test_a_prompt_that_one_server_finds_too_long_is_put_to_the_next_model(router, server):
    error = {"message": "The maximum context length is 5 tokens.", "code": "context_length_exceeded"}
    server.answers = [failing(400, error)]
    answer = ask(router)
    assert (answer.model_id, answer.attempts[0].reason) == ("script/a", "refused")
    with pytest.raises(PromptTooLong):
        ask(router, model="acme/parrot:large")


def test_a_count_that_no_server_can_mean_costs_no_answer(router, server):
    server.answers = [words("Hi", count=lambda: usage(prompt=10**20, completion=10**20))]
    answer = ask(router)
    assert (answer.text, answer.usd) == ("Hi", None)


def test_a_key_that_is_taken_away_makes_a_model_unusable_that_answered_before(
    parrot, server, tmp_path, monkeypatch
):
    source = parrot.source.model_copy(update={"key_variable": "PARROT_KEY"})
    monkeypatch.setenv("PARROT_KEY", "secret-one")
    with Router(Registry([parrot.model_copy(update={"source": source})]), folder=tmp_path) as router:
        assert ask(router).text == "Hello there."
        monkeypatch.delenv("PARROT_KEY")
        with pytest.raises(NoEligibleModel, match="no key set: PARROT_KEY"):
            ask(router)
        with pytest.raises(RemoteError, match="no key set: PARROT_KEY"):
            ask(router, model=parrot.id)
        assert router.scoreboard().iloc[0]["usd"] == pytest.approx(19e-6)


def test_a_probe_does_not_pass_a_spend_limit(parrot, server, tmp_path):
    with (
        Router(Registry([parrot]), folder=tmp_path, limits=SpendLimits(per_day=1.0)) as router,
        pytest.raises(SpendLimitExceeded, match="a probe asks it some 200 times"),
    ):
        router.probe(parrot.id)
    assert server.requests == []
