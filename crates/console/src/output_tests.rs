use super::*;

/// A stream's far end that a test can look at.
#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Sink {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().clone()).unwrap()
    }
}

impl Output for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }
}

/// A far end that takes so many bytes, and then fails in its own way.
struct Narrow(Sink, usize, io::ErrorKind);

impl Output for Narrow {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(self.1);
        if count == 0 {
            self.1 = 3; // there will be room the next time
            return Err(self.2.into());
        }
        self.1 -= count;
        self.0.write(&bytes[..count])
    }
}

fn stream(order: Order, instances: usize) -> (Stream, Sink, Vec<InstanceWriter>) {
    let sink = Sink::default();
    let stream = Stream::new(sink.clone(), order, instances, Spill::new(1 << 20));
    let writers = (0..instances).map(|i| stream.writer(i)).collect();
    (stream, sink, writers)
}

#[test]
fn ordered_streams_the_first_and_holds_the_others_back() {
    let (_stream, sink, mut writers) = stream(Order::ByInstance, 3);
    writers[1].write(b"1a\n").unwrap();
    writers[0].write(b"prompt? ").unwrap();
    assert_eq!(sink.text(), "prompt? ", "the current instance's bytes do not wait for a newline");
    writers[2].write(b"2a").unwrap();
    drop(writers.remove(0));
    assert_eq!(sink.text(), "prompt? 1a\n", "instance 1 is the current one now");
    writers[0].write(b"1b\n").unwrap();
    assert_eq!(sink.text(), "prompt? 1a\n1b\n");
}

#[test]
fn ordered_passes_over_instances_that_ended_early() {
    let (_stream, sink, mut writers) = stream(Order::ByInstance, 3);
    writers[2].write(b"two").unwrap();
    writers[1].write(b"one").unwrap();
    drop(writers.pop());
    drop(writers.pop());
    assert_eq!(sink.text(), "");
    drop(writers.pop());
    assert_eq!(sink.text(), "onetwo");
}

#[test]
fn close_writes_what_still_waits_once() {
    for order in [Order::ByInstance, Order::AsItComes] {
        let (stream, sink, mut writers) = stream(order, 3);
        writers[1].write(b"1\n").unwrap();
        writers[2].write(b"no newline").unwrap();
        stream.close(sink.clone()).unwrap();
        assert_eq!(sink.text(), "1\nno newline");
        drop(writers);
        stream.close(sink.clone()).unwrap();
        assert_eq!(sink.text(), "1\nno newline");
    }
}

/// An ordered stream with small limits.
fn small(instances: usize, memory: usize, spill: u64, out: impl Output + 'static) -> (Stream, Vec<InstanceWriter>) {
    let mixer = Mixer::Ordered(Ordered::new(instances, memory, Spill::new(spill)));
    let stream = Stream(Arc::new(Mutex::new(State { out: Outgoing::new(Box::new(out)), mixer })));
    let writers = (0..instances).map(|i| stream.writer(i)).collect();
    (stream, writers)
}

/// How much of it is taken.
fn offer(writer: &mut InstanceWriter, text: &str) -> usize {
    match writer.write(text.as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
        result => result.unwrap(),
    }
}

fn write_all(writer: &mut InstanceWriter, mut text: &str) {
    while !text.is_empty() {
        text = &text[offer(writer, text)..];
    }
}

#[test]
fn spilled_output_comes_back_in_order() {
    let sink = Sink::default();
    let (stream, mut writers) = small(4, 10, 1 << 20, sink.clone());
    let mut expected = vec![String::new(); 4];
    for round in 0..50 {
        for instance in (1..4).rev() {
            let piece = format!("{instance}:{round};");
            write_all(&mut writers[instance], &piece);
            expected[instance] += &piece;
        }
    }
    assert_eq!(sink.text(), "");
    drop(writers.remove(0));
    write_all(&mut writers[0], "live;");
    expected[1] += "live;";
    // Instance 3 writes more after part of the file was read: the next spill goes to the end.
    write_all(&mut writers[2], "a later piece, long enough to spill;");
    expected[3] += "a later piece, long enough to spill;";
    stream.close(sink.clone()).unwrap();
    assert_eq!(sink.text(), expected.concat());
}

