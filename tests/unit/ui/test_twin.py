"""The static twin: an output of its own beside the live view, written again when a run ends."""

import pytest
from IPython.core.interactiveshell import InteractiveShell

import cartoolkit as ct

LIVE = "application/vnd.jupyter.widget-view+json"
HOSTILE = [
    b"<script>window.__pwned=1</script>",
    b"</textarea>",
    b" &amp;",
    "\u2028".encode(),
    "\u202ex".encode(),
]


class Outputs:
    """A notebook's outputs, by display id."""

    def __init__(self):
        self.shown, self.updates = {}, 0

    def publish(self, data, metadata=None, *, transient=None, update=False, **_):
        self.updates += update
        self.shown[transient["display_id"]] = data

    @property
    def all(self):
        return list(self.shown.values())


@pytest.fixture
def outputs(monkeypatch, front_end):
    recorded = Outputs()
    shell = InteractiveShell.instance()
    monkeypatch.setattr(shell.display_pub, "publish", recorded.publish)
    yield recorded
    InteractiveShell.clear_instance()


def test_an_inspector_is_shown_live_with_its_twin_below(make_engine, outputs):
    ct.Inspector(make_engine(), "a")._ipython_display_()
    live, twin = outputs.all
    assert set(live) == {LIVE, "text/html"}
    assert live["text/html"] == ""
    assert set(twin) == {"text/html", "text/plain"}
    assert "press Generate" in twin["text/html"]


def test_when_the_run_ends_only_the_twin_is_written_again(make_engine, outputs, followers, eventually):
    inspector = ct.Inspector(make_engine(), "a", temperature=0)
    inspector._ipython_display_()
    before = outputs.all[0]
    inspector.start().result()
    eventually(lambda: followers() == [])
    live, twin = outputs.all
    assert (outputs.updates, live) == (1, before)
    assert "abc" in twin["text/plain"]
    assert ">abc<" not in twin["text/html"]  # each token is an element of its own
    for token in "abc":
        assert f">{token}<" in twin["text/html"]


def test_every_place_where_it_is_shown_is_written_again(make_engine, outputs, followers, eventually):
    inspector = ct.Inspector(make_engine(), "a", temperature=0)
    for _ in range(3):
        inspector._ipython_display_()
    inspector.start().result()
    eventually(lambda: followers() == [])
    assert [("abc" in data["text/plain"]) for data in outputs.all if LIVE not in data] == [True] * 3


def test_the_live_view_hides_its_own_twin_and_no_other(make_engine, outputs):
    first, second = ct.Inspector(make_engine(), "a"), ct.Inspector(make_engine(), "a")
    names = [inspector._twin._class for inspector in (first, second)]
    assert names[0] != names[1]
    for inspector, name in zip((first, second), names, strict=True):
        assert f"<style>.{name} {{display: none}}</style>" in inspector.children[0].children[0].value
        assert inspector._twin.bundle()["text/html"].startswith(f'<div class="{name}">')


def test_freeze_leaves_the_twin_alone(make_engine, outputs):
    inspector = ct.Inspector(make_engine(), "a", temperature=0)
    inspector._ipython_display_()
    inspector.start().result()
    inspector.freeze()
    live, twin = outputs.all
    assert live == {"text/html": ""}
    assert "abc" in twin["text/plain"]


def test_one_bundle_carries_both_where_only_one_is_asked_for(make_engine):
    inspector = ct.Inspector(make_engine(), "a", temperature=0)
    inspector.start().result()
    bundle = inspector._repr_mimebundle_()
    assert {LIVE, "text/html", "text/plain"} <= set(bundle)
    assert "abc" in bundle["text/plain"]


def test_a_closed_inspector_shows_its_twin(make_engine, outputs):
    inspector = ct.Inspector(make_engine(), "a", temperature=0)
    inspector.start().result()
    inspector.close()
    inspector._ipython_display_()
    (twin,) = outputs.all
    assert "abc" in twin["text/plain"]


def test_closing_while_it_runs_leaves_the_text_so_far(slow, outputs, followers, eventually):
    inspector = ct.Inspector(slow, "a", temperature=0)
    inspector._ipython_display_()
    session = inspector.start()
    eventually(lambda: len(session.steps) > 3)
    inspector.close()
    eventually(lambda: followers() == [])
    assert "abc" in outputs.all[1]["text/plain"]
    session.stop()


def test_hostile_text_stays_text(make_engine):
    engine = make_engine([1, 2, 3, 4, 5], words=HOSTILE)
    engine.decoder.encode = lambda *_, **__: [1]
    inspector = ct.Inspector(engine, "<script>window.__pwned=1</script></textarea>", temperature=0)
    inspector.start().result()
    html = inspector._twin.bundle()["text/html"]
    assert "<script" not in html
    assert "</textarea" not in html
    assert html.count("&lt;script&gt;window.__pwned=1&lt;/script&gt;") >= 2
    assert "&amp;amp;" in html


def test_outside_a_notebook_text_is_printed(make_engine, capsys):
    InteractiveShell.clear_instance()
    ct.Inspector(make_engine(), "a")._ipython_display_()
    assert "Nothing has been generated yet" in capsys.readouterr().out
