"""Tests the desktop's page in Chromium; scripts/desktop-page sets up what it needs, and runs it."""

import base64
import http.client
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

import desktop_by_hand
from desktop_by_hand import BY_HAND, GPU_RUN, PATIENCE, until

SCREENSHOTS = os.environ.get("SCREENSHOTS")
OPTIONS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
           "--disable-component-update", "--disable-sync", "--force-color-profile=srgb"]
WIDTH, HEIGHT = 960, 600
SETTINGS = Path("docs/desktop/settings.txt").read_text()

folder = Path(tempfile.mkdtemp(prefix="desktop-page-"))
environment = dict(os.environ, GPU_RUN_CACHE=str(folder / "cache"))
playwright = sync_playwright().start()
browser = playwright.chromium.launch(executable_path=os.environ["CHROMIUM"], args=OPTIONS)
problems = []
desktops = []


class Desktop:
    """A live desktop."""

    def __init__(self, listen="127.0.0.1:0", options=None):
        options = options or ["--script", str(folder / "settings"), "--no-apps"]
        command = [GPU_RUN, "desktop", "--device", "cpu", "--size", f"{WIDTH}x{HEIGHT}", "--listen", listen, "--effects", "all",
                   *options]
        # Nothing of this script's stays open in it: who waits for its output must not wait for a desktop that a failure left.
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment)
        desktops.append(self.process)
        said = self.process.stderr.readline()
        self.url = re.search(r"http://\S+", said).group(0) if "http://" in said else sys.exit(said + self.process.stderr.read())
        self.host, self.query = re.fullmatch(r"http://([^/]*)/(.*)", self.url).groups()
        self.port = self.host.rsplit(":", 1)[1]

    def end(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        return self.process.wait(PATIENCE)

    def status(self, path="/", host=None):
        connection = http.client.HTTPConnection("127.0.0.1", int(self.port))
        connection.request("GET", path, headers={"Host": host or f"127.0.0.1:{self.port}"})
        return connection.getresponse().status


def open_page(desktop, width=WIDTH, height=HEIGHT, ratio=1, query="", touch=False):
    viewport = {"width": width, "height": height}
    page = browser.new_context(viewport=viewport, device_scale_factor=ratio, has_touch=touch).new_page()
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(desktop.url + query)
    until(lambda: size(page) == (round(width * ratio), round(height * ratio)), "the page has its size")
    settle(page)
    return page


def size(page):
    return tuple(page.evaluate("[canvas.width, canvas.height]"))


def shown(page):
    """What the canvas shows, as a PNG."""
    return base64.b64decode(page.evaluate("canvas.toDataURL()").split(",")[1])


def settle(page):
    """Waits until nothing has changed for a second."""
    last, since = None, time.monotonic()
    while time.monotonic() - since < 1:
        now = shown(page)
        if now != last:
            last, since = now, time.monotonic()
        time.sleep(0.1)
    return last


def picture(script):
    return desktop_by_hand.picture(folder, environment, script, (WIDTH, HEIGHT))


COMPARE = """async (pictures) => {
    const pixels = await Promise.all(pictures.map(async (picture) => {
        const bytes = Uint8Array.from(atob(picture), (c) => c.charCodeAt(0));
        const bitmap = await createImageBitmap(new Blob([bytes]), { colorSpaceConversion: "none" });
        const context = new OffscreenCanvas(bitmap.width, bitmap.height).getContext("2d");
        context.drawImage(bitmap, 0, 0);
        return [bitmap.width, bitmap.height, context.getImageData(0, 0, bitmap.width, bitmap.height).data];
    }));
    const [[width, height, a], [w, h, b]] = pixels;
    if (width !== w || height !== h) return `${width} by ${height} is not ${w} by ${h}`;
    let differ = 0, first = -1;
    for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) { differ++; if (first < 0) first = i >> 2; }
    return differ === 0 ? "" : `${differ} values differ, first at ${first % w}, ${Math.floor(first / w)}`;
}"""
blank = browser.new_page()


def same(one, other, what):
    pictures = [base64.b64encode(picture).decode() for picture in (one, other)]
    differ = blank.evaluate(COMPARE, pictures)
    if differ:
        for name, content in (("one", one), ("other", other)):
            Path(SCREENSHOTS or folder, f"{what.replace(' ', '-')}-{name}.png").write_bytes(content)
    assert differ == "", f"{what}: {differ}"


def keep(page, name):
    if SCREENSHOTS:
        page.screenshot(path=f"{SCREENSHOTS}/{name}.png")


def drag(page, x, y, to_x, to_y, steps=4):
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(to_x, to_y, steps=steps)
    page.mouse.up()


def shows_the_script_and_takes_mouse_and_keyboard():
    desktop = Desktop()
    page = open_page(desktop)
    keep(page, "opened")
    same(settle(page), picture(SETTINGS), "the page and the picture of the script")
    same(page.screenshot(), shown(page), "the screen and the canvas")
    drag(page, 214, 82, 314, 142)
    page.mouse.click(270, 327)
    page.mouse.click(281, 392)
    page.keyboard.type("!é")
    page.mouse.click(439, 392)
    page.mouse.move(314, 142)
    keep(page, "by-hand")
    other = open_page(desktop)
    same(settle(page), picture(SETTINGS + BY_HAND), "what was done by hand and the same as a script")
    same(settle(page), settle(other), "two viewers")
    page.set_viewport_size({"width": 700, "height": 420})
    until(lambda: size(page) == (700, 420) and size(other) == (700, 420), "the desktop takes the window's size")
    same(settle(page), page.screenshot(), "a smaller window and the canvas")
    keep(other, "other-size")
    # Keys that are the desktop's, and keys that are the browser's.
    pressed = """([key, options]) => !document.getElementById("text").dispatchEvent(
        new KeyboardEvent("keydown", { key, code: "Key" + key.toUpperCase(), bubbles: true, cancelable: true, ...options }))"""
    for key, options in (("Tab", {}), ("ArrowLeft", {"altKey": True}), ("a", {"ctrlKey": True}), ("c", {"ctrlKey": True})):
        assert page.evaluate(pressed, [key, options]), f"{key} is the desktop's"
    for key, options in (("F5", {}), ("F12", {}), ("F4", {}), ("t", {"ctrlKey": True}), ("r", {"ctrlKey": True}), ("x", {}),
                         ("v", {"ctrlKey": True}), ("c", {"ctrlKey": True, "shiftKey": True})):
        assert not page.evaluate(pressed, [key, options]), f"{key} is the browser's"
    assert desktop.end() == 143


def sends_wheel_touch_clipboard_and_what_input_methods_compose():
    desktop = Desktop()
    page = open_page(desktop, touch=True)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=f"http://{desktop.host}")
    page.evaluate("""() => {
        globalThis.messages = [];
        const send = WebSocket.prototype.send;
        WebSocket.prototype.send = function (bytes) {
            messages.push([...new Uint8Array(bytes)]);
            send.call(this, bytes);
        };
    }""")

    def events():
        """The events that were sent: kind, flags, key, a, b."""
        said = [bytes(message) for message in page.evaluate("messages") if message[0] == 2]
        return [event for message in said for event in struct.iter_unpack("<HHIII", message[5:])]

    page.mouse.move(200, 300)
    page.mouse.wheel(0, 120)
    until(lambda: (51, 0, 0, 0, 120 * 256) in events(), "the wheel")
    page.touchscreen.tap(100, 50)
    until(lambda: [event[1] for event in events() if event[0] == 54] == [0, 2], "a finger goes down and up")
    assert [event[3:] for event in events() if event[0] == 54][0] == (100 * 256, 50 * 256)
    page.mouse.click(281, 332)
    page.keyboard.press("Control+c")
    page.keyboard.press("Control+Space")
    page.keyboard.press("Shift+PageDown")
    keys = [event[2:4] for event in events() if event[0] == 52]
    assert keys == [(15, 0), (19, 0), (18, 1)], keys
    page.evaluate("""() => {
        text.dispatchEvent(new CompositionEvent("compositionstart"));
        text.dispatchEvent(new CompositionEvent("compositionend", { data: "か" }));
    }""")
    assert events()[-1][:3] == (53, 0, ord("か")), events()[-1]
    page.evaluate("navigator.clipboard.writeText('Paste\\né')")
    page.keyboard.press("Control+v")
    until(lambda: list(b"\x03" + "Paste\né".encode()) in page.evaluate("messages"), "what was pasted")
    page.evaluate("copied('Copied')")
    until(lambda: page.evaluate("navigator.clipboard.readText()") == "Copied", "what was copied")
    # Where the clipboard may not be written, as where the connection is not safe.
    page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined, configurable: true }); copied('Again')")
    page.evaluate("delete navigator.clipboard")
    until(lambda: page.evaluate("navigator.clipboard.readText()") == "Again", "what was copied in the other way")
    desktop.end()


