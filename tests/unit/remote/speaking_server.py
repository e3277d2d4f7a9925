"""A server that says what a test tells it to say, over real HTTP: the wire format of chat completions."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def chunk(text=None, *, finish=None, tokens=None, **fields):
    """One chunk as OpenAI documents it; `fields` stand in the delta."""
    delta = fields if text is None else {"content": text, **fields}
    choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
    if tokens is not None:
        choice["logprobs"] = {"content": tokens, "refusal": None}
    return {"id": "1", "object": "chat.completion.chunk", "model": "parrot-2026", "choices": [choice]}


def token(name, logprob=-0.1, *, others=(), data=True):
    """One entry of `logprobs.content`; `others` are (name, logprob) of the likeliest tokens."""

    def entry(name, logprob):
        raw = name if isinstance(name, bytes) else name.encode()
        written = name.decode(errors="replace") if isinstance(name, bytes) else name
        return {"token": written, "logprob": logprob, "bytes": list(raw) if data else None}

    return {**entry(name, logprob), "top_logprobs": [entry(*other) for other in others]}


def usage(prompt=7, completion=3, **details):
    """The last chunk of a stream that counts."""
    counted = {"prompt_tokens": prompt, "completion_tokens": completion, **details}
    return {"object": "chat.completion.chunk", "model": "parrot-2026", "choices": [], "usage": counted}


def said(*chunks, done=True):
    """Answer with these chunks; a string stands as it is, a function is called between two of them."""

    def answer(handler):
        handler.begin_stream()
        for each in chunks:
            if callable(each):
                each(handler)
            else:
                handler.send_data(each if isinstance(each, str) else json.dumps(each))
        if done:
            handler.send_data("[DONE]")

    return answer


def words(*texts, finish="stop", count=usage):
    """Answer with chunks of text, the reason why it ends, and a count."""
    return said(*(chunk(text) for text in texts), chunk(finish=finish), *([count()] if count else []))


def failing(status, error, **headers):
    """Answer with an error."""

    def answer(handler):
        handler.send_json(status, {"error": error}, headers)

    return answer


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append(json.loads(body))
        self.server.heard.append({name.lower(): value for name, value in self.headers.items()})
        turn = min(len(self.server.requests), len(self.server.answers)) - 1
        try:
            self.server.answers[turn](self)
        except (BrokenPipeError, ConnectionResetError):
            self.server.left.set()
        self.close_connection = True

    def begin_stream(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()

    def send_data(self, data):
        self.wfile.write(f"data: {data}\n\n".encode())
        self.wfile.flush()

    def send_json(self, status, value, headers):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        # It closes after each answer, and a client that is not told may ask again over the same connection.
        self.send_header("Connection", "close")
        for name, each in headers.items():
            self.send_header(name.replace("_", "-"), each)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class SpeakingServer(ThreadingHTTPServer):
    """Answers the first request with the first of `answers`, and so on; the last one holds for the rest.

    Attributes:
        requests: bodies that have come.
        heard: their headers, names in small letters.
        left: set when a client has gone while it was being answered.
    """

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers = [words("Hello", " there", ".")]
        self.requests = []
        self.heard = []
        self.left = threading.Event()
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    @property
    def address(self):
        return f"http://127.0.0.1:{self.server_port}/v1"
