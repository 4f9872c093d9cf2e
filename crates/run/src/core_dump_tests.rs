use super::*;

#[test]
fn zeros_are_left_out_and_what_is_left_is_where_it_was() {
    let mut piece = vec![0u8; 5 * 16];
    let found = |piece: &[u8]| runs(piece, 16).map(|(at, bytes)| (at, bytes.to_vec())).collect::<Vec<_>>();
    assert_eq!(found(&piece), []);
    piece[20] = 1;
    piece[33] = 2;
    piece[79] = 3;
    let mut first = vec![0; 14];
    (first[0], first[13]) = (1, 2);
    // The second and third unit are one segment; the last unit may be short.
    assert_eq!(found(&piece), [(20, first.clone()), (79, vec![3])]);
    piece.truncate(70);
    assert_eq!(found(&piece), [(20, first)]);
}

#[test]
fn a_padded_number_is_the_number() {
    for value in [0, 1, 127, 128, 0x1234_5678, u32::MAX] {
        let read = wasmparser::BinaryReader::new(&padded(value), 0).read_var_u32();
        assert_eq!(read.ok(), Some(value), "{value}");
    }
}
