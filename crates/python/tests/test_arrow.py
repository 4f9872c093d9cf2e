"""Columns of other libraries, in and out."""

import duckdb
import gpu_run
import pandas
import polars
import pyarrow as pa
import pytest

TEXTS = ["one", None, "", "a text of more than twelve bytes", "two", "three"]
BYTES = [None if text is None else text.encode() for text in TEXTS]
TYPES = [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view()]


@pytest.mark.parametrize("type", TYPES, ids=str)
def test_columns_of_every_type_of_text(echo, type):
    array = pa.array(TEXTS).cast(type) if type in (pa.string(), pa.large_string()) else pa.array(BYTES, type)
    assert list(echo.map(array)) == BYTES
    assert list(echo.map(array.slice(2, 3))) == BYTES[2:5]
    assert list(echo.map(pa.chunked_array([array, array.slice(1), array.slice(0, 0)]))) == BYTES + BYTES[1:]


def test_bytes_of_a_fixed_length(echo):
    array = pa.array([b"abc", None, b"fgh"], pa.binary(3))
    assert list(echo.map(array)) == [b"abc", None, b"fgh"]
    assert list(echo.map(array.slice(2))) == [b"fgh"]


def test_a_column_of_nothing_but_nulls(echo):
    assert list(echo.map(pa.nulls(3))) == [None] * 3
    assert list(echo.map(pa.table({"text": []}), column="text")) == []


def test_a_column_of_a_table(echo):
    table = pa.table({"id": [1, 2, 3, 4, 5, 6], "text": TEXTS})
    assert list(echo.map(table, column="text")) == BYTES
    assert list(echo.map(table.to_batches()[0].slice(3), column="text")) == BYTES[3:]
    assert list(echo.map(table.select(["text"]))) == BYTES
    with pytest.raises(ValueError, match="which column.*`id`, `text`"):
        list(echo.map(table))
    with pytest.raises(ValueError, match="no column `words`; it has `id`, `text`"):
        list(echo.map(table, column="words"))
    with pytest.raises(TypeError, match="type Int64: cast it"):
        list(echo.map(table, column="id"))


def test_a_row_that_is_null_has_no_record(echo):
    rows = pa.StructArray.from_arrays([pa.array(["a", "c", "d"])], ["text"], mask=pa.array([False, True, False]))
    assert list(echo.map(rows)) == [b"a", None, b"d"]


def test_a_stream_is_read_while_it_is_made(echo):
    made = 0

    def batches():
        nonlocal made
        for i in range(1000):
            made += 1
            yield pa.record_batch({"text": [f"{i} {n}" for n in range(10)]})

    reader = pa.RecordBatchReader.from_batches(pa.schema({"text": pa.string()}), batches())
    outputs = echo.map(reader, batch=20, text=True)
    assert next(outputs) == "0 0" and made < 20
    assert list(outputs) == [f"{i} {n}" for i in range(1000) for n in range(10)][1:]


def test_a_stream_that_fails(echo):
    def batches():
        yield pa.record_batch({"text": ["a"]})
        raise RuntimeError("the source is gone")

    outputs = echo.map(pa.RecordBatchReader.from_batches(pa.schema({"text": pa.string()}), batches()))
    assert next(outputs) == b"a"
    with pytest.raises(gpu_run.Error, match="the source is gone"):
        next(outputs)


@pytest.mark.parametrize("type", ["binary", "string", "large_binary", "large_string"])
def test_outputs_become_a_column(echo, type):
    column = echo.map_column(TEXTS, type=type)
    array = pa.array(column)
    assert array.type == getattr(pa, type)() and column.type == type and array.equals(column.to_pyarrow())
    assert array.to_pylist() == column.to_pylist() == (TEXTS if "string" in type else BYTES)
    assert (len(column), column.null_count, column.errors) == (6, 1, [])
    array.validate(full=True)
    # Both are the same bytes.
    assert array.buffers()[2].address == pa.array(column).buffers()[2].address


