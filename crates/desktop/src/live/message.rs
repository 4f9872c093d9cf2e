//! The messages between the desktop and its page (`page/desktop.js` has the other side). Numbers are little endian.
//!
//! From the page, all binary: one byte that says what it is, then
//!
//! | byte | what | layout |
//! |---|---|---|
//! | 1 | a frame is on the screen | its number (32 bits) |
//! | 2 | input | a number that counts up (32), then events: kind (16), flags (16), key, a, b (32 each) |
//! | 3 | text from the clipboard | UTF-8 |
//! | 4 | the page's size | width and height in pixels (16 each), 256 times the pixels for one unit (16) |
//!
//! To the page:
//!
//! | byte | what | layout |
//! |---|---|---|
//! | 1 | a frame | 24 bits 0, number, number of the last input it shows or 0 (32 each), width, height, rectangles, 0 (16 each); for each rectangle left, top, width and height (16 each); then the pixels of the rectangles, deflated |
//! | 2 | text for the clipboard | UTF-8 |

use super::screen::Patch;
use super::viewers::Frame;
use crate::event::{self as e, touch};
use crate::map;
use crate::records;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use gpu_run_machine::Event;
use std::io::Write;
use std::time::Instant;

/// The largest message that a page may send. Text from the clipboard is the longest.
pub(crate) const MAX_MESSAGE: usize = 128 << 10;
/// The most events in one message.
const MAX_EVENTS: usize = 512;
const EVENT_BYTES: usize = 16;

/// What a page says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Drawn { frame: u32 },
    Input { number: u32, events: Vec<Event> },
    Size(Size),
}

/// The size of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// 256 times the pixels for one unit of length.
    pub(crate) scale: u32,
}

impl Size {
    pub(crate) fn event(self) -> Event {
        Event { kind: e::RESIZE, key: self.scale, a: self.width, b: self.height, ..Event::default() }
    }
}

/// Reads a message of a page. The error says to its author what is wrong.
pub(crate) fn read(bytes: &[u8]) -> Result<Said, &'static str> {
    let (what, rest) = bytes.split_first().ok_or("the message is empty")?;
    match what {
        1 => {
            Ok(Said::Drawn { frame: u32::from_le_bytes(rest.try_into().map_err(|_| "a frame's number has 32 bits")?) })
        }
        2 => {
            let (number, events) = rest.split_first_chunk().ok_or("input begins with a number of 32 bits")?;
            let (events, end) = events.as_chunks::<EVENT_BYTES>();
            if !end.is_empty() || events.len() > MAX_EVENTS {
                return Err("input is at most 512 events of 16 bytes");
            }
            let events = events.iter().map(input).collect::<Result<_, _>>()?;
            Ok(Said::Input { number: u32::from_le_bytes(*number), events })
        }
        3 => {
            let text = std::str::from_utf8(rest).map_err(|_| "text from the clipboard is UTF-8")?;
            Ok(Said::Input { number: 0, events: pasted(text) })
        }
        4 => {
            let (words, end) = rest.as_chunks::<2>();
            let ([width, height, scale], []) = (words, end) else { return Err("a size is three numbers of 16 bits") };
            let [width, height, scale] = [width, height, scale].map(|word| u16::from_le_bytes(*word) as u32);
            let fits = (1..=map::MAX_WIDTH).contains(&width) && (1..=map::MAX_HEIGHT).contains(&height);
            if !fits || !(64..=1024).contains(&scale) {
                return Err("the size is not within 3840 by 2160 pixels, or the scale not within 0.25 and 4");
            }
            Ok(Said::Size(Size { width, height, scale }))
        }
        _ => Err("the message begins with none of the bytes 1 to 4"),
    }
}

/// An event that a page may send: what a user does, nothing else.
fn input(bytes: &[u8; EVENT_BYTES]) -> Result<Event, &'static str> {
    let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
    let word = |at: usize| half(at) as u32 | (half(at + 2) as u32) << 16;
    let it = Event { kind: half(0), flags: half(2), key: word(4), a: word(8), b: word(12), ..Event::default() };
    match it.kind {
        e::MOVE | e::PRESS | e::RELEASE | e::WHEEL | e::KEY => Ok(it),
        e::TOUCH if it.flags <= touch::CANCELLED => Ok(it),
        // A character of the desktop has 16 bits.
        e::TYPE => Ok(Event { key: if it.key > 0xFFFF { 0xFFFD } else { it.key }, ..it }),
        _ => Err("a page sends no events of this kind"),
    }
}

