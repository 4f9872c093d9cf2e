"""The actors of gpu_run.ray, without Ray, which scripts/python-ray-test has."""

import gpu_run
import gpu_run.ray
import pyarrow as pa
import pytest

import programs


def table(*numbers):
    return pa.table({"id": list(numbers), "text": [f"record {number}" for number in numbers]})


def actor(folder, source=gpu_run.examples.UPPER, **options):
    """Returns an actor that notes the ids of records that its program runs for."""
    made = gpu_run.ray.Mapper(source, column="text", device="cpu", id_column="id", checkpoint=folder, **options)()
    run, made.ran = made.run, []
    made.run = lambda table: made.ran.extend(table["id"].to_pylist()) or run(table)
    return made


def outputs(made, *numbers):
    return made(table(*numbers))["output"].to_pylist()


def test_what_is_done_is_not_done_again(tmp_path):
    first = actor(tmp_path / "new")
    assert outputs(first, 1, 2, 3) == ["RECORD 1", "RECORD 2", "RECORD 3"]
    assert outputs(first, 10, 12) == ["RECORD 10", "RECORD 12"]
    # In other batches, in another order, with others between them.
    second = actor(tmp_path / "new")
    assert outputs(second, 12, 4, 2, 11, 1) == ["RECORD 12", "RECORD 4", "RECORD 2", "RECORD 11", "RECORD 1"]
    assert second.ran == [4, 11]
    # One that runs beside it finds what has come since.
    assert outputs(first, 4, 3) == ["RECORD 4", "RECORD 3"] and first.ran == [1, 2, 3, 10, 12]
    assert outputs(first) == []


def test_a_file_that_was_not_finished_is_none(tmp_path):
    assert outputs(actor(tmp_path), 1) == ["RECORD 1"]
    [whole] = tmp_path.iterdir()
    (tmp_path / ".abc.part").write_bytes(whole.read_bytes()[:100])
    again = actor(tmp_path)
    assert outputs(again, 1, 2) == ["RECORD 1", "RECORD 2"] and again.ran == [2]


def test_two_files_with_one_record(tmp_path):
    slow, quick = actor(tmp_path), actor(tmp_path)
    slow.checkpoint.find = lambda ids: None
    assert outputs(quick, 1, 2) == outputs(slow, 1, 2)
    again = actor(tmp_path)
    assert outputs(again, 2, 1, 3) == ["RECORD 2", "RECORD 1", "RECORD 3"] and again.ran == [3]


def test_records_that_failed_run_again(tmp_path):
    texts = pa.table({"id": ["a", "b", "c"], "text": ["one", "x", None]})
    for _ in range(2):
        made = actor(tmp_path, programs.ECHO, on_error="return")
        found = made(texts)
        assert found["output"].to_pylist() == ["one", None, None]
        assert [message is None for message in found["error"].to_pylist()] == [True, False, True]
    assert made.ran == ["b"]
    with pytest.raises(gpu_run.Error, match="record b: trapped"):
        actor(tmp_path, programs.ECHO)(texts)


def test_a_folder_of_something_else(tmp_path):
    outputs(actor(tmp_path / "upper"), 1)
    with pytest.raises(gpu_run.Error, match="made by another program, or with other arguments"):
        outputs(actor(tmp_path / "upper", args=["--loud"]), 1)
    with pytest.raises(gpu_run.Error, match="has outputs of records with other ids, such as 1"):
        actor(tmp_path / "upper")(pa.table({"id": ["1"], "text": ["one"]}))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes.txt").write_text("mine")
    with pytest.raises(gpu_run.Error, match="notes.txt is no file of a checkpoint"):
        outputs(actor(tmp_path / "mine"), 1)


def test_ids_that_name_no_record(tmp_path):
    for numbers in ([1, 1], [None, 2]):
        with pytest.raises(gpu_run.Error, match="each record needs an id of its own"):
            actor(tmp_path)(pa.table({"id": pa.array(numbers, pa.int64()), "text": ["a", "b"]}))
    with pytest.raises(gpu_run.Error, match="ids are integers or text, but the column has the type double"):
        actor(tmp_path)(pa.table({"id": [0.5], "text": ["a"]}))
    with pytest.raises(ValueError, match="checkpoint= needs id_column="):
        gpu_run.ray.Mapper(gpu_run.examples.UPPER, column="text", checkpoint=tmp_path)
