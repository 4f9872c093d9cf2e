use super::*;

fn sample(id: u32) -> Event {
    Event { kind: 4, flags: 1, key: 9, a: 2, b: u32::MAX, id, wait: 0 }
}

fn written(path: &Path) -> Vec<u8> {
    let mut recorder = Recorder::create(path, 3).unwrap();
    recorder.events(5, &[sample(1), sample(2)]).unwrap();
    recorder.events(9, &[sample(3)]).unwrap();
    std::fs::read(path).unwrap()
}

#[test]
fn what_was_recorded_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    written(&path);
    let log = Log::read(&path).unwrap();
    assert_eq!((log.from, log.torn, log.last_tick()), (3, 0, 10));
    assert_eq!(log.ticks, [(5, vec![sample(1), sample(2)]), (9, vec![sample(3)])]);
}

/// A log that began with the first of two codes.
fn of_two_codes(path: &Path) -> (Recorder, Kernel, Kernel) {
    let (first, second) = (Kernel::built_in(), Kernel::named("debug", crate::KERNEL_DEBUG.to_vec()).unwrap());
    let mut recorder = Recorder::create(path, 0).unwrap();
    recorder.code(0, &first).unwrap();
    recorder.events(5, &[sample(1)]).unwrap();
    (recorder, first, second)
}

#[test]
fn the_code_of_every_tick_is_in_the_log_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let (mut recorder, first, second) = of_two_codes(&path);
    recorder.code(7, &second).unwrap();
    recorder.code(9, &first).unwrap();
    recorder.code(9, &second).unwrap();
    let log = Log::read(&path).unwrap();
    assert_eq!(log.codes, [(0, first.hash()), (7, second.hash()), (9, second.hash())]);
    assert_eq!(log.modules.len(), 2);
    assert_eq!(log.kernel(second.hash()).unwrap(), second);
    Recorder::append(&path, &log).unwrap().code(12, &first).unwrap();
    Recorder::append(&path, &Log::read(&path).unwrap()).unwrap().events(20, &[]).unwrap();
    let log = Log::read(&path).unwrap();
    assert_eq!((log.modules.len(), log.torn, log.last_tick()), (2, 0, 21));
    let hashes = [Some(second.hash()), Some(second.hash()), Some(first.hash())];
    assert_eq!(log.stretches(8), [(hashes[0], 8, 9), (hashes[1], 9, 12), (hashes[2], 12, 21)]);
    assert_eq!(log.stretches(30), [(hashes[2], 30, 30)]);
}

/// Killed right after it was given other code, a machine goes on where that was, not behind the last tick that took something: the ticks in between were done with the code before.
#[test]
fn a_log_that_ends_with_other_code_reaches_to_where_that_began() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let (mut recorder, first, second) = of_two_codes(&path);
    recorder.code(9, &second).unwrap();
    let log = Log::read(&path).unwrap();
    assert_eq!(log.last_tick(), 9);
    assert_eq!(log.stretches(3), [(Some(first.hash()), 3, 9), (Some(second.hash()), 9, 9)]);
}

#[test]
fn whatever_a_crash_leaves_of_the_last_record_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let bytes = written(&path);
    for length in HEADER..bytes.len() {
        let log = Log::decode(&bytes[..length]).unwrap();
        let whole = if length >= bytes.len() - (RECORD + RECORD_CHECK + EVENT + CHECK) { 1 } else { 0 };
        assert_eq!(log.ticks.len(), whole, "{length} bytes");
        assert_eq!(log.length + log.torn, length as u64);
    }
}

/// A log of every kind of record: the code is there twice, once as a module.
fn all_kinds(path: &Path) -> Vec<u8> {
    let image = Kernel::named("small", wat::parse_str(small_kernel()).unwrap()).unwrap();
    let mut recorder = Recorder::create(path, 0).unwrap();
    recorder.code(0, &image).unwrap();
    recorder.events(5, &[sample(1), sample(2)]).unwrap();
    recorder.code(7, &image).unwrap();
    recorder.events(9, &[]).unwrap();
    recorder.end(12, &Hash::from_bytes([7; 32])).unwrap();
    std::fs::read(path).unwrap()
}

