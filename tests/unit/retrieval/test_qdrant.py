"""Qdrant in memory, in a folder, and what is said when a server is away, refuses or is none of ours."""

import json
import math
import threading
import traceback
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from embedders import Letters
from qdrant_client import QdrantClient
from qdrant_client.models import Distance, PointStruct, VectorParams

from cartoolkit.errors import InvalidIndex, InvalidRequest, MissingDependency, RetrievalError, RetrieverFailed
from cartoolkit.retrieval import minilm, qdrant
from cartoolkit.retrieval.embeddings import EmbeddingRetriever
from cartoolkit.retrieval.passages import Passage
from cartoolkit.retrieval.qdrant import QdrantRetriever, batches, point_id

PASSAGES = [Passage("a", "aaa", source="a.md", line=4), Passage("b", "bbb"), Passage("ab", "ab", title="AB")]


@pytest.fixture
def retriever():
    with QdrantRetriever(embedder=Letters()) as made:
        made.add(PASSAGES)
        yield made


def test_the_nearest_vector_comes_first_and_a_score_is_the_cosine(retriever):
    hits = retriever.search("aab", 3)
    # The title counts as well: "AB" and "ab" are two of each letter.
    cosine = {"ab": 3 / math.sqrt(10), "a": 2 / math.sqrt(5), "b": 1 / math.sqrt(5)}
    assert [hit.id for hit in hits] == ["ab", "a", "b"]
    assert {hit.id: hit.score for hit in hits} == pytest.approx(cosine, abs=0.02)


def test_it_finds_what_a_comparison_of_all_finds():
    letters = np.random.default_rng(0).choice(list("abcdefgh "), (300, 20))
    passages = [Passage(f"{i:03}", "".join(row)) for i, row in enumerate(letters)]
    plain, points = EmbeddingRetriever(passages, embedder=Letters()), QdrantRetriever(embedder=Letters())
    points.add(passages)
    for query in ("abc", "gab", "ha ha", "deaf"):
        expected = {hit.id: hit.score for hit in plain.search(query, 20)}
        assert {hit.id: hit.score for hit in points.search(query, 20)} == pytest.approx(expected, abs=1e-5)


def test_minilm_finds_what_is_said_in_other_words():
    try:
        retriever = QdrantRetriever()
    except MissingDependency as missing:
        pytest.skip(str(missing))
    retriever.add(
        [
            Passage("number", "The atomic number of iron is 26."),
            Passage("symbol", "The chemical symbol of iron is Fe."),
            Passage("capital", "The capital of Iran is Tehran."),
        ]
    )
    assert retriever.search("How many protons does an atom of iron have?", 1)[0].id == "number"
    assert minilm.MiniLM.name in repr(retriever)


def test_a_passage_s_uuid_never_changes():
    # Worked out by RFC 9562, 5.5: SHA-1 of the name space and the name, with the version and variant set.
    import hashlib

    raw = bytearray(hashlib.sha1(qdrant.NAMESPACE.bytes + "ü/1".encode()).digest()[:16])
    raw[6], raw[8] = raw[6] & 0x0F | 0x50, raw[8] & 0x3F | 0x80
    assert point_id("ü/1") == str(uuid.UUID(bytes=bytes(raw)))
    assert str(qdrant.NAMESPACE) == "6a1f5c0e-7d53-5f0b-9a35-0d2b8b7c4f11"


def test_only_what_changed_is_embedded(retriever):
    before = len(retriever.embedder.seen)
    retriever.add([*PASSAGES, Passage("b", "bbb", source="elsewhere"), Passage("new", "c", title="C")])
    assert retriever.embedder.seen[before:] == ["bbb", "C\nc"]


def test_requests_stay_small():
    # 24 bytes a number: 8 numbers and 3.9 MB of text; two fit into 8 MB, three do not.
    long = [Passage(str(i), "x" * 3_900_000) for i in range(5)]
    assert list(batches(long, 8)) == [(0, 2), (2, 4), (4, 5)]
    assert list(batches([Passage("1", "é" * 9_000_000), *long[:1]], 8)) == [(0, 1), (1, 2)]
    many = [Passage(str(i), "x") for i in range(300)]
    assert list(batches(many, 8)) == [(0, 128), (128, 256), (256, 300)]
    assert list(batches([], 8)) == []


@pytest.mark.parametrize("value", [np.nan, np.inf, 0.0])
def test_a_vector_without_direction_is_refused_and_nothing_is_written(value):
    retriever = QdrantRetriever(embedder=Letters())
    retriever.embedder = lambda texts: np.full((len(texts), 8), value, np.float32)
    retriever.embedder.name = "letters"
    for action in (lambda: retriever.add(PASSAGES), lambda: retriever.search("a")):
        with pytest.raises(InvalidRequest, match="no direction"):
            action()
    assert len(retriever) == 0


@pytest.mark.parametrize("bad", ["", "\ud800", "a\0b", "ü" * 1_001])
def test_an_id_that_cannot_be_kept_is_refused_and_nothing_is_written(retriever, bad):
    with pytest.raises(InvalidRequest, match="id must be text"):
        retriever.add([Passage("fine", "whale"), Passage(bad, "whale")])
    assert len(retriever) == 3


# Collections