def test_columns_go_in_where_they_came_out(echo):
    assert echo.map_column(echo.map_column(TEXTS)).to_pylist() == TEXTS
    assert echo.map_column(pa.array([], pa.string())).to_pylist() == []


def test_a_newline_at_the_end_is_not_part_of_a_value(echo):
    assert echo.map_column(["one\n", "two\n\n", ""]).to_pylist() == ["one", "two\n", ""]
    assert echo.map_column(["one\n"], strip_newline=False).to_pylist() == ["one\n"]


def test_records_that_fail_are_null_and_say_why(echo):
    column = echo.map_column(["a", "x", None, "b", "c"], on_error="return")
    assert column.to_pylist() == ["a", None, None, None, "c"]
    assert [(error.record, type(error)) for error in column.errors] == [(1, gpu_run.ProgramError), (3, gpu_run.Error)]
    with pytest.raises(gpu_run.ProgramError, match="record 1 trapped"):
        echo.map_column(["a", "x"])
    with pytest.raises(ValueError, match="`text` is no type of outputs"):
        echo.map_column(["a"], type="text")


def test_polars(echo):
    frame = polars.DataFrame({"id": range(6), "text": TEXTS})
    assert list(echo.map(frame["text"])) == BYTES
    assert list(echo.map(frame, column="text")) == BYTES
    series = polars.Series("out", echo.map_column(frame["text"]))
    assert series.dtype == polars.String and series.to_list() == TEXTS


def test_duckdb(echo):
    relation = duckdb.sql("select 'row ' || i as text from range(5000) t(i) order by i")
    outputs = pa.table({"out": pa.array(echo.map_column(relation))})
    assert duckdb.sql("select count(*), min(out), max(length(out)) from outputs").fetchall() == [(5000, "row 0", 8)]


PANDAS = ["str", "object", "string[python]", "string[pyarrow]", "large_string[pyarrow]", "category"]


@pytest.mark.parametrize("dtype", PANDAS)
def test_pandas(echo, dtype):
    dtype = pandas.ArrowDtype(pa.large_string()) if dtype.startswith("large") else dtype
    frame = pandas.DataFrame({"id": range(6), "text": pandas.Series(TEXTS, dtype=dtype)})
    if dtype == "category":
        with pytest.raises(TypeError, match="type Dictionary.*: cast it to a string"):
            list(echo.map(frame["text"]))
        return
    assert list(echo.map(frame["text"])) == BYTES
    assert list(echo.map(frame, column="text")) == BYTES
    assert list(echo.map(frame[frame["id"] > 2], column="text")) == BYTES[3:]
    outputs = pandas.Series(echo.map_column(frame["text"]).to_pyarrow(), dtype=pandas.ArrowDtype(pa.string()))
    assert outputs.isna().tolist() == [text is None for text in TEXTS]
    assert outputs.dropna().tolist() == [text for text in TEXTS if text is not None]


@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
def test_the_backends_of_pandas(echo, backend):
    frame = pandas.DataFrame({"text": TEXTS}).convert_dtypes(dtype_backend=backend)
    assert list(echo.map(frame)) == list(echo.map(frame["text"])) == BYTES


def test_what_only_pretends_to_be_a_capsule(echo):
    class Wrong:
        def __arrow_c_array__(self, requested_schema=None):
            return ("no", "capsules")

    with pytest.raises(TypeError, match="a capsule with an arrow_schema was expected"):
        echo.map(Wrong())


def test_a_capsule_is_used_once(echo):
    class Again:
        capsules = pa.array(["a"]).__arrow_c_array__()

        def __arrow_c_array__(self, requested_schema=None):
            return self.capsules

    again = Again()
    assert list(echo.map(again)) == [b"a"]
    with pytest.raises(gpu_run.Error, match="it can be used once"):
        echo.map(again)
