//! `std::io`, with the lines `first`, `second`, `third` and more on stdin.

use std::io::{
    self, BufRead, BufReader, BufWriter, Cursor, ErrorKind, IoSlice, IoSliceMut, IsTerminal, LineWriter, Read, Seek,
    SeekFrom, Write,
};
use uses_std::{done, kind, show};

fn main() {
    streams();
    read();
    buf_read();
    seek();
    write();
    adapters();
    buffers();
    errors();
    pipes();
}

fn streams() {
    let mut line = String::new();
    show!(kind(io::stdin().read_line(&mut line)), line);
    let mut second = String::new();
    show!(kind(io::stdin().lock().read_line(&mut second)), second);
    show!(io::stdin().lines().next().map(kind), kind(io::read_to_string(io::stdin())));
    show!(io::stdin().is_terminal(), io::stdout().is_terminal(), io::stderr().is_terminal());
    show!(kind(io::stdout().write(b"to stdout\n")), kind(io::stdout().lock().write_all(b"with a lock\n")));
    show!(kind(io::stderr().write(b"to stderr\n")), kind(io::stderr().lock().flush()), kind(io::stdout().flush()));
    let locks = (io::stdin().lock().is_terminal(), io::stderr().lock().is_terminal());
    show!(locks);
}

/// Reads at most two bytes at once.
struct Slow(Cursor<Vec<u8>>);

impl Read for Slow {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = buffer.len().min(2);
        self.0.read(&mut buffer[..count])
    }
}

fn slow(text: &str) -> Slow {
    Slow(Cursor::new(text.into()))
}

fn read() {
    let (mut reader, mut bytes, mut text) = (slow("some bytes to read"), [0; 4], String::new());
    show!(kind(reader.read(&mut bytes)), bytes, kind(reader.read_exact(&mut bytes)), bytes);
    show!(kind(reader.by_ref().take(3).read_to_string(&mut text)), text);
    let mut rest = Vec::new();
    show!(kind(reader.read_to_end(&mut rest)), String::from_utf8_lossy(&rest));
    show!(kind(reader.read_exact(&mut bytes)), BufReader::new(slow("ab")).bytes().map(kind).collect::<Vec<_>>());
    let (mut one, mut other) = ([0; 2], [0; 3]);
    let slices = &mut [IoSliceMut::new(&mut one), IoSliceMut::new(&mut other)];
    show!(kind(Cursor::new(b"1234567").read_vectored(slices)), one, other);
    show!(kind(io::read_to_string(slow("first").chain(slow("second")))));
}

fn buf_read() {
    let mut reader = BufReader::new(slow("one,two;three\nfour\nfive"));
    let mut part = Vec::new();
    show!(kind(reader.read_until(b',', &mut part)), part, kind(reader.skip_until(b';')));
    show!(kind(reader.fill_buf().map(<[u8]>::to_vec)));
    reader.consume(1);
    let mut line = String::new();
    show!(kind(reader.read_line(&mut line)), line, reader.lines().map(kind).collect::<Vec<_>>());
    show!(BufReader::new(slow("a b c")).split(b' ').map(kind).collect::<Vec<_>>());
}

fn seek() {
    let mut cursor = Cursor::new(b"0123456789".to_vec());
    show!(kind(cursor.seek(SeekFrom::End(-3))), kind(cursor.stream_position()), kind(cursor.seek_relative(-2)));
    show!(cursor.position(), kind(cursor.seek(SeekFrom::Current(-9))), kind(cursor.rewind()), cursor.position());
    cursor.set_position(8);
    show!(kind(cursor.write(b"xyz")), cursor.get_ref().len());
    cursor.get_mut().clear();
    show!(cursor.into_inner());
    let mut reader = BufReader::new(Cursor::new(b"0123456789"));
    show!(kind(reader.seek_relative(4)), kind(io::read_to_string(reader)));
}

fn write() {
    let mut bytes = Vec::new();
    show!(
        kind(bytes.write(b"one ")),
        kind(bytes.write_all(b"two ")),
        kind(write!(bytes, "{}", 3)),
        kind(bytes.flush())
    );
    show!(kind(bytes.write_fmt(format_args!(" {:?}", "four"))), kind(bytes.by_ref().write(b"!")));
    let slices = [IoSlice::new(b" fi"), IoSlice::new(b"ve")];
    show!(kind(bytes.write_vectored(&slices)), String::from_utf8_lossy(&bytes));
    let mut one = IoSlice::new(b"12345");
    one.advance(2);
    let mut both = [one, IoSlice::new(b"678")];
    let mut rest = &mut both[..];
    IoSlice::advance_slices(&mut rest, 4);
    show!(rest.len(), &*rest[0]);
    let (mut first, mut second) = (*b"12345", *b"678");
    let mut one = IoSliceMut::new(&mut first);
    one.advance(2);
    let mut both = [one, IoSliceMut::new(&mut second)];
    let mut rest = &mut both[..];
    IoSliceMut::advance_slices(&mut rest, 4);
    show!(rest.len(), &*rest[0]);
}

