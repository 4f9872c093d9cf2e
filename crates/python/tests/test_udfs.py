"""Functions made with arrow-udf, over columns of other libraries."""

import datetime
import functools
import os
import signal
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path

import duckdb
import gpu_run
import pandas
import polars
import pyarrow as pa
import pytest

# scripts/build-arrow makes it.
MODULE = Path(__file__).resolve().parents[3] / "tests/arrow/target/wasm32-wasip1/release/arrow_functions.wasm"


@pytest.fixture(scope="module")
def module(_cache):
    return gpu_run.Program(MODULE, device="cpu")


@pytest.fixture(scope="module")
def udf(module):
    """Each function is compiled once."""
    return functools.cache(module.udf)


def test_names_and_signatures(module, udf):
    assert "gcd(int32,int32)->int32" in module.udfs and "words(string)->>string" in module.udfs
    div = udf("div")
    assert (div.name, div.signatures, div.params, div.results) == ("div", ["div(int32,int32)->int32"], ["int32", "int32"], ["int32"])
    assert "div(int32,int32)" in repr(div)
    for name in ("div(int, integer) -> int", "div(int,int)", "div(int32,int32)->int32"):
        assert module.udf(name).signatures == div.signatures
    for name in ("div(int)", "div(int, int) -> bigint", "div(int, int) -> setof int", "di", "div("):
        with pytest.raises(gpu_run.Error, match="has no function `.*`; it has .*`div.int32,int32.->int32`"):
            module.udf(name)


def test_functions_of_other_modules_are_found_as_before(functions):
    assert functions.udfs == [] and functions.udf("half").signatures == ["half(f32)->(f64)"]


@pytest.mark.parametrize("type", [pa.int8(), pa.int64(), pa.uint16(), pa.uint64(), pa.int32()], ids=str)
def test_integers_of_every_width(udf, type):
    array = pa.array([7, None, 9, 100], type)
    column = udf("div")(array, [2, 2, None, 7])
    assert pa.array(column).equals(pa.array([3, None, None, 14], pa.int32()))
    assert udf("div")(array.slice(2), 3).to_pylist() == [3, 33]
    parts = pa.chunked_array([array.slice(0, 1), array.slice(0, 0), array.slice(1)])
    assert udf("div")(parts, pa.chunked_array([[1, 1, 1], [2]], pa.int32())).to_pylist() == [7, None, 9, 50]


def test_values_that_do_not_fit(udf):
    div = udf("div")
    with pytest.raises(OverflowError, match="parameter 1 of `div` is int32: the value in row 3 is none"):
        div([1, 2, 3, 4], pa.chunked_array([[1, 2], [3, 2**31]], pa.int64()))
    with pytest.raises(OverflowError, match="is int32: 2147483648 in row 1 is none"):
        div([1, 2**31], 1)
    with pytest.raises(TypeError, match="is int32, but the value in row 0 is of the type <class 'float'>"):
        div([1.5], 1)
    with pytest.raises(TypeError, match="parameter 0 of `div` is int32, but the column has the type Utf8: cast it"):
        div(pa.array(["1"]), 1)
    with pytest.raises(TypeError, match="`div` takes no columns .Int64.; there is `div"):
        div(pa.array([1]))
    with pytest.raises(ValueError, match="column 0 has 2 rows, but column 1 has 3"):
        div([1, 2], [1, 2, 3])
    with pytest.raises(OverflowError, match="parameter 1 of `datetime` is time64: the value in row 0 is none"):
        udf("datetime")(pa.array([1], pa.date32()), pa.array([1500], pa.time64("ns")))


def test_no_rows(udf):
    assert pa.array(udf("div")([], [])).equals(pa.array([], pa.int32()))
    assert udf("div")(pa.chunked_array([], pa.int32()), pa.array([], pa.int64())).to_pylist() == []
    assert udf("words")([]).to_pylist() == []