def test_a_client_of_one_s_own_is_used_and_left_open():
    client = QdrantClient(":memory:")
    with QdrantRetriever(client, "one", embedder=Letters()) as first:
        first.add(PASSAGES)
    with pytest.raises(RetrievalError, match="was closed"):
        first.search("a")
    assert len(QdrantRetriever(client, "one", embedder=Letters())) == 3
    assert len(QdrantRetriever(client, "two", embedder=Letters())) == 0
    assert sorted(each.name for each in client.get_collections().collections) == ["one", "two"]


def test_a_collection_of_another_program_is_refused_and_left_alone():
    client = QdrantClient(":memory:")
    client.create_collection("passages", vectors_config=VectorParams(size=8, distance=Distance.DOT))
    with pytest.raises(InvalidIndex, match="another program"):
        QdrantRetriever(client, embedder=Letters())
    assert client.count("passages").count == 0


def test_what_others_add_to_a_collection_does_no_harm(retriever):
    client = retriever._client
    client.set_payload("passages", {"tag": "theirs"}, points=[point_id("b")])
    client.upsert("passages", [PointStruct(id=7, vector=[1.0] * 8, payload={"tag": "theirs"})])
    assert [hit.id for hit in retriever.search("bbb", 9)] == ["b", "ab", "a"]


def test_a_newer_collection_and_vectors_of_another_model_are_refused():
    client = QdrantClient(":memory:")
    QdrantRetriever(client, embedder=Letters())
    with pytest.raises(InvalidRequest, match="vectors of letters, which do not compare with those of others"):
        QdrantRetriever(client, embedder=Letters("others"))
    shorter = QdrantRetriever(client, embedder=Letters(letters="abc"))
    with pytest.raises(InvalidRequest, match=r"shape \[1, 3\], where \[1, 8\] is kept"):
        shorter.search("a")
    client.update_collection("passages", metadata={"cartoolkit": 2})
    with pytest.raises(InvalidIndex, match="version 2"):
        QdrantRetriever(client, embedder=Letters())


def test_a_collection_that_is_gone_is_said_to_be():
    client = QdrantClient(":memory:")
    retriever = QdrantRetriever(client, embedder=Letters())
    client.delete_collection("passages")
    for action in (lambda: retriever.add(PASSAGES), lambda: retriever.search("a"), lambda: len(retriever)):
        with pytest.raises(InvalidIndex, match="is gone"):
            action()


def test_a_folder_is_open_in_one_place_at_a_time(tmp_path):
    with QdrantRetriever(tmp_path / "points", embedder=Letters()) as first:
        first.add(PASSAGES)
        with pytest.raises(RetrieverFailed, match="open in another client") as caught:
            QdrantRetriever(str(tmp_path / "points"), embedder=Letters())
        assert "Qdrant server" in caught.value.hint
    with QdrantRetriever(str(tmp_path / "points"), embedder=Letters()) as second:
        assert len(second) == 3


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("here")
    with pytest.raises(RetrieverFailed, match="file/points failed: Not a directory"):
        QdrantRetriever(tmp_path / "file" / "points", embedder=Letters())


# Servers


class Answers(BaseHTTPRequestHandler):
    """A server that answers every request alike."""

    status = 500

    def answer(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = json.dumps({"status": {"error": "hush: you sent 'whale'"}, "time": 0}).encode()
        self.send_response(self.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.answer()

    def do_PUT(self):
        self.answer()

    def log_message(self, *_):
        pass


@pytest.fixture
def refusing(request):
    handler = type("Refusing", (Answers,), {"status": request.param})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(("refusing", "hint"), [(403, "api_key"), (500, None)], indirect=["refusing"])
def test_a_server_that_refuses_is_quoted_by_its_status_alone(refusing, hint):
    with pytest.raises(RetrieverFailed, match=rf"{refusing} refused, with HTTP status (403|500)") as caught:
        QdrantRetriever(refusing, embedder=Letters())
    assert "hush" not in "".join(traceback.format_exception(caught.value))
    assert (caught.value.hint is None) if hint is None else (hint in caught.value.hint)


def test_a_server_that_is_away_is_named():
    with pytest.raises(RetrieverFailed, match=r"http://127.0.0.1:9 cannot be reached: ConnectError"):
        QdrantRetriever("http://127.0.0.1:9", embedder=Letters())


@pytest.mark.parametrize(
    "address", ["http://ann:hush@host:6333", "https://ann:hu/hush@host", "ftp://host/hush", "hush://"]
)
def test_an_address_with_a_password_or_of_another_kind_is_not_repeated(address):
    with pytest.raises(InvalidRequest, match="URL of a Qdrant server") as caught:
        QdrantRetriever(address, embedder=Letters())
    assert "hush" not in str(caught.value) + caught.value.hint


def test_what_is_no_place_is_refused():
    with pytest.raises(InvalidRequest, match="int is no place"):
        QdrantRetriever(6333, embedder=Letters())


def test_without_qdrant_client_the_way_out_is_named(monkeypatch):
    find = qdrant.importlib.util.find_spec
    monkeypatch.setattr(
        qdrant.importlib.util, "find_spec", lambda name: None if name == "qdrant_client" else find(name)
    )
    with pytest.raises(MissingDependency, match="qdrant-client") as caught:
        QdrantRetriever(embedder=Letters())
    assert "cartoolkit[qdrant]" in caught.value.hint
