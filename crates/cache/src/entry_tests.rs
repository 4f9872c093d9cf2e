//! Every way a file can be wrong.
#![allow(clippy::unwrap_used)]

use super::*;

fn decode(file: &[u8], key: &[u8; KEY_BYTES]) -> Result<(About, Vec<u8>), Damage> {
    match super::decode(file, file.len() as u64, key) {
        Ok(whole) => Ok(whole),
        Err(Failure::Damage(damage)) => Err(damage),
        Err(Failure::Io(error)) => panic!("{error}"),
    }
}

fn key() -> Key {
    Key::new("cpu", &"recipe").unwrap().labelled("hello.wasm")
}

/// One that packs, with some that does not.
fn payload() -> Vec<u8> {
    packable(1500)
}

fn packable(length: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(7);
    (0..length).map(|i| if i % 300 < 200 { (i / 300) as u8 } else { random.u8(..) }).collect()
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
fn pieces_come_back_in_their_order_whether_packed_or_not() {
    for length in [PIECE - 1, PIECE, PIECE + 1, 9 * PIECE + 17] {
        let packed = packable(length);
        let noise: Vec<u8> = packed.chunks(300).flat_map(|part| part.iter().skip(200)).copied().collect();
        for payload in [packed, noise] {
            let file = encode(&key(), &payload, Duration::ZERO, UNIX_EPOCH);
            assert!(decode(&file, key().hash()).unwrap().1 == payload, "{length} bytes");
            assert!(check(&file[..], file.len() as u64).is_ok());
        }
    }
}

#[test]
fn a_piece_that_is_damaged_or_in_anothers_place_is_noticed() {
    let mut file = encode(&key(), &packable(3 * PIECE), Duration::ZERO, UNIX_EPOCH);
    let head = read_header(&file, file.len() as u64).unwrap().head as usize;
    for at in (head..file.len()).step_by(997) {
        file[at] ^= 0x10;
        assert_eq!(decode(&file, key().hash()).unwrap_err(), Damage::Sum, "byte {at}");
        assert!(check(&file[..], file.len() as u64).is_err());
        file[at] ^= 0x10;
    }
    // Of two pieces of the same length, each is summed for its own place.
    let noise: Vec<u8> = packable(7 * PIECE).chunks(300).flat_map(|part| part.iter().skip(200)).copied().collect();
    let mut file = encode(&key(), &noise[..2 * PIECE], Duration::ZERO, UNIX_EPOCH);
    let head = file.len() - 2 * PIECE;
    file[head..].rotate_left(PIECE);
    assert_eq!(decode(&file, key().hash()).unwrap_err(), Damage::Sum);
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
    newer[72] = 3;
    assert_eq!(decode(&newer, key().hash()).unwrap_err(), Damage::Version(3));
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
