"""Tests the desktop's window on an X server; scripts/desktop-window sets up what it needs, and runs it."""

import io
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from PIL import Image, ImageChops
from Xlib import X, XK, display, error
from Xlib.ext import xtest
from Xlib.protocol import event

import desktop_by_hand
from desktop_by_hand import BY_HAND, GPU_RUN, PATIENCE, until

SCREENSHOTS = os.environ.get("SCREENSHOTS")
WIDTH, HEIGHT = 960, 600
# The pointer is not over the window: winit says so when the window opens.
SETTINGS = Path("docs/desktop/settings.txt").read_text().replace("hover cancel", "hover 1500 950")
# Where the pointer is not over the window.
ELSEWHERE = (1500, 950)

folder = Path(tempfile.mkdtemp(prefix="desktop-window-"))
(folder / "settings").write_text(SETTINGS)
processes = []


def start(command, **options):
    # Nothing of this script's stays open in it: who waits for its output must not wait for a process that a failure left.
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, **{"stdout": subprocess.DEVNULL, **options})
    processes.append(process)
    return process


def start_server():
    """An X server with a screen of 1600 by 1000 pixels, and a keyboard that has dead keys. Returns its name."""
    readable, writable = os.pipe()
    start(["Xvfb", "-displayfd", str(writable), "-screen", "0", "1600x1000x24", "-nolisten", "tcp", "-noreset"], pass_fds=[writable],
          stderr=subprocess.DEVNULL)
    os.close(writable)
    with os.fdopen(readable) as names:
        name = names.readline().strip()
    if not name:
        sys.exit("Xvfb does not start")
    subprocess.run(["setxkbmap", "-display", f":{name}", "-layout", "us", "-variant", "intl"], check=True)
    return f":{name}"


NAME = start_server()
environment = {name: value for name, value in os.environ.items() if not name.startswith(("WAYLAND_", "XMODIFIERS"))}
environment.update(DISPLAY=NAME, GPU_RUN_CACHE=str(folder / "cache"), LC_ALL="C.UTF-8")
server = display.Display(NAME)
screen = server.screen().root


class Desktop:
    """A desktop in a window, which has the keyboard."""

    def __init__(self, *options, size=(WIDTH, HEIGHT), script="settings", apps=False):
        point(*ELSEWHERE)
        command = [GPU_RUN, "desktop", "--device", "cpu", "--effects", "all", "--window", "--script", str(folder / script),
                   "--size", f"{size[0]}x{size[1]}", *([] if apps else ["--no-apps"]), *options]
        self.process = start(command, stderr=subprocess.PIPE, text=True, env=environment)
        self.window = until(self.find, "the window is there")
        self.focus()

    def find(self):
        if self.process.poll() is not None:
            raise AssertionError(f"it ended with {self.process.returncode}: {self.process.stderr.read()}")
        known = {desktop.window for desktop in desktops}
        for window in screen.query_tree().children:
            try:
                if window not in known and window.get_wm_name() == "gpu-run desktop" \
                        and window.get_attributes().map_state == X.IsViewable:
                    desktops.append(self)
                    return window
            except error.BadWindow:
                pass
        return None

    def focus(self):
        self.window.set_input_focus(X.RevertToParent, X.CurrentTime)
        server.sync()

    def shown(self):
        """What the window shows."""
        size = self.window.get_geometry()
        pixels = self.window.get_image(0, 0, size.width, size.height, X.ZPixmap, 0xFFFFFFFF).data
        return Image.frombuffer("RGB", (size.width, size.height), pixels, "raw", "BGRX", 0, 1)

    def settle(self):
        """Waits until nothing has changed for a second."""
        last, since = None, time.monotonic()
        while time.monotonic() - since < 1:
            now = self.shown()
            if last is None or now.size != last.size or now.tobytes() != last.tobytes():
                last, since = now, time.monotonic()
            time.sleep(0.1)
        return last

    def close(self):
        """Closes the window as a window manager does. Returns the exit code."""
        protocols, delete = (server.intern_atom(name) for name in ("WM_PROTOCOLS", "WM_DELETE_WINDOW"))
        message = event.ClientMessage(window=self.window, client_type=protocols, data=(32, [delete, X.CurrentTime, 0, 0, 0]))
        self.window.send_event(message)
        server.sync()
        return self.end(None)

    def end(self, how=signal.SIGKILL):
        if how is not None:
            self.process.send_signal(how)
        code = self.process.wait(PATIENCE)
        desktops.remove(self)
        said = self.process.stderr.read()
        assert how == signal.SIGKILL or not said, said
        return code


