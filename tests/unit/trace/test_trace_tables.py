"""Tables and JSON of a trace, against values by hand."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from trace_samples import empty, plain, sky, step, trace

from cartoolkit.trace import STAGES
from cartoolkit.trace.frame import CANDIDATES_FRAME, STEPS_FRAME

LOG = math.log


def test_one_row_a_step():
    frame = sky().to_frame()
    assert list(frame.columns) == list(STEPS_FRAME)
    assert frame.index.name == "step"
    assert frame.index.tolist() == [0, 1, 2, 3, 4]
    assert frame.token_id.tolist() == [1, 4, 8, 9, 2]
    assert frame.text.tolist() == ["The", " <script>alert(1)</script>", "", "🙂", ""]
    assert frame.label.tolist() == ["The", " <script>alert(1)</script>", "\\xF0\\x9F", "🙂", "<|im_end|>"]
    assert frame["rank"].tolist() == [1, 2, 1, 2, 1]
    assert frame.candidates.tolist() == [2, 2, 3, 2, 2]
    assert frame.removed.tolist() == [1, 0, 2, 1, 0]
    assert frame.elapsed.tolist() == [0.25, 0.5, 0.75, 1.0, 1.25]


def test_probabilities_surprisal_and_masses_by_hand():
    frame = sky().to_frame()
    assert frame.prob.to_numpy() == pytest.approx([3 / 4, 1 / 8, 1 / 4, 1 / 8, 1 / 2], rel=1e-6)
    assert frame.logprob.to_numpy() == pytest.approx(
        [LOG(3 / 4), -LOG(8), -LOG(4), -LOG(8), -LOG(2)], rel=1e-6
    )
    assert frame.surprisal.to_numpy() == pytest.approx([LOG(4 / 3), LOG(8), LOG(4), LOG(8), LOG(2)], rel=1e-6)
    assert frame.processed_prob.to_numpy() == pytest.approx([1, 1 / 2, 1, 1, 3 / 4], rel=1e-6)
    assert frame.max_prob.tolist() == [0.75, 0.25, 0.25, 0.25, 0.5]
    assert frame.margin.tolist() == [0.625, 0.125, 0.125, 0.125, 0.25]
    assert frame.rest_mass.tolist() == [0.125, 0.625, 0.5625, 0.625, 0.25]
    assert frame.processed_rest_mass.tolist() == [0, 0, 0, 0, 0]


def test_flags_are_booleans():
    run = trace([step(0, 8, "", incomplete=True, forced=True, kept=False), step(1, 2, "", special=True)])
    flags = run.to_frame()[["incomplete", "special", "forced", "kept"]]
    assert flags.to_numpy().tolist() == [[True, False, True, False], [False, True, False, True]]
    assert set(flags.dtypes) == {np.dtype(bool)}


def test_a_run_without_numbers_has_nan_and_no_candidates():
    frame = plain().to_frame()
    assert frame[["prob", "surprisal", "max_prob", "entropy", "draw"]].isna().all(axis=None)
    assert frame["rank"].tolist() == [0, 0]
    assert frame.candidates.tolist() == [0, 0]
    assert len(plain().to_frame(candidates=True)) == 0


def test_no_steps_make_tables_without_rows_but_with_columns():
    assert list(empty().to_frame().columns) == list(STEPS_FRAME)
    assert list(empty().to_frame(candidates=True).columns) == list(CANDIDATES_FRAME)
    assert len(empty().to_frame()) == len(empty().to_frame(candidates=True)) == 0


def test_one_row_a_candidate():
    frame = sky().to_frame(candidates=True)
    assert list(frame.columns) == list(CANDIDATES_FRAME)
    assert frame.step.tolist() == [0, 0, 1, 1, 2, 2, 2, 3, 3, 4, 4]
    assert frame.position.tolist() == [1, 2, 1, 2, 1, 2, 3, 1, 2, 1, 2]
    assert frame.token_id.tolist() == [1, 3, 3, 4, 8, 5, 6, 10, 9, 2, 7]
    assert frame.text.tolist()[4:9] == ["\\xF0\\x9F", "</textarea>", " &amp;", "😀", "🙂"]
    assert frame.chosen.tolist() == [True, False, False, True, True, False, False, False, True, True, False]
    assert frame.removed_by.tolist() == ["", "top_p", "", "", "", "top_k", "min_p", "bias", "", "", ""]
    assert frame.prob.to_numpy()[:4] == pytest.approx([3 / 4, 1 / 8, 1 / 4, 1 / 8], rel=1e-6)
    assert frame.processed_prob.to_numpy()[:4] == pytest.approx([1, 0, 1 / 2, 1 / 2], rel=1e-6)
    assert frame.processed_logprob[1] == -math.inf


def test_stages_are_categories_in_the_order_of_the_sampler():
    frame = sky().to_frame(candidates=True)
    assert isinstance(frame.removed_by.dtype, pd.CategoricalDtype)
    assert tuple(frame.removed_by.cat.categories) == STAGES


def test_the_tables_join_on_the_step():
    joined = sky().to_frame(candidates=True).merge(sky().to_frame(), on="step", suffixes=("", "_chosen"))
    assert joined.label.tolist()[:3] == ["The", "The", " <script>alert(1)</script>"]


@pytest.mark.parametrize(("candidates", "described"), [(False, STEPS_FRAME), (True, CANDIDATES_FRAME)])
def test_every_column_says_what_it_is(candidates, described):
    frame = sky().to_frame(candidates=candidates)
    assert set(frame.attrs) == set(frame.columns) == set(described)
    kind = {"logprob", "prob", "processed_logprob", "max_prob", "margin", "entropy", "surprisal"} & set(
        described
    )
    words = ("raw", "drawn with")
    assert [name for name in kind if not any(word in described[name] for word in words)] in (
        [],
        ["processed_logprob"],
    )


def test_numbers_that_are_no_logarithms_of_probabilities_pass_without_a_warning():
    run = sky()
    run.columns["logprob"][:] = 1e30
    assert run.to_frame().prob.tolist() == [math.inf] * 5


# JSON


def strict(text):
    return json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def test_json_holds_the_whole_run_in_plain_words():
    document = strict(sky(prompt_logprobs=np.array([np.nan, -2.5], np.float32)).to_json())
    assert (document["format"], document["version"]) == ("cartoolkit.trace.json", 1)
    assert document["header"]["stop_reason"] == "stop"
    assert document["text"] == "The <script>alert(1)</script>🙂"
    assert document["prompt"] == {
        "token_ids": [1, 3],
        "logprobs": [None, -2.5],
        "bytes": [[84, 104, 101], [32, 115, 107, 121]],
    }
    assert document["figures"] == {
        "perplexity": pytest.approx((2048 / 3) ** (1 / 5), rel=1e-6),
        "mean_entropy": 1.5,
        "ttft_ms": 250.0,
        "tokens_per_second": 4.0,
        "completion_tokens": 4,
    }


def test_a_step_in_json():
    third = strict(sky().to_json())["steps"][2]
    candidates = third.pop("candidates")
    assert third.pop("logprob") == pytest.approx(-LOG(4), rel=1e-6)
    assert third == {
        "index": 2, "token_id": 8, "text": "", "label": "\\xF0\\x9F", "bytes": [240, 159], "incomplete": True,
        "special": False, "rank": 1, "processed_logprob": 0.0, "max_prob": 0.25, "entropy": 1.5,
        "varentropy": 0.25, "margin": 0.125, "rest_mass": 0.5625, "processed_rest_mass": 0.0, "draw": 0.125,
        "elapsed": 0.75, "forced": False, "kept": True,
    }  # fmt: skip
    assert [c["removed_by"] for c in candidates] == ["", "top_k", "min_p"]
    assert [c["processed_logprob"] for c in candidates] == [0.0, None, None]
    assert candidates[1] == {
        "token_id": 5,
        "text": "</textarea>",
        "logprob": pytest.approx(-LOG(8), rel=1e-6),
        "processed_logprob": None,
        "removed_by": "top_k",
    }


def test_what_json_lacks_becomes_null_or_text():
    params = {
        "logit_bias": {17: -math.inf},
        "pair": (1, 2),
        "odd": {
            1,
        },
        "n": np.float32(0.5),
    }
    document = strict(trace([step(0, 1, "The")], params=params).to_json())
    assert document["header"]["params"] == {
        "logit_bias": {"17": None},
        "pair": [1, 2],
        "odd": "{1}",
        "n": 0.5,
    }
    assert document["steps"][0]["entropy"] is None
    assert document["figures"]["perplexity"] is None


def test_options_go_to_json_dumps():
    assert sky().to_json(indent=1).startswith('{\n "format"')
    assert "🙂" in sky().to_json(ensure_ascii=False)
    with pytest.raises(TypeError):
        sky().to_json(colour=1)


def test_an_empty_run_is_json_too():
    document = strict(empty().to_json())
    assert (document["steps"], document["text"]) == ([], "")
    assert document["figures"]["ttft_ms"] is None
