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
    picky = udf("picky_error")
    with pytest.raises(gpu_run.ProgramError, match="record 11 .*\n(.*\n)*.*13 is unlucky") as raised:
        picky([n for n in range(300) if n % 7])
    assert raised.value.record == [n for n in range(300) if n % 7].index(13)
    parts = pa.chunked_array([pa.array(range(0, 110), pa.int32()), pa.array(range(110, 300), pa.int32())])
    column = picky(parts, on_error="return")
    assert column.to_pylist() == [None if n % 100 == 13 or n % 7 == 0 else n for n in range(300)]
    assert [error.record for error in column.errors] == [n for n in range(300) if n % 100 == 13 or n % 7 == 0]
    assert {type(error) for error in column.errors if error.record % 7} == {gpu_run.ProgramError}
    # The next call finds the function as it was.
    assert picky([1, None, 15]).to_pylist() == [1, None, 15]


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


MOMENT = datetime.datetime(2024, 2, 29, 12, 30, 0, 5)
# Columns, and the type and values of what a function returns that returns what it is given; these are the column's if nothing is said.
SAME = [
    (pa.array([True, None]),),
    (pa.array([-1, None], pa.int8()),),
    (pa.array([2**64 - 1], pa.uint64()),),
    (pa.array([0.5, None], pa.float32()),),
    (pa.array([0.1]),),
    (pa.array([MOMENT.date(), None]),),
    (pa.array([MOMENT.time()], pa.time64("us")),),
    (pa.array([MOMENT.time()], pa.time64("ns")), pa.time64("us")),
    (pa.array([MOMENT, None], pa.timestamp("us")),),
    (pa.array([MOMENT, None], pa.timestamp("ns")), pa.timestamp("us")),
    (pa.array([pa.MonthDayNano([1, 2, 3])]),),
    (pa.array([Decimal("1.50"), None]), pa.string(), ["1.50", None]),
    (pa.array(["é", None]),),
    (pa.array(["é"], pa.large_string()),),
    (pa.array(["a text of more than twelve bytes"], pa.string_view()), pa.string()),
    (pa.array(["a", "b", "a"]).dictionary_encode(), pa.string()),
    (pa.array([b"a", None]),),
    (pa.array([b"abc", None], pa.binary(3)), pa.binary()),
    (pa.array([b"a"], pa.large_binary()),),
    ([True, None], pa.bool_()),
    (["one", None], pa.string()),
    ([b"one", None], pa.binary()),
]


@pytest.mark.parametrize("case", SAME, ids=lambda case: str(getattr(case[0], "type", case[0])))
def test_the_columns_choose_a_function(udf, case):
    given, type, values = (*case, *[None] * (3 - len(case)))
    column = udf("same")(given)
    array = pa.array(column)
    assert array.type == (type or given.type)
    values = values or (given.to_pylist() if isinstance(given, pa.Array) else given)
    assert array.to_pylist() == values and column.to_pylist() == [tuple(v) if isinstance(v, pa.MonthDayNano) else v for v in values]


def test_columns_that_no_function_or_several_take(module, udf):
    same = udf("same")
    assert len(same.signatures) == 21
    with pytest.raises(ValueError, match="`same` has several types: same.binary.*, same"):
        same.params
    with pytest.raises(TypeError, match="`same` takes no columns .Timestamp.*Berlin.*; there is `same.binary"):
        same(pa.array([MOMENT], pa.timestamp("us", "Europe/Berlin")))
    with pytest.raises(TypeError, match="takes columns .iterable of <class 'int'>. as .*: name one by its signature"):
        same([1])
    with pytest.raises(TypeError, match="`same` takes no columns .iterable of <class 'datetime.date'>.; there is `same.binary"):
        same([MOMENT.date()])
    with pytest.raises(OverflowError, match="parameter 0 of `same` is timestamp: the value in row 1 is none"):
        same(pa.array([1000, 1001], pa.timestamp("ns")))


