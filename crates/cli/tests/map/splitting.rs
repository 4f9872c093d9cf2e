//! Ways of splitting other than lines.

use super::*;

#[test]
fn csv_rows_come_with_their_header_and_quoted_newlines() {
    let place = Place::new();
    place.write("in.csv", "name,\"no\nte\"\r\nana,\"x\ny\"\r\n\r\nbob,\"say \"\"hi\"\"\"\neve,5\" disk");
    let header = "name,\"no\nte\"\r\n";
    let expected = format!("{header}ana,\"x\ny\"\r\n{header}bob,\"say \"\"hi\"\"\"\n{header}eve,5\" disk\n");
    place.run("echo.wat -i in.csv --split csv").gives(0, &expected).says(&["3 records, 0 failed"]);
    let ran = place.run("args.wat -i in.csv --split csv {}");
    ran.gives(0, "args.wat\0ana,\"x\ny\"\0\nargs.wat\0bob,\"say \"\"hi\"\"\"\0\nargs.wat\0eve,5\" disk\0\n");
    let ran = place.run_with_input("echo.wat --split csv", b"a\n1\n\"2\n3\n");
    ran.gives(1, "a\n1\n\n").says(&["line 3 (record 1) has a quoted field that is never closed"]);
}

#[test]
fn a_line_that_is_no_json_is_told_and_keeps_its_place() {
    let place = Place::new();
    let ran = place.run_with_input("echo.wat --split jsonl", b"{\"a\":1}\n{\"a\":\n[2]\nnull");
    ran.gives(1, "{\"a\":1}\n\n[2]\nnull\n").says(&["line 2 (record 1) is not JSON: EOF", "4 records, 1 failed"]);
}

#[test]
fn files_of_a_folder_become_files_of_the_same_names() {
    let place = Place::new();
    for (name, content) in [("b.txt", "bee"), ("a/x", "x\n"), ("a/y", ""), ("c", "trap"), ("d", "exit")] {
        place.write(&format!("in/{name}"), content);
    }
    place.write("out/c", "from an earlier time");
    let ran = place.run("echo.wat -i in -o out/ --batch 2").gives(1, "");
    ran.says(&["c (record 3) trapped", "d (record 4) exited with 3", "5 records, 2 failed"]);
    let read = |name: &str| place.read(&format!("out/{name}"));
    assert_eq!([read("b.txt"), read("a/x"), read("a/y"), read("d")], ["bee", "x\n", "", "exit"]);
    assert!(!place.has("out/c") && !place.has("out/.gpu-run-map"));
    assert_eq!(fs::read_dir(place.path("out")).unwrap().count(), 3, "nothing but the output is left there");
    place.run("echo.wat -i in").gives(1, "x\nbeeexit");
    place.run("args.wat -i in -o names {}").gives(0, "");
    assert_eq!(place.read("names/a/x"), "args.wat\0a/x\0");
}

#[test]
fn a_slow_pipe_gets_its_results_before_it_ends() {
    let place = Place::new();
    let mut child = place.start("echo.wat", Stdio::piped());
    let mut stdin = child.stdin.take().unwrap();
    let feeder = std::thread::spawn(move || {
        // Until the other side has seen a result, the input does not end.
        for i in 0.. {
            if stdin.write_all(format!("{i}\n").as_bytes()).is_err() {
                return;
            }
            std::thread::sleep(Duration::from_millis(60));
        }
    });
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert_eq!(first, "0\n");
    child.kill().unwrap();
    child.wait().unwrap();
    feeder.join().unwrap();
}
