"""One notebook open in JupyterLab, as a person would use it, and its kernel beside it."""

import ast
import json
import re
import time
import urllib.request
from pathlib import Path

import nbformat
from jupyter_client import BlockingKernelClient

LOOK = Path(__file__).with_name("look.js")


def write_notebook(path, cells):
    """A notebook of these code cells."""
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    book.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(book, path)


class Notebook:
    """One notebook open in Lab, as a person would use it.

    Attributes:
        page: Playwright's page.
        requests: every address the page asked for.
        complaints: errors and warnings on the page's console.
    """

    def __init__(self, context, folder, address, name):
        self.page, self.folder, self.address, self.name = context.new_page(), folder, address, name
        self.requests, self.complaints = [], []
        self.closed = False
        self._client = None
        self.page.add_init_script(path=LOOK)
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", self._listen)

    def _listen(self, message):
        if message.type == "error" or "cartoolkit" in message.text:
            self.complaints.append(message.text)

    def open(self, *, idle=True):
        """Go to the notebook; `idle` waits for its kernel, otherwise only for its cells."""
        self.page.goto(f"{self.address}/doc/tree/{self.name}?reset")
        if idle:
            self.wait_until_idle()
        else:
            self.page.locator(".jp-Notebook .jp-Cell").first.wait_for(timeout=60_000)
        # A click right after the idle mark can be lost.
        self.page.wait_for_timeout(1000)
        return self

    def wait_until_idle(self):
        self.page.get_by_text(re.compile(r"\| Idle")).first.wait_for(timeout=60_000)

    # Lab

    def menu(self, name, command):
        self.page.get_by_role("menuitem", name=name, exact=True).click()
        self.page.locator(f'.lm-Menu li[data-command="{command}"]').click()

    def run_all(self):
        self.menu("Run", "runmenu:run-all")
        return self

    def run_cell(self, number):
        self.page.locator(".jp-Notebook .jp-Cell").nth(number).locator(".jp-InputArea-editor").click()
        self.page.keyboard.press("Control+Enter")

    def save(self):
        """Save from the menu and return the file's content."""
        saved = self.folder / self.name
        before = saved.stat().st_mtime_ns
        self.menu("File", "docmanager:save")
        deadline = time.monotonic() + 20
        while saved.stat().st_mtime_ns == before:
            assert time.monotonic() < deadline, "the notebook was not saved"
            self.page.wait_for_timeout(50)
        self.page.wait_for_timeout(300)
        return nbformat.read(saved, as_version=4)

    def interrupt(self):
        """Press the toolbar's ■."""
        self.page.locator(
            '[data-command="notebook:interrupt-kernel"], [data-jp-item-name="interrupt"]'
        ).first.click()

    def output_types(self):
        """The kinds of output of each code cell, as they are saved."""
        cells = [cell for cell in self.save().cells if cell.cell_type == "code"]
        return [[output.output_type for output in cell.outputs] for cell in cells]

    def output(self, number):
        """Everything that a cell has shown."""
        return self.page.locator(".jp-Notebook .jp-Cell").nth(number).locator(".jp-OutputArea").first

    # The widget

    def button(self, name, nth=0):
        # The icon counts as a letter of the name.
        return self.page.get_by_role("button", name=re.compile(rf"\b{name}$")).nth(nth)

    def buttons(self):
        """What the visible buttons say."""
        return [name for name in ("Generate", "Pause", "Resume", "Step", "Stop") if self.button(name).count()]

    def view(self, nth=0):
        return self.page.get_by_test_id("run-view").nth(nth)

    def tokens(self, nth=0):
        return self.view(nth).get_by_test_id("token")

    def status(self, nth=0):
        return self.view(nth).get_by_test_id("status")

    def wait_for_phase(self, phase, nth=0, timeout=60_000):
        self.view(nth).locator(f'[data-testid="status"][data-phase="{phase}"]').wait_for(timeout=timeout)

    def wait_for_tokens(self, count, nth=0, timeout=60_000):
        self.tokens(nth).nth(count - 1).wait_for(timeout=timeout)

    def slow_down(self, milliseconds=400):
        """Let every forward take so long that a run is not over before a page is asked; then `full_speed`."""
        self.do(
            "import time\n"
            "def slow_forward(ids, pos, decoder=engine.decoder):\n"
            f"    time.sleep({milliseconds / 1000})\n"
            "    return type(decoder).forward(decoder, ids, pos)\n"
            "engine.decoder.forward = slow_forward"
        )

    def full_speed(self):
        """Let the model run on as fast as it can."""
        self.do(
            "vars(engine.decoder).pop('forward', None)\n"
            "if hasattr(engine.decoder, 'delay'):\n"
            "    engine.decoder.delay = 0"
        )

    def begin(self, tokens, nth=0):
        """Press Generate and wait for the first tokens of a run that takes its time."""
        self.press_generate(nth)
        self.until(
            lambda: self.status(nth).get_attribute("data-phase") in ("prefilling", "running", "paused")
        )
        self.wait_for_tokens(tokens, nth)
        self.button("Stop", nth).wait_for()

    def generate(self, nth=0):
        """Press Generate and wait until the whole run is on the page."""
        self.press_generate(nth)
        self.until(lambda: self.python("inspector.session.done"))
        count = self.python("len(inspector.session.steps)")
        self.until(lambda: self.tokens(nth).count() == count)
        self.until(lambda: self.status(nth).get_attribute("data-phase") in ("finished", "failed"))
        self.button("Generate", nth).wait_for()

    def press_generate(self, nth=0):
        before = self.python("id(inspector.session)")
        self.button("Generate", nth).click()
        self.until(lambda: self.python("id(inspector.session)") != before)

    def until(self, condition, seconds=60):
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, "it did not happen in time"
            self.page.wait_for_timeout(20)

    # The kernel, asked past the browser

    def python(self, expression):
        """The value of an expression in the notebook's kernel; a literal or something json can hold."""
        reply = self._execute("import json", {"value": f"json.dumps({expression})"})
        value = reply["user_expressions"]["value"]
        assert value["status"] == "ok", f"{value['ename']}: {value['evalue']}"
        return json.loads(ast.literal_eval(value["data"]["text/plain"]))

    def do(self, code):
        """Run code in the notebook's kernel."""
        self._execute(code, {})

    def _execute(self, code, expressions):
        if self._client is None:
            self._client = BlockingKernelClient(connection_file=str(self._connection_file()))
            self._client.load_connection_file()
            self._client.start_channels(iopub=False, stdin=False, hb=False)
        sent = self._client.execute(code, silent=True, store_history=False, user_expressions=expressions)
        while True:
            reply = self._client.get_shell_msg(timeout=60)
            if reply["parent_header"].get("msg_id") == sent:
                assert reply["content"]["status"] == "ok", reply["content"]
                return reply["content"]

    def forget_kernel(self):
        """Connect anew at the next question, after a restart."""
        self._client.stop_channels()
        self._client = None

    def _connection_file(self):
        (kernel,) = [
            session["kernel"]["id"] for session in _sessions(self.address) if session["path"] == self.name
        ]
        return self.folder / "runtime" / f"kernel-{kernel}.json"

    def close(self):
        """Close the page and end the kernel."""
        if self.closed:
            return
        self.closed = True
        if self._client is not None:
            self._client.stop_channels()
        self.page.context.close()
        for session in _sessions(self.address):
            if session["path"] == self.name:
                address = f"{self.address}/api/sessions/{session['id']}"
                urllib.request.urlopen(urllib.request.Request(address, method="DELETE")).close()


def _sessions(address):
    with urllib.request.urlopen(f"{address}/api/sessions") as answer:
        return json.load(answer)
