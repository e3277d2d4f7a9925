"""What a caller may ask, and the one sentence for everything else."""

import importlib
import math
import time
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cartoolkit.errors import InvalidRequest
from cartoolkit.messages import Message
from cartoolkit.requests import GenerateParams, GenerateRequest, make_request

STEADY = settings(derandomize=True, deadline=None, database=None)
NAN, INF = math.nan, math.inf
HALF_A_PAIR = "\ud83d"
SETTINGS = sorted({*GenerateParams.model_fields, *GenerateRequest.model_fields})

NOT_NUMBERS = [NAN, INF, -INF, True, False, "0.5", b"1", None, [], {}, 1j, object(), np.True_, np.array("1")]
NOT_WHOLE = [*NOT_NUMBERS, 0.5, 1.5, "3", np.float32(2.5), np.zeros(2), Fraction(1, 2)]
BAD = [
    *[("temperature", v, "a number ≥ 0") for v in [-1, -1e-9, 10**400, np.zeros((2, 2)), *NOT_NUMBERS]],
    *[("top_k", v, "a whole number ≥ 0") for v in [-1, *NOT_WHOLE]],
    *[("top_p", v, "above 0 and up to 1") for v in [0, -0.1, 1.0001, 2, *NOT_NUMBERS] if v is not True],
    *[("min_p", v, "from 0 to 1") for v in [-0.1, 1.0001, *NOT_NUMBERS]],
    *[("repeat_penalty", v, "a number above 0") for v in [0, -1, 1e101, 1e-101, *NOT_NUMBERS]],
    *[("max_tokens", v, "a whole number ≥ 1") for v in [0, -1, *NOT_WHOLE]],
    *[("candidates", v, "from 1 to 1000") for v in [0, 1001, *NOT_WHOLE]],
    *[("seed", v, "from 0 to 2**63-1") for v in [-1, 2**63, 10**5000, *NOT_WHOLE] if v is not None],
    *[("time_limit", v, "seconds above 0") for v in [0, -1, *NOT_NUMBERS] if v is not None],
    *[("stop", v, "non-empty string") for v in ["", [""], ["a", ""], 3, None, b"a", [1], {"a": 1}, "\ud800"]],
    *[
        ("logit_bias", v, "token id")
        for v in [
            {-1: 0.0}, {1.5: 0.0}, {"5": 1.0}, {True: 1.0}, {None: 1.0}, {5: NAN}, {5: INF}, {5: 1e101},
            {5: "1"}, {5: True}, {5: None}, [5], "5", None, 5,
        ]
    ],
    *[(name, v, "True or False") for name in ("ignore_eos", "inspect", "truncate") for v in (1, "yes", None)],
    ("chat_template", "no", "True or False"),
    *[("prompt", v, "a non-empty string") for v in ["", " \n\t", None, 3, b"hi", ["hi"], HALF_A_PAIR]],
    *[("context", v, "a string") for v in [3, b"x", ["x"], HALF_A_PAIR]],
    *[("model", v, "the id or name of a model") for v in ["", 3, b"x", ["a/b"]]],
    *[("workload", v, "one of interactive, batch") for v in ["", "fast", 3, ["batch"]]],
    *[("intent", v, "an IntentHint") for v in [3, "fast", ["code"]]],
    *[("params", v, "GenerateParams") for v in [None, 3, "x", [1]]],
]  # fmt: skip


@pytest.mark.parametrize(
    ("field", "value", "allowed"), BAD, ids=[f"{field}-{n}" for n, (field, *_) in enumerate(BAD)]
)
def test_a_bad_value_gives_one_sentence_with_field_range_and_value(field, value, allowed):
    with pytest.raises(InvalidRequest) as caught:
        make_request("Hi", **{field: value})
    message = str(caught.value)
    assert message.startswith(f"{field} must be ")
    assert allowed in message
    assert "; got " in message
    assert message.endswith(".")
    assert "\n" not in message
    assert len(message) < 200
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("value", "shown"), [(-1, "got -1."), (NAN, "got nan."), ("0.5", "got '0.5'."), (True, "got True.")]
)
def test_the_sentence_shows_the_value_as_it_was_given(value, shown):
    with pytest.raises(InvalidRequest) as caught:
        make_request("Hi", temperature=value)
    assert str(caught.value) == f"temperature must be a number ≥ 0 (0 is greedy); {shown}"


def test_a_long_value_is_shortened():
    with pytest.raises(InvalidRequest) as caught:
        make_request("Hi", stop=list(range(10_000)))
    assert str(caught.value).endswith("....")
    assert len(str(caught.value)) < 200


