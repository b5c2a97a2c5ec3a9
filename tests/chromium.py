"""Drives a headless Chromium over its debugging pipe, with nothing but Python's own library."""
import base64
import json
import os
import shutil
import subprocess
import tempfile

BINARIES = ("chromium", "chromium-browser", "google-chrome")


def find():
    """Path of a Chromium, or None."""
    return next((path for path in map(shutil.which, BINARIES) if path), None)


class Chromium:
    """One browser with one page; commands are answered in order, events are kept."""

    def __init__(self):
        self.profile = tempfile.mkdtemp()
        to_browser_read, self.to_browser = os.pipe()
        self.from_browser, from_browser_write = os.pipe()

        def place_pipes():
            # High numbers first, so that neither end is overwritten before it is copied.
            read_end, write_end = os.dup(to_browser_read), os.dup(from_browser_write)
            os.dup2(os.dup(read_end), 3)
            os.dup2(os.dup(write_end), 4)
            os.set_inheritable(3, True)
            os.set_inheritable(4, True)

        # The high copies keep 3 and 4 free for dup2().
        to_browser_read = self._raise(to_browser_read)
        from_browser_write = self._raise(from_browser_write)
        self.to_browser = self._raise(self.to_browser)
        self.from_browser = self._raise(self.from_browser)
        self.process = subprocess.Popen(
            [find(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--no-first-run", "--remote-debugging-pipe", "--user-data-dir=" + self.profile,
             "about:blank"],
            pass_fds=(3, 4), preexec_fn=place_pipes,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser_read)
        os.close(from_browser_write)
        self.buffer = b""
        self.next_id = 0
        self.session = None
        self.events = []
        target = self.command("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.command("Target.attachToTarget", targetId=target,
                                    flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.command(domain + ".enable")

    @staticmethod
    def _raise(fd):
        import fcntl
        high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 20)
        os.close(fd)
        return high

    def _read(self):
        while b"\0" not in self.buffer:
            data = os.read(self.from_browser, 1 << 20)
            if not data:
                raise RuntimeError("Chromium closed its pipe")
            self.buffer += data
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def command(self, method, **params):
        self.next_id += 1
        message = {"id": self.next_id, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to_browser, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self.next_id:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            if "method" in answer:
                self.events.append(answer)

    def open(self, path, width, dark=False, scripts=True, height=900):
        """Loads a file; the events of the page are in self.events afterwards."""
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=height,
                     deviceScaleFactor=1, mobile=width < 600)
        self.command("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.command("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.events = []
        self.command("Page.navigate", url="file://" + os.path.abspath(path))
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            message = self._read()
            if "method" in message:
                self.events.append(message)

    def evaluate(self, expression):
        result = self.command("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"]["exception"]["description"])
        return result["result"].get("value")

    def key(self, key, code, text=""):
        numbers = {"Tab": 9, "Enter": 13}
        for kind in ("keyDown", "keyUp"):
            self.command("Input.dispatchKeyEvent", type=kind, key=key, code=code,
                         windowsVirtualKeyCode=numbers[key],
                         **({"text": text} if text and kind == "keyDown" else {}))

    def screenshot(self, path):
        data = self.command("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def problems(self):
        """Console errors, exceptions and requests for anything but the file itself."""
        found = []
        for event in self.events:
            method, params = event["method"], event["params"]
            if method == "Runtime.exceptionThrown":
                found.append(params["exceptionDetails"]["text"])
            elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
                found.append(str(params["args"]))
            elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                found.append(params["entry"]["text"])
            elif method == "Network.requestWillBeSent":
                url = params["request"]["url"]
                if not url.startswith(("file://", "data:")):
                    found.append("request for " + url)
        return found

    def close(self):
        self.process.terminate()
        self.process.wait()
        os.close(self.to_browser)
        os.close(self.from_browser)
        shutil.rmtree(self.profile, ignore_errors=True)
