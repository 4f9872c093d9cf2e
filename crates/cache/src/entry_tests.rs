//! Every way a file can be wrong.
#![allow(clippy::unwrap_used)]

use super::*;

fn key() -> Key {
    Key::new("cpu", &"recipe").unwrap().labelled("hello.wasm")
}

/// One that packs, with some that does not.
fn payload() -> Vec<u8> {
    let mut state = 7u32;
    let mut noise = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..1500).map(|i| if i % 300 < 200 { (i / 300) as u8 } else { noise() }).collect()
}

fn file() -> Vec<u8> {
    encode(&key(), &payload(), Duration::from_millis(1500), UNIX_EPOCH + Duration::from_secs(1_700_000_000))
}

#[test]
fn an_entry_says_what_it_was_given() {
    let (about, bytes) = decode(&file(), key().hash()).unwrap();
    assert_eq!(bytes, payload());
    assert_eq!((about.label.as_str(), about.took), ("hello.wasm", Duration::from_millis(1500)));
    assert_eq!(about.made, UNIX_EPOCH + Duration::from_secs(1_700_000_000));
    assert!(about.stored < about.given, "{about:?}");
    for odd in [&b""[..], b"x", &[0; 100_000]] {
        let file = encode(&key(), odd, Duration::ZERO, UNIX_EPOCH);
        assert_eq!(decode(&file, key().hash()).unwrap().1, odd);
    }
}

#[test]
fn every_flipped_bit_is_noticed() {
    let mut file = file();
    for at in 0..file.len() {
        for bit in 0..8 {
            file[at] ^= 1 << bit;
            assert!(decode(&file, key().hash()).is_err(), "byte {at}, bit {bit}");
            file[at] ^= 1 << bit;
        }
    }
    assert!(decode(&file, key().hash()).is_ok());
}

#[test]
fn every_truncation_and_every_addition_is_noticed() {
    let mut file = file();
    for length in 0..file.len() {
        assert!(decode(&file[..length], key().hash()).is_err(), "{length} bytes");
        assert!(read_header(&file[..length], length as u64).is_err(), "{length} bytes");
    }
    file.push(0);
    assert!(matches!(decode(&file, key().hash()), Err(Damage::Length { .. })));
}

#[test]
fn another_keys_entry_another_version_and_foreign_files_are_named() {
    let other = Key::new("cpu", &"another").unwrap();
    assert_eq!(decode(&file(), other.hash()).unwrap_err(), Damage::Key);
    let mut newer = file();
    newer[72] = 2;
    assert_eq!(decode(&newer, key().hash()).unwrap_err(), Damage::Version(2));
    assert_eq!(decode(&[b'x'; 4096], key().hash()).unwrap_err(), Damage::Magic);
    assert_eq!(decode(b"no entry", key().hash()).unwrap_err(), Damage::Magic);
    assert!(matches!(decode(b"", key().hash()).unwrap_err(), Damage::Length { found: 0, .. }));
}

#[test]
fn a_header_alone_says_what_the_entry_is() {
    let file = file();
    let about = read_header(&file[..HEADER + 10], file.len() as u64).unwrap();
    assert_eq!((about.label.as_str(), about.given), ("hello.wasm", 1500));
}
