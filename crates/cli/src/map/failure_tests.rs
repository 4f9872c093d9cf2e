use super::*;
use gpu_run_console::failure::{exit_code, retried};
use gpu_run_map::JournalFlaw;
use std::io;

#[track_caller]
fn gives(error: Error, text: &str, code: u8) {
    let told = retried(told("app.wasm", error));
    assert_eq!((format!("{told:#}").as_str(), exit_code(&told)), (text, code));
}

fn broken() -> io::Error {
    io::Error::from_raw_os_error(5)
}

#[test]
fn what_cannot_be_opened_is_a_mistake_and_what_cannot_be_read_is_worth_retrying() {
    gives(
        Error::OpenInput { path: "in".into(), source: broken() },
        "cannot read in: Input/output error (os error 5)",
        75,
    );
    gives(
        Error::OpenInput { path: "in".into(), source: io::ErrorKind::NotFound.into() },
        "cannot read in: entity not found",
        2,
    );
    gives(Error::Read { what: "in".into(), source: broken() }, "cannot read in: Input/output error (os error 5)", 75);
    gives(
        Error::Write { what: "the output".into(), source: broken() },
        "cannot write the output: Input/output error (os error 5)",
        75,
    );
    gives(
        Error::StartThread { name: "reader", source: broken() },
        "cannot start the reader's thread: Input/output error (os error 5)",
        75,
    );
    gives(Error::TakeInput(broken()), "cannot continue to read the input: Input/output error (os error 5)", 75);
    gives(
        Error::Write { what: "out/a".into(), source: io::Error::from_raw_os_error(2) },
        "cannot write out/a: No such file or directory (os error 2)",
        1,
    );
    gives(Error::Internal("a part is missing"), "internal error: a part is missing", 1);
}

#[test]
fn what_stands_in_the_way_of_resuming_comes_with_the_way_out() {
    gives(
        Error::InputChanged,
        "--resume: the input is not the one that the unfinished output was made from\n  hint: resume with the same input, or begin anew with --force",
        2,
    );
    gives(
        Error::TaskChanged(TaskChange::Folders),
        "--resume: --dir has changed since the unfinished run\n  hint: resume with the same program and options, or begin anew with --force",
        2,
    );
    gives(
        Error::Journal { path: "out.gpu-run-map".into(), flaw: JournalFlaw::Damaged },
        "out.gpu-run-map is damaged, or is not a journal of this version of gpu-run\n  hint: begin anew with --force",
        2,
    );
    gives(
        Error::OutputFileChanged { output: "out".into(), file: "a/b".into() },
        "--resume: out was changed since the unfinished run: a/b is different or missing\n  hint: begin anew with --force",
        2,
    );
}

#[test]
fn a_link_that_a_guest_may_have_made_is_named_with_its_option() {
    gives(
        Error::UntrustedLink { action: "write", path: "out".into(), link: "/d/link".into() },
        "cannot write out: the path leads through the link /d/link, in a folder that --dir lets guests write to\n  hint: name the link's target instead, or follow the link with --follow-links",
        2,
    );
}

#[test]
fn a_process_that_cannot_be_started_is_told_with_the_program() {
    let reason = gpu_run_map::HandoverReason::RecordHangs { record: 7 };
    gives(
        Error::GiveHandover { reason, source: broken() },
        "app.wasm: record 7 did not finish and could not be stopped; continuing without it in a new process, but that process cannot be started: Input/output error (os error 5)",
        75,
    );
}