def test_a_row_that_the_function_refuses(udf):
    with pytest.raises(gpu_run.Error, match="record 2: division by zero") as raised:
        udf("div")([1, 2, 3, 4], [1, 1, 0, 0])
    assert raised.value.record == 2 and not isinstance(raised.value, gpu_run.ProgramError)
    divisors = [None if i == 5 else int(i % 1000 != 0) for i in range(5000)]
    column = udf("div")(range(5000), divisors, on_error="return")
    assert column.to_pylist() == [None if i % 1000 == 0 or i == 5 else i for i in range(5000)]
    assert [(error.record, str(error)) for error in column.errors] == [(i, f"record {i}: division by zero") for i in range(0, 5000, 1000)]


def test_a_row_that_panics_fails_alone(udf):
    picky = udf("picky")
    with pytest.raises(gpu_run.ProgramError, match="record 13 .*\n(.*\n)*.*13 is unlucky") as raised:
        picky(range(300))
    assert raised.value.record == 13
    parts = pa.chunked_array([pa.array(range(0, 110), pa.int32()), pa.array(range(110, 300), pa.int32())])
    column = picky(parts, on_error="return")
    assert column.to_pylist() == [None if i % 100 == 13 or i % 7 == 0 else i for i in range(300)]
    assert [error.record for error in column.errors] == [13, 113, 213]
    # The next call finds the function as it was.
    assert picky([1, None, 14]).to_pylist() == [1, None, None]