def test_token_ids_in_place_of_messages_are_refused_at_once():
    begun = time.perf_counter()
    with pytest.raises(InvalidRequest, match=r"messages must be .* Message 0: "):
        make_request(list(range(20_000)))
    assert time.perf_counter() - begun < 5


def test_a_value_that_cannot_be_shown_is_named_by_its_type():
    class Shy:
        def __repr__(self):
            raise RuntimeError("no")

    with pytest.raises(InvalidRequest, match="got a value of type Shy"):
        make_request("Hi", temperature=Shy())


def test_every_field_at_fault_is_named():
    with pytest.raises(InvalidRequest) as caught:
        make_request("Hi", temperature=-1, top_p=7, seed="x")
    assert [field in str(caught.value) for field in ("temperature must", "top_p must", "seed must")] == [
        True
    ] * 3


# Unknown keywords


@pytest.mark.parametrize(
    ("keyword", "meant"),
    [
        ("temprature", "temperature"),
        ("topk", "top_k"),
        ("max_token", "max_tokens"),
        ("Seed", "seed"),
        ("stops", "stop"),
    ],
)
def test_an_unknown_keyword_is_named_with_what_was_probably_meant(keyword, meant):
    with pytest.raises(
        InvalidRequest, match=f"'{keyword}' is not a setting of a request. Did you mean '{meant}'?"
    ):
        make_request("Hi", **{keyword: 1})


def test_an_unknown_keyword_like_no_other_gets_the_list():
    with pytest.raises(InvalidRequest) as caught:
        make_request("Hi", xyzzy=1)
    assert "Did you mean" not in str(caught.value)
    assert all(name in str(caught.value) for name in SETTINGS)


@pytest.mark.parametrize("params", [{"temprature": 1}, {3: 1}])
def test_an_unknown_name_inside_params_is_named_too(params):
    with pytest.raises(InvalidRequest, match=f"'{next(iter(params))}' is not a setting of a request"):
        make_request("Hi", params=params)


# Messages


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ({"role": "robot", "content": "x"}, "Message 1 role: Input should be 'system', 'user'"),
        ({"content": "x"}, "Message 1 role: Field required"),
        ({"role": "user", "text": "x"}, "Message 1 text: Extra inputs are not permitted"),
        ({"role": "user", "content": 3}, "Message 1 content: "),
        ({"role": "user", "content": None}, "Message 1 content: "),
        ({"role": "user", "content": [{"type": "image_url"}]}, "Message 1 content 0: Input tag 'image_url'"),
        ({"role": "user", "content": [{"type": "text"}]}, "Message 1 content 0 text text: Field required"),
        ({"role": "user", "content": HALF_A_PAIR}, "surrogates not allowed"),
        ({"role": "user", "content": [{"type": "text", "text": HALF_A_PAIR}]}, "surrogates not allowed"),
        ("hello", "Message 1: "),
        (3, "Message 1: "),
        (None, "Message 1: "),
    ],
)
def test_a_bad_message_is_named_by_its_place(message, said):
    with pytest.raises(InvalidRequest) as caught:
        make_request([{"role": "user", "content": "Hi"}, message])
    assert str(caught.value).startswith(
        "messages must be a non-empty list of messages, each with a role; got ["
    )
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_prompt_or_messages_may_be_given_by_name():
    assert make_request(prompt="Hi").prompt == "Hi"
    assert make_request(messages=[{"role": "user", "content": "Hi"}]).messages[0].text() == "Hi"
    with pytest.raises(InvalidRequest, match="prompt must be a non-empty string of valid Unicode; got ''"):
        make_request(temperature=0)


@pytest.mark.parametrize(
    "request_", [3, b"x", {"role": "user", "content": "x"}, Message(role="user"), np.array(["x"])]
)
def test_what_is_no_prompt_at_all_is_named_by_its_type(request_):
    with pytest.raises(InvalidRequest, match=f"got {type(request_).__name__}"):
        make_request(request_)


@pytest.mark.parametrize("request_", ["", "  ", [], ()])
def test_nothing_to_answer_is_refused(request_):
    with pytest.raises(InvalidRequest, match="must be a non-empty"):
        make_request(request_)


@pytest.mark.parametrize("sequence", [list, tuple])
def test_a_conversation_may_hold_dicts_and_messages(sequence):
    given_ = sequence([{"role": "user", "content": "a"}, Message(role="assistant", content="b")])
    assert make_request(given_).conversation() == [
        Message(role="user", content="a"),
        Message(role="assistant", content="b"),
    ]


