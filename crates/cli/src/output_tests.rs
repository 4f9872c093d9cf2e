use super::*;

/// A stream's far end that a test can look at.
#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Sink {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn stream(order: Order, instances: usize) -> (Stream, Sink, Vec<InstanceWriter>) {
    let sink = Sink::default();
    let stream = Stream::new(sink.clone(), order, instances);
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
        let (stream, sink, writers) = stream(order, 3);
        writers[1].write(b"1\n").unwrap();
        writers[2].write(b"no newline").unwrap();
        stream.close().unwrap();
        assert_eq!(sink.text(), "1\nno newline");
        drop(writers);
        stream.close().unwrap();
        assert_eq!(sink.text(), "1\nno newline");
    }
}

#[test]
fn spilled_output_comes_back_in_order() {
    let mut ordered = Ordered::new(4, 10);
    let mut out = Vec::new();
    let mut expected = vec![String::new(); 4];
    for round in 0..50 {
        for instance in (1..4).rev() {
            let piece = format!("{instance}:{round};");
            ordered.write(&mut out, instance, piece.as_bytes()).unwrap();
            expected[instance] += &piece;
            assert!(ordered.in_memory <= 10);
        }
    }
    assert!(out.is_empty() && ordered.spill.is_some());
    ordered.end(&mut out, 0).unwrap();
    ordered.write(&mut out, 1, b"live;").unwrap();
    expected[1] += "live;";
    // Instance 3 writes more after part of the file was read: the next spill goes to the end.
    ordered.write(&mut out, 3, b"a later piece, long enough to spill;").unwrap();
    expected[3] += "a later piece, long enough to spill;";
    ordered.end_all(&mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), expected.concat());
    assert_eq!(ordered.in_memory, 0);
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
    let (_stream, sink, writers) = stream(Order::AsItComes, 1);
    for _ in 0..3 {
        writers[0].write(&[b'x'; LINE_LIMIT]).unwrap();
    }
    assert!(sink.text().len() >= 2 * LINE_LIMIT);
}
