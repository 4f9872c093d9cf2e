"""What the tests of the desktop's page and of its window have in common."""

import os
import subprocess
import time

GPU_RUN = os.environ["GPU_RUN"]
# What the tests do by hand, as a script.
BY_HAND = """
drag notes 100 60 over 4
click post
click entry
type "!é"
click add
hover notes
"""
# The seconds that a frame may take on a machine that does other things.
PATIENCE = 60


def until(holds, what):
    """Waits until this holds, and returns what it returned."""
    end = time.monotonic() + PATIENCE
    while not (held := holds()):
        if time.monotonic() > end:
            raise AssertionError(f"after {PATIENCE} s, this still does not hold: {what}")
        time.sleep(0.02)
    return held


def picture(folder, environment, script, size, scale="1"):
    """What `--png` draws after a script."""
    (folder / "script").write_text(script)
    command = [GPU_RUN, "desktop", "--device", "cpu", "--script", str(folder / "script"), "--size", f"{size[0]}x{size[1]}",
               "--scale", scale, "--png", str(folder / "png")]
    subprocess.run(command, env=environment, check=True)
    return (folder / "png").read_bytes()
