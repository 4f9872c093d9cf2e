"""What the documents show works as it is there."""

import ast
import contextlib
import io
import json
import re
import shutil
from pathlib import Path

import gpu_run
import pytest

ROOT = Path(__file__).resolve().parents[3]


def run(cell, names):
    """Runs a notebook's cell; returns what it prints and shows."""
    tree = ast.parse(cell)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), names)
        shown = None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    return printed.getvalue() + ("" if shown is None else repr(shown) + "\n")


def test_the_notebook_shows_what_its_cells_give(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "tests/arrow/target/wasm32-wasip1/release/arrow_functions.wasm", "functions.wasm")
    cells = [cell for cell in json.loads((ROOT / "docs/python.ipynb").read_text())["cells"] if cell["cell_type"] == "code"]
    assert len(cells) > 4 and all(cell["execution_count"] for cell in cells)
    names = {}
    for cell in cells:
        kept = ""
        for output in cell["outputs"]:
            text = output["text"] if output["output_type"] == "stream" else output["data"]["text/plain"]
            kept += "".join(text).removesuffix("\n") + "\n"
        source = "".join(cell["source"])
        given = run(source, names)
        if "varies" not in cell["metadata"].get("tags", []):
            # IPython breaks lines as it likes.
            assert "".join(given.split()) == "".join(kept.split()), source


@pytest.mark.parametrize("document", ["README.md", "docs/python.md", "crates/python/README.md"])
def test_the_first_lines_work_as_pasted(document, tmp_path, monkeypatch, capsys):
    text = (ROOT / document).read_text()
    block = next(block for block in re.findall(r"```python\n(.*?)```", text, re.S) if "import gpu_run" in block)
    files = re.findall(r'Program\("([\w.]+)"\)', block)
    assert files, block
    monkeypatch.chdir(tmp_path)
    for file in files:
        Path(file).write_bytes(gpu_run.examples.UPPER)
    Path("in.txt").write_text("a line\n")
    exec(block, {})
    assert capsys.readouterr().out.isupper()