/// Splits text from a clipboard into events of the kind [`PASTE`](e::PASTE).
pub(crate) fn pasted(text: &str) -> Vec<Event> {
    match text.replace('\r', "") {
        text if text.is_empty() => Vec::new(),
        text => records::text(0, &text).into_iter().map(|event| Event { kind: e::PASTE, ..event }).collect(),
    }
}

/// A frame for one page.
pub(crate) fn frame(frame: &Frame) -> Vec<u8> {
    let body = frame.patch.packed.get_or_init(|| pack(&frame.patch));
    let mut message = Vec::with_capacity(12 + body.len());
    [1, frame.number, frame.shows].iter().for_each(|word: &u32| message.extend(word.to_le_bytes()));
    message.extend(body);
    message
}

/// What follows a frame's first 12 bytes, which are each page's own.
fn pack(patch: &Patch) -> Vec<u8> {
    let since = Instant::now();
    let mut body = Vec::with_capacity(4096);
    let halves = [patch.width, patch.height, patch.places.len() as u32, 0];
    halves.iter().chain(patch.places.iter().flatten()).for_each(|half| body.extend((*half as u16).to_le_bytes()));
    let mut encoder = DeflateEncoder::new(body, Compression::fast());
    let packed = encoder.write_all(&patch.pixels).and_then(|()| encoder.finish());
    tracing::debug!("packing a frame took {:?}", since.elapsed());
    packed.expect("a vector takes everything")
}

/// Text for a viewer's clipboard.
pub(crate) fn copied(text: &str) -> Vec<u8> {
    [&[2], text.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::TEXT_BEGINS;

    fn event(kind: u16, flags: u16) -> Vec<u8> {
        let mut bytes = vec![2, 7, 0, 0, 0];
        [kind, flags].iter().for_each(|half| bytes.extend(half.to_le_bytes()));
        [1u32, 2, u32::MAX].iter().for_each(|word| bytes.extend(word.to_le_bytes()));
        bytes
    }

    #[test]
    fn a_page_sends_what_a_user_does_and_nothing_else() {
        let a_move = Event { kind: e::MOVE, key: 1, a: 2, b: u32::MAX, ..Event::default() };
        assert_eq!(read(&event(e::MOVE, 0)), Ok(Said::Input { number: 7, events: vec![a_move] }));
        assert!(read(&event(e::TOUCH, 3)).is_ok() && read(&event(e::TOUCH, 4)).is_err());
        for kind in [e::CREATE, e::DESTROY, e::SET, e::TEXT, e::PASTE, e::RESIZE, e::RATE, e::CLICKED, 1, 15] {
            assert!(read(&event(kind, 0)).is_err(), "{kind}");
        }
    }

    #[test]
    fn malformed_messages_are_refused() {
        assert_eq!(read(&[1, 1, 2, 0, 0]), Ok(Said::Drawn { frame: 513 }));
        for bytes in
            [&[][..], &[1, 2], &[2, 0, 0], &[2, 0, 0, 0, 0, 9], &[3, 0xFF], &[4, 1, 0], &[4, 0, 0, 1, 0, 0, 1], &[9]]
        {
            assert!(read(bytes).is_err(), "{bytes:?}");
        }
        assert!(read(&[&[2, 0, 0, 0, 0][..], &[0; 513 * EVENT_BYTES]].concat()).is_err());
    }

    #[test]
    fn pasted_text_comes_in_pieces_of_six() {
        let Ok(Said::Input { events, .. }) = read("\u{3}ab\r\ncd€😀".as_bytes()) else { panic!() };
        let flags: Vec<u16> = events.iter().map(|event| event.flags).collect();
        assert_eq!(flags, [6 | TEXT_BEGINS, 1]);
        assert_eq!((events[0].id, events[1].a), (u32::from('d') | 0x20AC << 16, 0xFFFD));
    }
}