# Makes the file `ran` in the first folder.
TOUCH = """(module
    (import "wasi_snapshot_preview1" "path_open"
        (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
    (memory (export "memory") 1) (data (i32.const 0) "ran")
    (func (export "_start") (drop (call $open
        (i32.const 3) (i32.const 0) (i32.const 0) (i32.const 3) (i32.const 1) (i64.const 64) (i64.const 0) (i32.const 0) (i32.const 8)))))"""


def apps_do_their_work():
    home = folder / "home"
    home.mkdir()
    (folder / "touch.wat").write_text(TOUCH)
    (home / "long.txt").write_text("".join(f"line {number}\n" for number in range(300)))
    desktop = Desktop(options=["--dir", f"{home}::.", "--program", f"touch={folder / 'touch.wat'}"])
    page = open_page(desktop)
    keep(page, "apps-none")

    def start(name, downs):
        """Starts an app from the menu, by keyboard."""
        page.keyboard.press("Control+Space")
        settle(page)
        keep(page, f"apps-menu-{name}")
        for _ in range(downs):
            page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        settle(page)
        keep(page, f"apps-{name}")

    start("terminal", 0)
    page.keyboard.type("touch")
    page.keyboard.press("Enter")
    until(lambda: (home / "ran").exists(), "the terminal has run a program")
    start("editor", 2)
    # The path, two buttons, the text.
    for keys in ("Tab", "long.txt", "Enter"):
        page.keyboard.press(keys) if keys[0].isupper() else page.keyboard.type(keys)
    opened = settle(page)
    keep(page, "apps-opened")
    page.mouse.move(300, 350)
    page.mouse.wheel(0, 300)
    until(lambda: shown(page) != opened, "the wheel scrolls the text")
    keep(page, "apps-scrolled")
    # Opening gave the text the focus.
    page.keyboard.press("Control+Home")
    page.keyboard.type("typed ")
    settle(page)
    for _ in range(1):
        page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    until(lambda: (home / "long.txt").read_text().startswith("typed line 0\nline 1\n"), "the editor has saved")
    assert (home / "long.txt").read_text() == "typed " + "".join(f"line {number}\n" for number in range(300))
    other = open_page(desktop)
    same(settle(page), settle(other), "two viewers of apps")
    desktop.end()