#[test]
fn more_than_may_wait_is_refused_and_told_and_leaves_no_gap() {
    let sink = Sink::default();
    let (stream, mut writers) = small(4, 10, 20, sink.clone());
    // Ten in memory go to disk, ten more, and then memory is full.
    assert_eq!([offer(&mut writers[1], "0123456789abc"), offer(&mut writers[1], "abcdefghij")], [10, 10]);
    assert_eq!(offer(&mut writers[2], "ABCDEFGHIJK"), 10);
    assert_eq!(writers[2].write(b"x").unwrap_err().kind(), io::ErrorKind::StorageFull, "30 bytes wait: no more");
    write_all(&mut writers[0], "the first one is never refused;");
    drop(writers.remove(0));
    assert_eq!(sink.text(), "the first one is never refused;0123456789abcdefghij");
    write_all(&mut writers[0], "now it is its turn;");
    write_all(&mut writers[2], "there is room again;");
    assert!(writers[1].write(b"but not behind what is missing").is_err());
    drop(writers);
    let told = stream.close(sink.clone()).unwrap_err().to_string();
    assert!(
        told.contains("--max-spill allows no more than 20 B")
            && told.contains("the output of 1 instance is incomplete"),
        "{told}"
    );
    assert!(sink.text().ends_with("now it is its turn;ABCDEFGHIJthere is room again;"), "{}", sink.text());
}

#[test]
fn a_full_pipe_loses_nothing_and_blocks_nobody() {
    for order in [Order::ByInstance, Order::AsItComes] {
        let sink = Sink::default();
        let stream = Stream::new(Narrow(sink.clone(), 3, io::ErrorKind::WouldBlock), order, 2, Spill::new(0));
        let mut writers: Vec<_> = (0..2).map(|i| stream.writer(i)).collect();
        write_all(&mut writers[1], "one, which waits\n");
        write_all(&mut writers[0], "zero, which does not\n");
        writers.into_iter().for_each(drop);
        stream.close(sink.clone()).unwrap();
        let mut lines: Vec<_> = sink.text().lines().map(str::to_owned).collect();
        lines.sort_unstable();
        assert_eq!(lines, ["one, which waits", "zero, which does not"]);
    }
}

#[test]
fn a_failure_that_no_instance_saw_is_told_at_the_end() {
    let sink = Sink::default();
    let stream = Stream::new(Narrow(sink.clone(), 3, io::ErrorKind::StorageFull), Order::ByInstance, 3, Spill::new(0));
    let mut writers: Vec<_> = (0..3).map(|i| stream.writer(i)).collect();
    write_all(&mut writers[1], "one");
    write_all(&mut writers[2], "two");
    writers.into_iter().for_each(drop);
    let full = Narrow(sink.clone(), 0, io::ErrorKind::StorageFull);
    assert_eq!(stream.close(full).unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert_eq!(sink.text(), "one");
}

#[test]
fn unordered_never_cuts_a_line() {
    let (_stream, sink, mut writers) = stream(Order::AsItComes, 2);
    writers[0].write(b"zero ").unwrap();
    writers[1].write(b"one\ntail").unwrap();
    writers[0].write(b"and more\n").unwrap();
    assert_eq!(sink.text(), "one\nzero and more\n");
    drop(writers.pop());
    assert_eq!(sink.text(), "one\nzero and more\ntail");
}

#[test]
fn unordered_does_not_keep_an_endless_line() {
    let (_stream, sink, mut writers) = stream(Order::AsItComes, 1);
    for _ in 0..3 {
        writers[0].write(&[b'x'; LINE_LIMIT]).unwrap();
    }
    assert!(sink.text().len() >= 2 * LINE_LIMIT);
}
