"""Makes docs/python.ipynb anew: writes its cells and executes them. Needs gpu-run, nbformat, nbclient, ipykernel, pyarrow and polars, and what
scripts/build-arrow makes."""

import shutil
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

ROOT = Path(__file__).resolve().parents[2]
FUNCTIONS = ROOT / "tests/arrow/target/wasm32-wasip1/release/arrow_functions.wasm"

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
    '''Functions made with the Rust crate [arrow-udf](https://docs.rs/arrow-udf) take columns of numbers, text, dates, lists and others. Two of them:

```rust
#[function("split(varchar, varchar) -> varchar[]")]
fn split<'a>(text: &'a str, at: &'a str) -> impl Iterator<Item = &'a str> + use<'a> {
    text.split(at)
}

#[function("div(int, int) -> int")]
fn div(a: i32, b: i32) -> Result<i32, &'static str> {
    if b == 0 { Err("division by zero") } else { a.checked_div(b).ok_or("the quotient does not fit") }
}
```

`cargo build --release --target wasm32-wasip1` has made `functions.wasm` of a library with them.''',
    '''functions = gpu_run.Program("functions.wasm")
split = functions.udf("split")
split''',
    "Columns go in, and a column of lists comes out:",
    '''frame.with_columns(parts=polars.Series(split(frame["text"], " "))).to_dicts()''',
    "What a function returns as an error is an exception, or null:",
    '''quotients = functions.udf("div")([10, None, 30], [3, 2, 0], on_error="return")
print(quotients.to_pylist())
print(quotients.errors)''',
    "Which devices there are:",
    "[device.name for device in gpu_run.devices()]",
]


def main() -> None:
    cells = [new_code_cell(text) if i % 2 else new_markdown_cell(text) for i, text in enumerate(CELLS)]
    cells[-1].metadata["tags"] = ["varies"]
    for i, cell in enumerate(cells):
        cell["id"] = f"cell-{i}"
    notebook = new_notebook(cells=cells, metadata={"language_info": {"name": "python"}})
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(FUNCTIONS, Path(folder, "functions.wasm"))
        NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": folder}}).execute()
    for cell in cells:
        cell.metadata.pop("execution", None)
    notebook.metadata.pop("kernelspec", None)
    notebook.metadata.language_info = {"name": "python"}
    nbformat.write(notebook, ROOT / "docs/python.ipynb")


main()