def is_crisp_at_every_pixel_ratio():
    desktop = Desktop()
    for ratio in (1.5, 2):
        page = open_page(desktop, 640, 400, ratio)
        settle(page)
        same(page.screenshot(), shown(page), f"the screen and the canvas at a ratio of {ratio}")
        keep(page, f"ratio-{ratio}")
        page.context.close()
    desktop.end()


def comes_back_when_the_server_does():
    desktop = Desktop()
    page = open_page(desktop)
    first = settle(page)
    desktop.end(signal.SIGKILL)
    page.wait_for_selector("#banner:not([hidden])")
    keep(page, "reconnecting")
    page.evaluate("canvas.getContext('2d').clearRect(0, 0, 960, 600)")
    desktop = Desktop(desktop.host)
    page.wait_for_selector("#banner", state="hidden")
    until(lambda: shown(page) == first, "the page shows the desktop again")
    desktop.end()


def refuses_others():
    desktop = Desktop()
    assert desktop.status() == 200
    assert desktop.status(host="evil.example") == 403
    assert desktop.status("/kernel.wasm") == 404
    attempt = """(url) => new Promise((done) => {
        const socket = new WebSocket(url);
        socket.onopen = () => done("open");
        socket.onclose = ({ code }) => done(code);
    })"""
    # This page's origin is not the desktop's.
    assert blank.evaluate(attempt, f"ws://{desktop.host}/socket") == 1006
    page = open_page(desktop)
    assert page.evaluate(attempt, f"ws://{desktop.host}/socket") == "open"
    for message in ([], [9], [1, 2], [2, 0, 0, 0, 0, 1], [3, 255]):
        closed = page.evaluate("""([url, bytes]) => new Promise((done) => {
            const socket = new WebSocket(url);
            socket.onopen = () => socket.send(new Uint8Array(bytes));
            socket.onclose = ({ code, reason }) => done([code, reason]);
        })""", [f"ws://{desktop.host}/socket", message])
        assert closed[0] == 1007 and closed[1], f"{message}: {closed}"
    before = settle(page)
    page.mouse.click(69, 267)
    until(lambda: shown(page) != before, "the desktop goes on")
    desktop.end()


def needs_the_token_where_others_can_connect():
    desktop = Desktop("0.0.0.0:0")
    assert desktop.status() == 403 and desktop.status("/?token=" + "0" * 32) == 403
    assert desktop.status(f"/{desktop.query}") == 200
    open_page(desktop)
    desktop.end()


def measures_latency():
    desktop = Desktop()
    page = open_page(desktop, 1920, 1080, query="?stats")
    settle(page)
    # A pointer that goes over buttons, and one that drags a window.
    for name, does in (("hover", lambda i: page.mouse.move(700 + i % 3 * 80, 500)), ("drag", None)):
        page.evaluate("gpuRunDesktop.forget()")
        if does is None:
            page.mouse.move(214, 82)
            page.mouse.down()
        for i in range(40):
            (does or (lambda i: page.mouse.move(214 + i * 4, 82 + i * 3)))(i)
            time.sleep(0.1)
        page.mouse.up()
        settle(page)
        figures = page.evaluate("gpuRunDesktop.figures()")
        print(f"    {name} at 1920 x 1080: input to display p50 {figures['p50']:.0f} ms, p99 {figures['p99']:.0f} ms, "
              f"{figures['inputs']} inputs (a development build on cpu)")
    keep(page, "figures")
    desktop.end()


(folder / "settings").write_text(SETTINGS)
failed = 0
for test in (shows_the_script_and_takes_mouse_and_keyboard, sends_wheel_touch_clipboard_and_what_input_methods_compose, apps_do_their_work,
             is_crisp_at_every_pixel_ratio,
             comes_back_when_the_server_does, refuses_others, needs_the_token_where_others_can_connect, measures_latency):
    try:
        test()
        assert not problems, problems
        print(f"{test.__name__} ok", flush=True)
    except Exception as error:
        failed += 1
        problems.clear()
        print(f"{test.__name__} FAILED: {error}", flush=True)
    for process in desktops:
        process.kill()
browser.close()
playwright.stop()
sys.exit(failed != 0)
