"""Two stand-ins on 127.0.0.1: a package index that can stop in the middle of a file, and a model hub."""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


class PackageIndex:
    """A simple index over a folder of wheels; `stop_half_way` makes it send half of one and then wait.

    `stops_in` limits that to wheels with this in their name; `sent` collects the names that were asked for.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stop_half_way = False
        self.stops_in = ""
        self.half_sent = threading.Event()
        self.go_on = threading.Event()
        self.sent: list[str] = []

    @property
    def downloads(self) -> int:
        return len(self.sent)

    def handler(self) -> type[BaseHTTPRequestHandler]:
        index = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                name = self.path.rstrip("/").rpartition("/")[2]
                if name.endswith(".whl"):
                    index.send_wheel(self, name)
                    return
                wheels = index.folder.glob(f"{name.replace('-', '_')}-*.whl")
                page = "".join(f'<a href="/files/{wheel.name}">{wheel.name}</a>' for wheel in wheels)
                answer(self, 200, page.encode(), {"Content-Type": "text/html"})

            def log_message(self, *args: object) -> None:
                pass

        return Handler

    def send_wheel(self, request: BaseHTTPRequestHandler, name: str) -> None:
        self.sent.append(name)
        body = (self.folder / name).read_bytes()
        request.send_response(200)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        if self.stops_in not in name:
            request.wfile.write(body)
            return
        half = len(body) // 2
        request.wfile.write(body[:half])
        request.wfile.flush()
        self.half_sent.set()
        if self.stop_half_way:
            self.go_on.wait(30)
            return  # closes the connection: the rest never comes
        request.wfile.write(body[half:])


def hub_handler(repositories: dict[str, dict[str, bytes]], asked: list[str]) -> type[BaseHTTPRequestHandler]:
    """The few addresses of the hub that a snapshot download needs; `asked` collects what was requested.

    A repository called `gated/…` answers as the hub does before its terms are accepted.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            path = self.path.split("?")[0]
            asked.append(path)
            name = "/".join(path.removeprefix("/api/models").split("/")[1:3])
            files = repositories.get(name)
            if files is None:
                answer(self, 404, b"{}", {"X-Error-Code": "RepoNotFound"})
            elif "/resolve/" in path:
                self.send_file(name, files, path.rsplit("/", 1)[1])
            elif "/tree/" in path:
                answer(self, 200, json.dumps([tree_entry(*item) for item in files.items()]).encode())
            else:
                info = {"id": name, "sha": COMMIT, "siblings": [{"rfilename": file} for file in files]}
                answer(self, 200, json.dumps(info).encode())

        def send_file(self, name: str, files: dict[str, bytes], file: str) -> None:
            if name.startswith("gated/"):
                answer(self, 403, b"{}", {"X-Error-Code": "GatedRepo"})
            elif file not in files:
                answer(self, 404, b"{}", {"X-Error-Code": "EntryNotFound"})
            else:
                tag = f'"{hashlib.sha1(files[file]).hexdigest()}"'
                answer(self, 200, files[file], {"ETag": tag, "X-Repo-Commit": COMMIT})

        def log_message(self, *args: object) -> None:
            pass

    return Handler


def tree_entry(name: str, content: bytes) -> dict:
    return {"type": "file", "path": name, "size": len(content), "oid": hashlib.sha1(content).hexdigest()}


def answer(request: BaseHTTPRequestHandler, status: int, body: bytes, headers: dict | None = None) -> None:
    request.send_response(status)
    for key, value in ({"Content-Type": "application/json"} | (headers or {})).items():
        request.send_header(key, value)
    request.send_header("Content-Length", str(len(body)))
    request.end_headers()
    if request.command != "HEAD":
        request.wfile.write(body)