# What is accepted


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("temperature", np.float32(0.5), 0.5),
        ("temperature", np.array(0.25), 0.25),
        ("temperature", np.int64(2), 2.0),
        ("temperature", Decimal("0.5"), 0.5),
        ("temperature", 1e308, 1e308),
        ("top_k", np.int8(40), 40),
        ("top_k", 40.0, 40),
        ("max_tokens", np.float64(3), 3),
        ("seed", np.uint64(2**63 - 1), 2**63 - 1),
        ("seed", 0, 0),
        ("top_p", 1, 1.0),
        ("min_p", 1, 1.0),
        ("candidates", 1000, 1000),
        ("logit_bias", {np.int64(3): np.float32(-1)}, {3: -1.0}),
        ("logit_bias", {3: -INF}, {3: -INF}),
        ("stop", "END", ["END"]),
        ("stop", ("a", "b"), ["a", "b"]),
        ("stop", [], []),
        ("time_limit", None, None),
        ("time_limit", np.float32(1.5), 1.5),
    ],
)
def test_numbers_of_numpy_and_whole_floats_are_taken_as_python_s(field, value, expected):
    result = getattr(make_request("Hi", **{field: value}).params, field)
    assert result == expected
    assert type(result) is type(expected)
    if isinstance(expected, dict):
        assert [type(k) for k in result] == [int]


def test_torch_s_scalars_are_numbers_and_its_vectors_are_not():
    torch = importlib.import_module("torch")
    assert make_request("Hi", temperature=torch.tensor(0.5)).params.temperature == 0.5
    for wrong in (torch.tensor([1.0, 2.0]), torch.tensor(True)):
        with pytest.raises(InvalidRequest, match="temperature must be"):
            make_request("Hi", temperature=wrong)


# Whose setting wins


def test_settings_override_the_request_s_own_and_leave_the_rest():
    own = GenerateRequest(prompt="Hi", params=GenerateParams(temperature=0.1, top_k=5, stop=["x"]))
    request = make_request(own, temperature=0.9, stop="y")
    assert (request.params.temperature, request.params.top_k, request.params.stop) == (0.9, 5, ["y"])
    assert (own.params.temperature, own.params.stop) == (0.1, ["x"])


def test_keywords_override_params_and_params_override_the_request_s_own():
    own = GenerateRequest(prompt="Hi", params=GenerateParams(temperature=0.1, top_k=1, seed=1))
    params = make_request(own, params={"top_k": 2, "seed": 2}, seed=3).params
    assert (params.temperature, params.top_k, params.seed) == (0.1, 2, 3)
    params = make_request(own, params=GenerateParams(top_k=2)).params
    assert (params.temperature, params.top_k) == (0.1, 2)


def test_a_prompt_overrides_the_request_s_own_text():
    messages = [{"role": "user", "content": "old"}]
    for own in (GenerateRequest(prompt="old"), GenerateRequest(messages=messages)):
        assert [m.text() for m in make_request(own, prompt="new").conversation()] == ["new"]
    assert [m.text() for m in make_request("new", messages=messages).conversation()] == ["old"]


def test_a_request_without_settings_comes_back_equal():
    own = GenerateRequest(prompt="Hi", context="c", chat_template=False, params=GenerateParams(seed=4))
    assert make_request(own) == own


def test_requests_do_not_change():
    with pytest.raises(ValueError, match="frozen"):
        make_request("Hi").params.temperature = 1.0


# Anything at all


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.complex_numbers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text() | st.integers(), inner, max_size=3),
    max_leaves=6,
)


@settings(STEADY, max_examples=400)
@given(st.dictionaries(st.sampled_from(SETTINGS) | st.text(min_size=1), ANYTHING, max_size=3))
def test_no_keyword_and_no_value_raises_anything_but_invalid_request(keywords):
    keywords.pop("request", None)
    try:
        request = make_request("Hi", **keywords)
    except InvalidRequest:
        return
    assert set(keywords) <= set(SETTINGS)
    assert request.conversation()


@settings(STEADY, max_examples=200)
@given(
    ANYTHING
    | st.text(st.characters())
    | st.lists(st.dictionaries(st.sampled_from(["role", "content"]), ANYTHING))
)
def test_no_prompt_raises_anything_but_invalid_request(prompt):
    try:
        request = make_request(prompt)
    except InvalidRequest:
        return
    for message in request.conversation():
        message.text().encode()


def test_an_intent_may_be_a_dict_and_its_faults_are_named():
    assert make_request("Hi", intent={"task": "code"}).intent.task == "code"
    with pytest.raises(InvalidRequest, match=r"'tusk' is no field of an intent\. Did you mean 'task'"):
        make_request("Hi", intent={"tusk": "code"})
    with pytest.raises(InvalidRequest, match="'poetry' is no task"):
        make_request("Hi", intent={"task": "poetry"})