fn adapters() {
    let mut bytes = [7; 3];
    show!(kind(io::empty().read(&mut bytes)), kind(io::empty().write(b"abc")));
    show!(kind(io::repeat(1).read(&mut bytes)), bytes, kind(io::sink().write(b"abc")));
    let mut copied = Vec::new();
    show!(kind(io::copy(&mut slow("a text"), &mut copied)), copied);
    let mut chain = slow("one").chain(slow("two"));
    show!(kind(chain.read(&mut bytes)), chain.get_ref().1.0.position());
    chain.get_mut().0.0.set_position(0);
    show!(chain.into_inner().0.0.position());
    let mut take = slow("0123456789").take(4);
    show!(take.limit(), kind(take.read(&mut bytes)), take.limit(), take.get_ref().0.position());
    take.set_limit(5);
    take.get_mut().0.set_position(0);
    show!(kind(io::read_to_string(&mut take)), take.into_inner().0.position());
}

fn buffers() {
    let mut reader = BufReader::with_capacity(4, Cursor::new(b"0123456789"));
    show!(kind(reader.read(&mut [0; 1])), reader.buffer(), reader.capacity(), reader.get_ref().position());
    reader.get_mut().set_position(9);
    show!(reader.into_inner().position());

    let mut writer = BufWriter::with_capacity(4, Vec::new());
    show!(kind(writer.write(b"ab")), writer.buffer(), writer.capacity(), writer.get_ref());
    writer.get_mut().push(b'-');
    show!(writer.into_inner().ok(), BufWriter::new(Vec::<u8>::new()).into_parts().0);

    let mut array = [0_u8; 2];
    let mut writer = BufWriter::new(&mut array[..]);
    show!(kind(writer.write(b"abc")));
    let error = writer.into_inner().expect_err("there is room for two");
    show!(error.error().kind());
    let (error, writer) = error.into_parts();
    show!(error.kind(), writer.buffer());
    _ = writer.into_parts();
    let mut nowhere = BufWriter::new(&mut [][..]);
    show!(kind(nowhere.write(b"a")), nowhere.into_inner().map(drop).map_err(|error| error.into_error().kind()));
    let mut nowhere = BufWriter::new(&mut [][..]);
    show!(kind(nowhere.write(b"b")));
    let again = nowhere.into_inner().expect_err("there is no room").into_inner();
    show!(again.into_parts().1.map_err(|panicked: io::WriterPanicked| panicked.into_inner()));

    let mut lines = LineWriter::new(Vec::new());
    show!(kind(lines.write(b"one\ntwo")), lines.get_ref());
    lines.get_mut().push(b'-');
    show!(lines.into_inner().ok(), LineWriter::with_capacity(10, Vec::<u8>::new()).get_ref());
}

fn errors() {
    let mut error = io::Error::new(ErrorKind::InvalidData, "what went wrong");
    show!(error.kind(), error.to_string(), error.raw_os_error(), error.get_ref().map(ToString::to_string));
    show!(error.get_mut().is_some(), error.into_inner().map(|inner| inner.to_string()));
    show!(io::Error::other("something").kind(), io::Error::from(ErrorKind::NotFound).to_string());
    let number = "x".parse::<u8>().expect_err("no number");
    show!(io::Error::other(number.clone()).downcast::<std::num::ParseIntError>().ok() == Some(number));
    _ = std::fs::File::open("missing");
    show!(io::Error::last_os_error().kind());
    // The numbers of a system's errors are its own; these are 2 natively and 44 in WASI.
    let missing = std::fs::File::open("missing").expect_err("it is missing").raw_os_error();
    show!(missing.map(io::Error::from_raw_os_error).map(|error| (error.kind(), error.raw_os_error() == missing)));
    show!(ErrorKind::BrokenPipe.to_string(), ErrorKind::BrokenPipe < ErrorKind::NotFound);
    let result: io::Result<()> = Err(io::ErrorKind::UnexpectedEof.into());
    show!(kind(result));
}

fn pipes() {
    let (mut reader, mut writer) = io::pipe().expect("a pipe");
    let (mut other_reader, mut other_writer) = (reader.try_clone(), writer.try_clone());
    let mut bytes = [0; 2];
    show!(kind(writer.write(b"one ")), kind(reader.read(&mut bytes)), bytes);
    show!(other_writer.as_mut().map(|writer| kind(writer.write(b"two"))).ok());
    show!(other_reader.as_mut().map(|reader| kind(reader.read(&mut bytes))).ok(), bytes);
    drop((writer, other_writer));
    show!(kind(io::read_to_string(&mut reader)));
    let (reader_only, mut writer_only) = io::pipe().expect("a pipe");
    drop(reader_only);
    show!(done(writer_only.write(b"nobody reads")));
}