fn small_kernel() -> String {
    let about = [VERSION.to_le_bytes(), crate::layout::INTERFACE.to_le_bytes()].concat();
    let about: String = about.iter().map(|byte| format!("\\{byte:02x}")).collect();
    format!(r#"(module (@custom "{}" "{about}") (func (export "boot")) (func (export "run")))"#, crate::layout::SECTION)
}

#[test]
fn every_flipped_bit_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = all_kinds(&folder.path().join("log"));
    assert_eq!(Log::decode(&bytes).unwrap().last_tick(), 12);
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut bad = bytes.clone();
            bad[at] ^= 1 << bit;
            let refused = Log::decode(&bad).unwrap_err();
            let place = matches!(refused, Refused::Damaged { at: place, .. } if place <= at as u64);
            assert!(place || refused == Refused::Header, "bit {bit} of byte {at}: {refused:?}");
        }
    }
}

#[test]
fn what_follows_the_end_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    let mut bytes = all_kinds(&folder.path().join("log"));
    let length = bytes.len() as u64;
    bytes.push(0);
    assert_eq!(Log::decode(&bytes).unwrap_err(), Refused::Damaged { at: length, tick: 12 });
}

#[test]
fn every_truncation_is_a_log_that_ends_earlier_or_none() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = all_kinds(&folder.path().join("log"));
    let whole = Log::decode(&bytes).unwrap();
    for length in 0..bytes.len() {
        match Log::decode(&bytes[..length]) {
            Err(refused) => {
                assert!(length < HEADER && matches!(refused, Refused::Foreign | Refused::Header), "{length} bytes");
            }
            Ok(log) => {
                assert_eq!(log.length + log.torn, length as u64);
                assert!(whole.ticks.starts_with(&log.ticks) && whole.codes.starts_with(&log.codes), "{length} bytes");
                assert_eq!(log.end, None);
            }
        }
    }
}

#[test]
fn room_that_was_never_written_is_what_a_crash_left() {
    let folder = tempfile::tempdir().unwrap();
    let mut bytes = written(&folder.path().join("log"));
    bytes.extend([0; 4096]);
    let log = Log::decode(&bytes).unwrap();
    assert_eq!((log.torn, log.ticks.len()), (4096, 2));
}

#[test]
fn a_refusal_says_what_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let mut bytes = written(&path);
    let second = bytes.len() - (RECORD + RECORD_CHECK + EVENT + CHECK);
    bytes[second + RECORD + RECORD_CHECK + 3] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let refused = Log::read(&path).unwrap_err().to_string();
    assert!(refused.contains(&format!("byte {second}, after tick 6, is damaged")), "{refused}");
    std::fs::write(&path, &bytes[..second]).unwrap();
    assert_eq!(Log::read(&path).unwrap().ticks.len(), 1);
}

#[test]
fn logs_of_before_are_read_and_gone_on_with() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let mut bytes = Vec::from(OLD_MAGICS[1]);
    bytes.extend((VERSION as u64).to_le_bytes());
    bytes.extend(3u64.to_le_bytes());
    let last = check(&[0; CHECK], &bytes);
    bytes.extend(last);
    std::fs::write(&path, &bytes).unwrap();
    Recorder::append(&path, &Log::read(&path).unwrap()).unwrap().events(5, &[sample(1)]).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().len() as usize, HEADER + RECORD + EVENT + CHECK);
    Recorder::append(&path, &Log::read(&path).unwrap()).unwrap().events(9, &[]).unwrap();
    assert_eq!(Log::read(&path).unwrap().ticks, [(5, vec![sample(1)]), (9, vec![])]);
}

#[test]
fn going_on_cuts_off_what_was_torn() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let bytes = written(&path);
    std::fs::write(&path, &bytes[..bytes.len() - 3]).unwrap();
    let mut recorder = Recorder::append(&path, &Log::read(&path).unwrap()).unwrap();
    recorder.events(11, &[sample(4)]).unwrap();
    recorder.end(20, &Hash::from_bytes([7; 32])).unwrap();
    let log = Log::read(&path).unwrap();
    assert_eq!(log.ticks.iter().map(|(tick, _)| *tick).collect::<Vec<_>>(), [5, 11]);
    assert_eq!((log.end, log.last_tick()), (Some((20, Hash::from_bytes([7; 32]))), 20));
    // And again: the end is no more.
    Recorder::append(&path, &log).unwrap().events(30, &[]).unwrap();
    assert_eq!(Log::read(&path).unwrap().last_tick(), 31);
}