def test_tables_of_results(udf):
    column = udf("words")(pa.chunked_array([["to be", None, ""], ["or  not"]]))
    rows = [{"row": 0, "words": "to"}, {"row": 0, "words": "be"}, {"row": 3, "words": "or"}, {"row": 3, "words": "not"}]
    assert column.to_pylist() == pa.record_batch(column).to_pylist() == rows
    assert polars.Series(column).struct.field("words").to_list() == ["to", "be", "or", "not"]
    assert udf("words")([None, ""]).to_pylist() == []
    assert udf("words")(["one", None, "two three"]).to_pylist()[-1] == {"row": 2, "words": "three"}


def test_polars(udf):
    frame = polars.DataFrame({"a": [10, None, 30], "b": [3, 2, 7], "text": ["a b", None, "c"], "list": [[1], [], None]})
    assert frame.with_columns(q=polars.Series(udf("div")(frame["a"], frame["b"])))["q"].to_list() == [3, None, 4]
    assert udf("div")(frame.select("a", "b")).to_pylist() == [3, None, 4]
    assert polars.Series(udf("split")(frame["text"], " ")).to_list() == [["a", "b"], None, ["c"]]
    assert polars.Series(udf("list_sum")(frame["list"])).to_list() == [1, 0, None]
    assert udf("split")(frame["text"].cast(polars.Categorical), " ").to_pylist() == [["a", "b"], None, ["c"]]


def test_duckdb(udf):
    div = udf("div")
    assert div(duckdb.sql("select i, 3 from range(5000) t(i) order by i")).to_pylist() == [i // 3 for i in range(5000)]
    relation = duckdb.sql("select case when i % 10 = 1 then null else 'row ' || i end, ' ' from range(3000) t(i) order by i")
    parts = pa.table({"parts": pa.array(udf("split")(relation))})
    assert duckdb.sql("select count(*), count(parts), max(parts[2]::int) from parts").fetchall() == [(3000, 2700, 2999)]
    assert udf("list_sum")(duckdb.sql("select [1, 2, i] from range(3) t(i)")).to_pylist() == [3, 4, 5]
    with pytest.raises(TypeError, match="a table of 2 columns cannot be one of several arguments"):
        div(duckdb.sql("select 1, 2"), 1)


def test_pandas(udf):
    div, words = udf("div"), lambda texts: udf("split")(texts, " ").to_pylist()
    frame = pandas.DataFrame({"a": [10, 20, 30], "text": ["a b", None, "c"]})
    for backend in ("numpy_nullable", "pyarrow"):
        converted = frame.convert_dtypes(dtype_backend=backend)
        assert div(converted["a"], 3).to_pylist() == [3, 6, 10]
        assert words(converted["text"]) == [["a", "b"], None, ["c"]]
    assert div(frame["a"], 3).to_pylist() == [3, 6, 10]
    assert words(frame["text"]) == words(frame["text"].astype(object)) == [["a", "b"], None, ["c"]]
    assert words(pandas.Series(["a", "b c", "a"], dtype="category")) == [["a"], ["b", "c"], ["a"]]
    missing = pandas.Series([7, None], dtype=pandas.ArrowDtype(pa.int64()))
    results = pandas.Series(div(missing, 2).to_pyarrow(), dtype=pandas.ArrowDtype(pa.int32()))
    assert results[0] == 3 and results[1] is pandas.NA


def test_ctrl_c_ends_a_call(udf):
    script = (
        "import gpu_run, pyarrow, sys\n"
        "div = gpu_run.Program(sys.argv[1], device='cpu').udf('div')\n"
        "column = pyarrow.repeat(pyarrow.scalar(6, pyarrow.int32()), 50_000_000)\n"
        "assert div([6], 3).to_pylist() == [2]\n"
        "try:\n"
        "    print('ready', flush=True)\n"
        "    div(column, 3)\n"
        "except KeyboardInterrupt: print('interrupted', flush=True)\n"
        "print(div([7], 2).to_pylist())\n"
    )
    child = subprocess.Popen([sys.executable, "-c", script, MODULE], stdout=subprocess.PIPE, text=True, env=dict(os.environ))
    assert child.stdout.readline() == "ready\n"
    time.sleep(0.3)
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=60)[0] == "interrupted\n[3]\n"
