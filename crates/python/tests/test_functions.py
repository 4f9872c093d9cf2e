"""Functions over columns."""

import os
import signal
import subprocess
import sys
import time

import duckdb
import gpu_run
import pandas
import polars
import pyarrow as pa
import pytest


def test_types_come_from_the_module_or_the_caller(functions):
    both = functions.udf("both")
    assert (both.name, both.params, both.results) == ("both", ["i64"], ["i64", "f32"])
    assert functions.function("same", ["u64"], "u64").results == ["u64"]
    with pytest.raises(TypeError, match="`f64` is not what the function has there: i64"):
        functions.function("same", ["f64"])
    with pytest.raises(TypeError, match="`same` has type"):
        functions.function("same", ["i64", "i64"])
    with pytest.raises(ValueError, match="`int` is no type"):
        functions.function("same", ["int"])
    with pytest.raises(gpu_run.Error, match="exports no function `missing`"):
        functions.udf("missing")


def test_integers_of_any_sign(functions):
    same = functions.udf("same")
    values = [-(2**63), -1, 0, 2**63 - 1]
    assert same(values).to_pylist() == values
    assert same([2**64 - 1]).to_pylist() == [-1]
    unsigned = functions.function("same", ["u64"], ["u64"])
    assert unsigned(pa.array([2**64 - 1, 0], pa.uint64())).to_pylist() == [2**64 - 1, 0]
    with pytest.raises(OverflowError, match="parameter 0 of `same` is u64: -1 in row 1 is none"):
        unsigned([1, -1])
    with pytest.raises(OverflowError, match="is u64: the value in row 1 is none"):
        unsigned(pa.array([1, -1]))
    even = functions.function("is_even", results="bool")
    assert pa.array(even(range(4))).equals(pa.array([True, False, True, False]))


@pytest.mark.parametrize("type", [pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16(), pa.uint32(), pa.int64()], ids=str)
def test_columns_of_every_integer(functions, type):
    array = pa.array([6, None, 4, 8], type)
    assert pa.array(functions.udf("divide")(array, 2)).equals(pa.array([3, None, 2, 4], pa.int32()))
    chunks = pa.chunked_array([array.slice(0, 1), array.slice(1), array.slice(0, 0)])
    assert functions.udf("divide")(chunks, [1, 1, 2, None]).to_pylist() == [6, None, 2, None]


def test_floats(functions):
    half = functions.udf("half")
    assert half(pa.array([1.0, None, 5.0], pa.float32())).to_pylist() == [0.5, None, 2.5]
    assert half([1, 2.5, None]).to_pylist() == [0.5, 1.25, None]
    with pytest.raises(TypeError, match="is f32, but the column has the type Float64"):
        half(pa.array([1.0]))
    with pytest.raises(TypeError, match="but the value in row 0 is of the type"):
        half(["a"])


def test_several_results_are_several_columns(functions):
    negated, as_float = functions.udf("both")(range(200))
    assert negated.to_pylist() == [-i for i in range(200)]
    assert pa.array(as_float).type == pa.float32() and as_float.to_pylist()[7] == 7.0
    assert functions.udf("check")([1, 2]) == ()


def test_a_row_that_fails_alone(functions):
    divide = functions.udf("divide")
    with pytest.raises(gpu_run.ProgramError, match="record 70 trapped: integer divide") as raised:
        divide(range(200), [int(i != 70) for i in range(200)])
    assert raised.value.record == 70
    column = divide(range(200), [None if i == 3 else int(i != 70) for i in range(200)], on_error="return")
    assert column.to_pylist() == [None if i in (3, 70) else i for i in range(200)]
    assert [error.record for error in column.errors] == [70]
    with pytest.raises(gpu_run.ProgramError, match="record 1 trapped"):
        functions.udf("check")([1, 0])


def test_calls_that_do_not_fit(functions):
    divide = functions.udf("divide")
    with pytest.raises(TypeError, match="has 2 parameters, but got 1 columns"):
        divide([1])
    with pytest.raises(ValueError, match="column 0 has 2 rows, but column 1 has 3"):
        divide([1, 2], [1, 2, 3])
    with pytest.raises(TypeError, match="no parameters"):
        functions.udf("nothing")()
    assert divide([], []).to_pylist() == []
    assert divide(6, 3).to_pylist() == [2]


def test_polars_calls_a_function_of_ours(functions):
    frame = polars.DataFrame({"a": range(100)}, schema={"a": polars.Int32})
    assert polars.Series(functions.udf("divide")(frame["a"], 3)).to_list() == [i // 3 for i in range(100)]


def test_duckdb_calls_a_function_of_ours(functions):
    relation = duckdb.sql("select i::integer, case when i = 5 then null else 2 end from range(100) t(i) order by i")
    assert functions.udf("divide")(relation).to_pylist() == [None if i == 5 else i // 2 for i in range(100)]
    assert functions.udf("divide")(duckdb.sql("select 7"), duckdb.sql("select 2")).to_pylist() == [3]


@pytest.mark.parametrize("dtype", ["int64", "Int64", "int64[pyarrow]", "float64"])
def test_pandas_calls_a_function_of_ours(functions, dtype):
    divide, half = functions.udf("divide"), functions.function("half")
    frame = pandas.DataFrame({"a": pandas.Series([10, 20, 30], dtype=dtype)})
    if dtype == "float64":
        # A value that is missing is a NaN there, but null in Arrow.
        numbers = pandas.Series([1.0, None, 5.0]).astype("float32")
        assert half(numbers).to_pylist() == [0.5, None, 2.5]
        return
    assert divide(frame["a"], 4).to_pylist() == divide(frame, 4).to_pylist() == [2, 5, 7]
    results = pandas.Series(divide(frame["a"], [1, 2, None]).to_pyarrow(), dtype="Int32")
    assert results.tolist() == [10, 10, pandas.NA]


def test_ctrl_c_ends_a_function():
    script = (
        "import gpu_run, programs\n"
        "call = gpu_run.Program(programs.FUNCTIONS, device='cpu').udf('for_ever')\n"
        "print('ready', flush=True)\n"
        "try: call([1])\n"
        "except KeyboardInterrupt: print('interrupted', flush=True)\n"
    )
    env = dict(os.environ, PYTHONPATH=os.path.dirname(__file__))
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env=env)
    assert child.stdout.readline() == "ready\n"
    time.sleep(1)
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=30)[0] == "interrupted\n"