@pytest.mark.parametrize("type", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_text_in_lists_out(udf, type):
    texts = pa.array(["a,b", None, "", "a text of more than twelve bytes,é"], type)
    column = udf("split")(texts, ",")
    assert column.to_pylist() == [["a", "b"], None, [""], ["a text of more than twelve bytes", "é"]]
    assert pa.array(column).to_pylist() == column.to_pylist() and column.type.startswith("list<")
    assert udf("split")(["a b"], [" "]).to_pylist() == [["a", "b"]]
    assert udf("split")(texts.slice(2).dictionary_encode() if type == pa.string() else texts.slice(2), ",").to_pylist()[0] == [""]


@pytest.mark.parametrize("type", [pa.list_(pa.int32()), pa.large_list(pa.int64()), pa.list_(pa.int16(), 2)], ids=str)
def test_lists_in(udf, type):
    lists = pa.array([[1, 2], None, [4, 5]], type)
    assert udf("list_sum")(lists).to_pylist() == [3, None, 9]
    assert udf("list_sum")(lists.slice(2)).to_pylist() == [9]


def test_a_list_with_a_value_that_does_not_fit(udf):
    with pytest.raises(OverflowError, match="row 1 is none"):
        udf("list_sum")(pa.array([[1], [1, 2**40]]))
    with pytest.raises(TypeError, match="pass a column of Arrow's, such as that of pyarrow.array"):
        udf("list_sum")([[1, 2]])


def test_structs_out(udf):
    column = udf("key_value")(["a=b", "nothing", None, "c=d=e"])
    assert column.to_pylist() == [{"key": "a", "value": "b"}, None, None, {"key": "c", "value": "d=e"}]
    assert polars.Series(column).struct.field("value").to_list() == ["b", None, None, "d=e"]


def test_the_columns_choose_a_function(module, udf):
    length = udf("length")
    assert sorted(length.signatures) == ["length(binary)->int32", "length(string)->int32"]
    with pytest.raises(ValueError, match="`length` has several types: length.*, length"):
        length.params
    assert length(pa.array(["é", None])).to_pylist() == length(["é", None]).to_pylist() == [2, None]
    assert length(pa.array([b"abc"], pa.binary(3))).to_pylist() == length([b"abc"]).to_pylist() == [3]
    with pytest.raises(TypeError, match="`length` takes no columns .Float64.; there is"):
        length(pa.array([1.0]))
    as_text = module.udf("as_text(int) -> largestring")
    assert pa.array(as_text([5])).type == pa.large_string()


def test_decimals_and_times(udf):
    total = udf("total")
    assert total(pa.array([Decimal("1.50"), None]), ["2.25", "1"]).to_pylist() == ["3.75", None]
    assert total([Decimal("0.1"), 2], 1).to_pylist() == ["1.1", "3"]
    moment = datetime.datetime(2024, 2, 29, 12, 30, 0, 5)
    column = udf("datetime")(pa.array([moment.date(), None]), pa.array([moment.time(), moment.time()]))
    assert column.to_pylist() == pa.array(column).to_pylist() == [moment, None]


def test_tables_of_results(udf):
    column = udf("words")(pa.chunked_array([["to be", None, ""], ["or  not"]]))
    rows = [{"row": 0, "words": "to"}, {"row": 0, "words": "be"}, {"row": 3, "words": "or"}, {"row": 3, "words": "not"}]
    assert column.to_pylist() == pa.table(pa.record_batch(column)).to_pylist() == rows
    assert udf("words")([None, ""]).to_pylist() == []
    assert udf("words")(["one", None, "two three"]).to_pylist()[-1] == {"row": 2, "words": "three"}


def test_polars(udf):
    frame = polars.DataFrame({"a": [10, None, 30], "b": [3, 2, 7], "text": ["a b", None, "c"], "list": [[1], [], None]})
    assert frame.with_columns(q=polars.Series(udf("div")(frame["a"], frame["b"])))["q"].to_list() == [3, None, 4]
    assert udf("div")(frame.select("a", "b")).to_pylist() == [3, None, 4]
    assert polars.Series(udf("split")(frame["text"], " ")).to_list() == [["a", "b"], None, ["c"]]
    assert polars.Series(udf("list_sum")(frame["list"])).to_list() == [1, 0, None]
    assert udf("length")(frame["text"].cast(polars.Categorical)).to_pylist() == [3, None, 1]


def test_duckdb(udf):
    div = udf("div")
    assert div(duckdb.sql("select i, 3 from range(5000) t(i) order by i")).to_pylist() == [i // 3 for i in range(5000)]
    relation = duckdb.sql("select case when i % 10 = 1 then null else 'row ' || i end from range(3000) t(i) order by i")
    counts = pa.table({"n": pa.array(udf("length")(relation))})
    assert duckdb.sql("select count(*), count(n), max(n) from counts").fetchall() == [(3000, 2700, 8)]
    assert udf("list_sum")(duckdb.sql("select [1, 2, i] from range(3) t(i)")).to_pylist() == [3, 4, 5]
    with pytest.raises(TypeError, match="a table of 2 columns cannot be one of several arguments"):
        div(duckdb.sql("select 1, 2"), 1)


def test_pandas(udf):
    frame = pandas.DataFrame({"a": [10, 20, 30], "text": ["a b", None, "c"]})
    for backend in ("numpy_nullable", "pyarrow"):
        converted = frame.convert_dtypes(dtype_backend=backend)
        assert udf("div")(converted["a"], 3).to_pylist() == [3, 6, 10]
        assert udf("length")(converted["text"]).to_pylist() == [3, None, 1]
    assert udf("div")(frame["a"], 3).to_pylist() == [3, 6, 10]
    assert udf("length")(frame["text"]).to_pylist() == udf("length")(frame["text"].astype(object)).to_pylist() == [3, None, 1]
    missing = pandas.Series([7, None], dtype=pandas.ArrowDtype(pa.int64()))
    results = pandas.Series(udf("div")(missing, 2).to_pyarrow(), dtype=pandas.ArrowDtype(pa.int32()))
    assert results[0] == 3 and results[1] is pandas.NA
    assert udf("length")(pandas.Series(["a", "bc", "a"], dtype="category")).to_pylist() == [1, 2, 1]


def test_ctrl_c_ends_a_call():
    script = (
        "import gpu_run, sys\n"
        "spin = gpu_run.Program(sys.argv[1], device='cpu').udf('spin')\n"
        "assert spin([1, None]).to_pylist() == [1, None]\n"
        "print('ready', flush=True)\n"
        "try: spin([13] * 200_000)\n"
        "except KeyboardInterrupt: print('interrupted', flush=True)\n"
        "print(spin([2]).to_pylist())\n"
    )
    child = subprocess.Popen([sys.executable, "-c", script, MODULE], stdout=subprocess.PIPE, text=True, env=dict(os.environ))
    assert child.stdout.readline() == "ready\n"
    time.sleep(1)
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=60)[0] == "interrupted\n[2]\n"