desktops = []


def point(x, y):
    xtest.fake_input(server, X.MotionNotify, x=x, y=y)
    server.sync()


def button(kind, number=1):
    xtest.fake_input(server, kind, number)
    server.sync()


def click(x, y, number=1):
    point(x, y)
    button(X.ButtonPress, number)
    button(X.ButtonRelease, number)


def drag(x, y, to_x, to_y, steps=4):
    point(x, y)
    button(X.ButtonPress)
    for step in range(1, steps + 1):
        point(x + (to_x - x) * step // steps, y + (to_y - y) * step // steps)
    button(X.ButtonRelease)


def press(*names):
    """Presses the last key while the others are down."""
    codes = [server.keysym_to_keycode(XK.string_to_keysym(name)) for name in names]
    assert all(codes), names
    for code in codes:
        xtest.fake_input(server, X.KeyPress, code)
    for code in reversed(codes):
        xtest.fake_input(server, X.KeyRelease, code)
    server.sync()


def copy(text):
    subprocess.run(["xclip", "-selection", "clipboard"], input=text.encode(), env=environment, check=True, stderr=subprocess.DEVNULL)
    until(lambda: copied() == text, "another program's copy")


def copied():
    return subprocess.run(["xclip", "-selection", "clipboard", "-o"], env=environment, capture_output=True).stdout.decode()


def picture(script, size=(WIDTH, HEIGHT), scale="1"):
    drawn = desktop_by_hand.picture(folder, environment, script, size, scale)
    with Image.open(io.BytesIO(drawn)) as opened:
        return opened.convert("RGB")


def difference(one, other):
    return one.size != other.size or ImageChops.difference(one, other).getbbox()


def becomes(desktop, other, what):
    """Waits until the window shows this, and nothing else for a second."""
    end = time.monotonic() + PATIENCE
    while difference(desktop.settle(), other) and time.monotonic() < end:
        pass
    same(desktop.shown(), other, what)


def same(one, other, what):
    differ = difference(one, other)
    if differ:
        for name, image in (("one", one), ("other", other)):
            image.save(Path(SCREENSHOTS or folder, f"{what.replace(' ', '-')}-{name}.png"))
    assert not differ, f"{what}: {one.size} and {other.size}, different within {differ}"


def keep(image, name):
    if SCREENSHOTS:
        image.save(f"{SCREENSHOTS}/{name}.png")


def shows_the_script_and_takes_mouse_and_keyboard():
    desktop = Desktop()
    becomes(desktop, picture(SETTINGS), "the window and the picture of the script")
    keep(desktop.shown(), "opened")
    drag(214, 82, 314, 142)
    click(270, 327)
    click(281, 392)
    press("Shift_L", "1")
    # A dead key: an accent, then its letter.
    press("apostrophe")
    press("e")
    click(439, 392)
    point(314, 142)
    becomes(desktop, picture(SETTINGS + BY_HAND), "what was done by hand and the same as a script")
    keep(desktop.shown(), "by-hand")
    point(*ELSEWHERE)
    left = desktop.settle()
    # What was covered is drawn again.
    cover = screen.create_window(100, 50, 700, 400, 0, X.CopyFromParent, background_pixel=0xFF00FF, override_redirect=1)
    cover.map()
    server.sync()
    until(lambda: desktop.shown().getpixel((200, 200)) != left.getpixel((200, 200)), "the window is covered")
    cover.destroy()
    becomes(desktop, left, "a window that was covered")
    assert desktop.close() == 0


def takes_the_windows_size():
    desktop = Desktop()
    opened = desktop.settle()
    for size in ((700, 420), (1400, 900), (WIDTH, HEIGHT)):
        desktop.window.configure(width=size[0], height=size[1])
        server.sync()
        becomes(desktop, picture(SETTINGS, size), f"a window of {size[0]} by {size[1]}")
    becomes(desktop, opened, "the first size again")
    assert desktop.close() == 0
    desktop = Desktop("--scale", "2", size=(480, 300))
    becomes(desktop, picture(SETTINGS, (480, 300), "2"), "two pixels for a unit")
    assert desktop.close() == 0


def takes_clipboard_and_keys():
    desktop = Desktop()
    desktop.settle()
    # The field has the focus: the script typed into it.
    press("Control_L", "a")
    press("Control_L", "c")
    until(lambda: copied() == "Buy more pixels", "what was copied")
    copy("Pasted\r é")
    press("Control_L", "v")
    point(*ELSEWHERE)
    pasted = SETTINGS.replace("Buy more pixels", "Pasted é")
    becomes(desktop, picture(pasted), "what was pasted")
    press("Control_L", "a")
    press("Control_L", "x")
    until(lambda: copied() == "Pasted é", "what was cut")
    press("Shift_L", "Insert")
    becomes(desktop, picture(pasted), "what was cut and pasted")
    press("Shift_L", "Tab")
    press("space")
    press("Tab")
    press("Tab")
    press("Return")
    by_keys = pasted + "key tab shift\nkey space\nkey tab\nkey tab\nkey enter\n"
    becomes(desktop, picture(by_keys), "what was done by keys")
    assert desktop.close() == 0


def scrolls_in_an_app():
    home = folder / "home"
    home.mkdir()
    (home / "long.txt").write_text("".join(f"line {number}\n" for number in range(300)))
    (folder / "editor").write_text('start Editor long.txt\nexpect "long.txt"\nsettle\n')
    desktop = Desktop("--dir", f"{home}::.", script="editor", apps=True)
    point(480, 350)
    opened = desktop.settle()
    keep(opened, "editor")
    # Down, then up.
    for number in (5, 4):
        before = desktop.shown()
        click(480, 350, number)
        until(lambda: difference(desktop.shown(), before), "the wheel scrolls")
        keep(desktop.settle(), f"editor-{number}")
    becomes(desktop, opened, "what was scrolled there and back")
    assert desktop.close() == 0


def idles_and_ends_by_signals():
    desktop = Desktop()
    desktop.settle()
    time.sleep(1)
    ticks = os.sysconf("SC_CLK_TCK")

    def time_taken():
        fields = Path(f"/proc/{desktop.process.pid}/stat").read_text().rsplit(") ", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / ticks

    before = time_taken()
    time.sleep(3)
    took = time_taken() - before
    assert took <= 0.06, f"an idle window takes {took:.2f} s of 3 s"
    assert desktop.end(signal.SIGINT) == 130
    desktop = Desktop()
    assert desktop.end(signal.SIGTERM) == 143


def is_also_in_browsers():
    desktop = Desktop("--listen", "127.0.0.1:0")
    said = desktop.process.stderr.readline()
    url = re.search(r"http://\S+", said).group(0)
    with urllib.request.urlopen(url) as page:
        assert page.status == 200
    desktop.settle()
    assert desktop.close() == 0


def says_what_is_missing():
    for name, message in (("", "neither WAYLAND_DISPLAY nor DISPLAY is set"), (":4242", "cannot connect to the X server :4242")):
        ran = subprocess.run([GPU_RUN, "desktop", "--window"], env=dict(environment, DISPLAY=name), capture_output=True, text=True)
        assert ran.returncode == 2 and message in ran.stderr and "--listen" in ran.stderr, ran.stderr
    ran = subprocess.run([GPU_RUN, "desktop", "--window"], env=dict(environment, WAYLAND_DISPLAY="none-there"), capture_output=True,
                         text=True)
    assert ran.returncode == 2 and "no display" in ran.stderr and "panic" not in ran.stderr, ran.stderr


def is_on_screen(image):
    """Where the X server's screen shows this, every pixel; none if it does not."""
    size = screen.get_geometry()
    pixels = screen.get_image(0, 0, size.width, size.height, X.ZPixmap, 0xFFFFFFFF).data
    all_of_it = Image.frombuffer("RGB", (size.width, size.height), pixels, "raw", "BGRX", 0, 1)
    # A row that is nowhere else: it goes through texts.
    row = 232
    at = all_of_it.tobytes().find(image.crop((0, row, image.width, row + 1)).tobytes()) // 3
    x, y = at % size.width, at // size.width - row
    found = at >= 0 and not difference(all_of_it.crop((x, y, x + image.width, y + image.height)), image)
    return (x, y) if found else None


def does_the_same_on_wayland():
    if not shutil.which("weston"):
        return print("    there is no weston: nothing was tested on Wayland")
    # A compositor whose screen is a window of the X server.
    runtime = folder / "runtime"
    runtime.mkdir(mode=0o700)
    place = dict(environment, XDG_RUNTIME_DIR=str(runtime))
    weston = start(["weston", "--backend=x11-backend.so", "--use-pixman", "--width=1400", "--height=900", "--socket=desktop-window",
                    "--no-config", "--idle-time=0"], env=place, stderr=subprocess.DEVNULL)
    until(lambda: (runtime / "desktop-window").exists(), "weston is there")

    def becomes_shown(image, what):
        """Where this is, while the pointer is in weston's panel: weston draws the pointer itself, and knows where it is when it enters."""
        def entered():
            for place in (ELSEWHERE, (700, 12)):
                point(*place)
                time.sleep(0.1)
            return is_on_screen(image)

        return until(entered, what)

    client = dict(place, WAYLAND_DISPLAY="desktop-window")
    desktop = start([GPU_RUN, "desktop", "--device", "cpu", "--effects", "all", "--window", "--script", str(folder / "settings"),
                     "--no-apps", "--size", f"{WIDTH}x{HEIGHT}"], env=client, stderr=subprocess.PIPE, text=True)
    opened = picture(SETTINGS)
    x, y = becomes_shown(opened, "the window and the picture of the script")
    drag(x + 214, y + 82, x + 314, y + 142)
    click(x + 270, y + 327)
    click(x + 281, y + 392)
    press("Shift_L", "1")
    press("apostrophe")
    press("e")
    click(x + 439, y + 392)
    by_hand = picture(SETTINGS + BY_HAND.replace("hover notes", "hover 1500 950"))
    becomes_shown(by_hand, "what was done by hand and the same as a script")
    desktop.send_signal(signal.SIGINT)
    assert desktop.wait(PATIENCE) == 130
    said = desktop.stderr.read()
    assert not said, said
    weston.terminate()
    weston.wait(PATIENCE)


def measures_latency():
    desktop = Desktop(size=(1600, 950))
    desktop.settle()
    latencies = []
    # A pointer that goes over a button, and off it.
    for turn in range(40):
        before = desktop.window.get_image(860, 480, 8, 8, X.ZPixmap, 0xFFFFFFFF).data
        began = time.monotonic()
        point(864, 486) if turn % 2 == 0 else point(300, 700)
        until_other(desktop, before)
        latencies.append((time.monotonic() - began) * 1000)
        time.sleep(0.3)
    latencies.sort()
    print(f"    hover at 1600 x 950: input to display p50 {latencies[20]:.0f} ms, p95 {latencies[37]:.0f} ms (cpu)")
    assert desktop.close() == 0


def until_other(desktop, before):
    end = time.monotonic() + PATIENCE
    while desktop.window.get_image(860, 480, 8, 8, X.ZPixmap, 0xFFFFFFFF).data == before:
        assert time.monotonic() < end, "nothing changes"


failed = 0
for test in (shows_the_script_and_takes_mouse_and_keyboard, takes_the_windows_size, takes_clipboard_and_keys, scrolls_in_an_app,
             idles_and_ends_by_signals, is_also_in_browsers, says_what_is_missing, does_the_same_on_wayland,
             measures_latency):
    try:
        test()
        print(f"{test.__name__} ok", flush=True)
    except Exception as problem:
        failed += 1
        print(f"{test.__name__} FAILED: {problem!r}", flush=True)
    for desktop in list(desktops):
        desktop.end()
for process in processes:
    process.kill()
sys.exit(failed != 0)
