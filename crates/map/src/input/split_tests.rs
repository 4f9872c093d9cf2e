use super::*;

/// Gives its bytes in pieces of the lengths that a generator says.
struct Chunked {
    bytes: Vec<u8>,
    at: usize,
    random: fastrand::Rng,
    most: usize,
}

impl Read for Chunked {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.random.u8(..7) == 0 {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let length = self.random.usize(1..=self.most).min(buffer.len()).min(self.bytes.len() - self.at);
        buffer[..length].copy_from_slice(&self.bytes[self.at..][..length]);
        self.at += length;
        Ok(length)
    }
}

fn records(bytes: &[u8], rule: Rule) -> Records {
    Records::new(ByteSource::Stream(Box::new(io::Cursor::new(bytes.to_vec()))), rule, MAX_RECORD_BYTES).unwrap()
}

fn all(mut records: Records) -> Vec<Piece> {
    std::iter::from_fn(|| records.next().unwrap()).collect()
}

fn texts(bytes: &str, rule: Rule) -> Vec<String> {
    all(records(bytes.as_bytes(), rule)).into_iter().map(|p| String::from_utf8(p.bytes.to_vec()).unwrap()).collect()
}

#[test]
fn lines_are_kept_as_they_are_and_the_last_gets_its_newline() {
    assert_eq!(texts("a\n\nb\r\nc", Rule::Lines), ["a\n", "\n", "b\r\n", "c\n"]);
    assert_eq!(texts("a\n", Rule::Lines), ["a\n"]);
    assert_eq!(texts("\n", Rule::Lines), ["\n"]);
    assert!(texts("", Rule::Lines).is_empty());
}

#[test]
fn rows_keep_the_newlines_in_their_quotes() {
    let text = "a,b\n1,\"x\ny\"\n2,\"he said \"\"no\"\"\n\"\n3,5\" disk\n4,z";
    assert_eq!(texts(text, Rule::Csv), ["1,\"x\ny\"\n", "2,\"he said \"\"no\"\"\n\"\n", "3,5\" disk\n", "4,z\n"]);
    let lines: Vec<_> = all(records(text.as_bytes(), Rule::Csv)).into_iter().map(|p| p.line).collect();
    assert_eq!(lines, [2, 4, 6, 7]);
}

#[test]
fn a_header_with_newlines_is_one_row_and_empty_lines_are_none() {
    let records = records(b"\n\"a\nb\",c\r\n\r\n1,2\r\n\n\n3,4", Rule::Csv);
    assert_eq!(records.header(), b"\"a\nb\",c\r\n");
    let pieces: Vec<_> = all(records).into_iter().map(|p| (p.line, p.bytes.to_vec())).collect();
    assert_eq!(pieces, [(5, b"1,2\r\n".to_vec()), (8, b"3,4\n".to_vec())]);
    assert!(texts("a,b\n", Rule::Csv).is_empty());
    assert!(texts("", Rule::Csv).is_empty());
}

#[test]
fn what_separates_fields_is_what_the_header_uses() {
    for (separator, other) in [(',', ';'), (';', ','), ('\t', ','), ('|', ';')] {
        let text = format!("a{separator}b{other}\n1{separator}\"x\ny\"\n2{other}\"z\n");
        assert_eq!(texts(&text, Rule::Csv).len(), 2, "{text}");
    }
    assert_eq!(separator(b"\"a;b\",c;d\n"), b',');
    assert_eq!(separator(b"alone\n"), b',');
}

#[test]
fn a_quote_that_is_never_closed_is_told_with_its_line() {
    let pieces = all(records(b"a\n1\n\"x\ny\n", Rule::Csv));
    assert_eq!((pieces[1].line, pieces[1].flaw.is_some(), pieces.len()), (3, true, 2));
}

#[test]
fn a_line_that_is_no_json_is_told_with_the_column() {
    let pieces = all(records(b"{\"a\": 1}\n{\"a\": }\n\n[1]\n1 2\n", Rule::Jsonl));
    let flaws: Vec<_> = pieces.iter().map(|p| p.flaw.as_ref().map_or_else(String::new, ToString::to_string)).collect();
    assert_eq!(flaws[0], "");
    assert!(flaws[1].contains("column 7"), "{flaws:?}");
    assert!(flaws[2].contains("is not JSON") && flaws[4].contains("trailing"), "{flaws:?}");
    assert_eq!((&*flaws[3], pieces[4].line), ("", 5));
}

#[test]
fn a_record_over_the_limit_ends_with_its_line() {
    let limited = |bytes: &[u8], rule| {
        let mut records = Records::new(ByteSource::Stream(Box::new(io::Cursor::new(bytes.to_vec()))), rule, 8).unwrap();
        std::iter::from_fn(move || records.next().transpose()).map(|r| r.map(|p| p.bytes.len())).collect::<Vec<_>>()
    };
    let got = limited(b"1234567\n12345678\n", Rule::Lines);
    assert!(matches!(got[..], [Ok(8), Err(SplitError::TooLong { line: 2, .. }), ..]), "{got:?}");
    let got = limited(b"a\n\"1\n2\n3\n4\n5\n6", Rule::Csv);
    assert!(matches!(got[0], Err(SplitError::TooLong { line: 2, csv: true, .. })), "{got:?}");
}

