"""Makes docs/python.ipynb anew: writes its cells and executes them. Needs gpu-run, nbformat, nbclient, ipykernel, pyarrow and polars."""

from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

CELLS = [
    "# gpu-run in a notebook\n\nOrdinary Rust programs, on the GPU if there is one, else on the built-in device `cpu`.",
    "import gpu_run\n\ngpu_run.__all__",
    "A program counts the words of what it reads. `gpu_run.Program` compiles it first.",
    '''from pathlib import Path

Path("words.rs").write_text("""
fn main() {
    let text = std::io::read_to_string(std::io::stdin()).unwrap();
    assert!(!text.contains("secret"), "this text is secret");
    println!("{}", text.split_whitespace().count());
}
""")
words = gpu_run.Program("words.rs")
words.run(stdin="to be or not to be", text=True)''',
    "One run for each of 20,000 records, which are made while others run:",
    '''records = ("word " * (n % 7) for n in range(20_000))
sum(int(output) for output in words.map(records))''',
    "A column of Polars goes in, and comes out, without a copy:",
    '''import polars

frame = polars.DataFrame({"text": ["one two", None, "three", "a b c d"]})
frame.with_columns(words=polars.Series(words.map_column(frame["text"])).cast(polars.Int32)).to_dicts()''',
    "A record that fails is an exception, or a value:",
    '''column = words.map_column(["one", "a secret", "two three"], on_error="return")
print(column.to_pylist())
print(column.errors[0].record, column.errors[0].stderr.decode().strip().splitlines()[-2])''',
    "An exported function is called for each row of columns:",
    '''mean = gpu_run.Program(gpu_run.examples.MEAN).function("mean")
mean([1.0, 10.0, None], [2.0, 20.0, 3.0]).to_pyarrow().to_pylist()''',
    "Which devices there are:",
    "[device.name for device in gpu_run.devices()]",
]


def main() -> None:
    cells = [new_code_cell(text) if i % 2 else new_markdown_cell(text) for i, text in enumerate(CELLS)]
    cells[-1].metadata["tags"] = ["varies"]
    for i, cell in enumerate(cells):
        cell["id"] = f"cell-{i}"
    notebook = new_notebook(cells=cells, metadata={"language_info": {"name": "python"}})
    place = Path(__file__).resolve().parents[2] / "docs" / "python.ipynb"
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": folder}}).execute()
    for cell in cells:
        cell.metadata.pop("execution", None)
    notebook.metadata.pop("kernelspec", None)
    notebook.metadata.language_info = {"name": "python"}
    nbformat.write(notebook, place)


main()