#[test]
fn any_chunking_gives_the_same_records() {
    let mut random = fastrand::Rng::with_seed(1);
    for round in 0..3000 {
        let alphabet = b"\n\n\r\"\",,;a1{}";
        let length = random.usize(..60);
        let bytes: Vec<u8> = (0..length).map(|_| alphabet[random.usize(..alphabet.len())]).collect();
        for rule in [Rule::Lines, Rule::Jsonl, Rule::Csv] {
            let whole = records(&bytes, rule);
            let header = whole.header().to_vec();
            let most = random.usize(1..=8);
            let source = Chunked { bytes: bytes.clone(), at: 0, random: random.clone(), most };
            let chunked = Records::new(ByteSource::Stream(Box::new(source)), rule, MAX_RECORD_BYTES).unwrap();
            assert_eq!(chunked.header(), header, "round {round}");
            let (chunked, whole) = (all(chunked), all(whole));
            assert_eq!(
                format!("{chunked:?}"),
                format!("{whole:?}"),
                "round {round}: {:?}",
                String::from_utf8_lossy(&bytes)
            );
            if rule != Rule::Csv {
                let naive: Vec<_> = bytes.split_inclusive(|b| *b == b'\n').map(|l| ended(l.to_vec())).collect();
                assert_eq!(whole.into_iter().map(|p| p.bytes.to_vec()).collect::<Vec<_>>(), naive);
            } else {
                let kept: Vec<u8> =
                    std::iter::once(header).chain(whole.into_iter().map(|p| p.bytes.to_vec())).flatten().collect();
                let plain = |bytes: &[u8]| bytes.iter().filter(|b| !b"\r\n".contains(b)).copied().collect::<Vec<_>>();
                assert_eq!(plain(&kept), plain(&bytes), "nothing but newlines is dropped or added");
            }
        }
    }
}

#[test]
fn going_on_from_any_record_gives_the_rest() {
    let bytes = b"h,i\n1,\"a\nb\"\n\n2,c\n3,d";
    for rule in [Rule::Lines, Rule::Csv] {
        let pieces = all(records(bytes, rule));
        for skip in 0..=pieces.len() {
            let mut first = records(bytes, rule);
            for _ in 0..skip {
                first.next().unwrap();
            }
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(bytes).unwrap();
            file.rewind().unwrap();
            for mut again in
                [Records::new(ByteSource::File(file), rule, MAX_RECORD_BYTES).unwrap(), records(bytes, rule)]
            {
                assert!(again.skip_to(first.position()).unwrap());
                assert!(again.seen().is_none_or(|seen| Some(seen) == first.seen()));
                assert_eq!(format!("{:?}", all(again)), format!("{:?}", &pieces[skip..]));
            }
        }
    }
    assert!(!records(b"a\n", Rule::Lines).skip_to(Position { offset: 3, line: 1 }).unwrap());
    // Another process has no header to read any more, and begins at an anchor.
    let (all_bytes, mut first) =
        (b"h,i\n".iter().chain(&b"1,abcdefghi\n".repeat(300_000)).copied().collect::<Vec<u8>>(), 0);
    let mut begun = records(&all_bytes, Rule::Csv);
    while begun.position().offset < 2_500_000 {
        begun.next().unwrap();
        first += 1;
    }
    let anchor = begun.anchor().unwrap();
    let rest = all_bytes[anchor.offset as usize..].to_vec();
    let source = ByteSource::Stream(Box::new(io::Cursor::new(rest)));
    let mut again = Records::continued(source, Rule::Csv, MAX_RECORD_BYTES, begun.header().to_vec(), anchor);
    assert!(again.skip_to(begun.position()).unwrap());
    assert_eq!((again.seen(), again.header()), (begun.seen(), begun.header()));
    assert_eq!(all(again).len() + first, 300_000);
}

mod shards {
    use super::*;
    use crate::shard::Shard;
    use proptest::prelude::*;

    /// Records of the file as they are read by one shard after the other, and as they are read at once.
    fn agree(bytes: &[u8], rule: Rule, count: u32) {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        let open = || {
            let mut file = file.try_clone().unwrap();
            file.rewind().unwrap();
            Records::new(ByteSource::File(file), rule, MAX_RECORD_BYTES).unwrap()
        };
        let whole = all(open());
        let (mut pieces, mut numbers) = (Vec::new(), 0);
        for shard in Shard::all(count) {
            let (mut records, share) = (open(), shard.share(bytes.len() as u64));
            records.end_at(share.end);
            assert_eq!(records.skip_before(share.start).unwrap(), numbers, "shard {shard}");
            let of_shard = all(records);
            numbers += of_shard.len() as u64;
            pieces.extend(of_shard);
        }
        assert_eq!(
            format!("{pieces:?}"),
            format!("{whole:?}"),
            "{count} shards of {:?}",
            String::from_utf8_lossy(bytes)
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]
        #[test]
        fn each_record_is_in_one_shard_and_has_its_number(
            text in "[\\n\\r\",;a1]{0,80}",
            count in prop::sample::select(vec![1_u32, 2, 3, 7, 64]),
            rule in prop::sample::select(vec![Rule::Lines, Rule::Jsonl, Rule::Csv]),
        ) {
            agree(text.as_bytes(), rule, count);
        }
    }

    #[test]
    fn what_is_longer_than_a_read_is_cut_in_the_same_way() {
        let line = |i: usize| format!("{i},{}\n", "x".repeat(i * 7919 % 300));
        let mut text: String = (0..30_000).map(line).collect();
        assert!(text.len() > 4 * MAX_FILE_READ);
        text.insert_str(MAX_FILE_READ, &"y".repeat(2 * MAX_FILE_READ));
        for rule in [Rule::Lines, Rule::Csv] {
            agree(text.as_bytes(), rule, 7);
        }
    }
}
