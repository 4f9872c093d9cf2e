//! Pixels that an app sets.

use crate::event::{self, PIXELS, PIXELS_RUN, properties as p};
use crate::widget::Widget;
use crate::wire::Record;
use std::ops::Deref;

/// A run of so many equal pixels is sent as one record.
const RUN: usize = 5;

/// A canvas or an image. It is a [`Widget`], too.
#[derive(Debug)]
pub struct Canvas {
    widget: Widget,
    width: usize,
    height: usize,
    /// What the desktop has.
    shown: Vec<u32>,
}

impl Canvas {
    pub(crate) fn new(widget: Widget, width: usize, height: usize) -> Self {
        let (width, height) = (width.clamp(1, 2048), height.clamp(1, 2048));
        let size = width as u32 | (height as u32) << 16;
        widget.send(Record { kind: event::SET, a: p::PIXEL_SIZE, b: size, ..Record::default() });
        Self { widget, width, height, shown: vec![0; width * height] }
    }

    /// How many pixels a row has.
    pub fn columns(&self) -> usize {
        self.width
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.height
    }

    /// Sets how many pixels there are. They are black.
    pub fn resize(&mut self, width: usize, height: usize) {
        *self = Self::new(self.widget.clone(), width, height);
    }

    /// Shows these pixels, row by row: red, green, blue. Only those that changed are sent. What is missing stays as it was.
    pub fn show(&mut self, pixels: &[[u8; 3]]) {
        let count = pixels.len().min(self.shown.len());
        let colour = |at: usize| u32::from_le_bytes([pixels[at][0], pixels[at][1], pixels[at][2], 0]);
        let mut at = 0;
        while at < count {
            let first = colour(at);
            if first == self.shown[at] {
                at += 1;
                continue;
            }
            let run = (at..count).take_while(|other| colour(*other) == first).count();
            let record = if run >= RUN {
                self.shown[at..at + run].fill(first);
                Record { kind: PIXELS, flags: PIXELS_RUN, a: at as u32, b: first, id: run as u32, ..Record::default() }
            } else {
                let few = (count - at).min(4);
                let mut packed = [0; 12];
                for (to, pixel) in packed.chunks_exact_mut(3).zip(&pixels[at..at + few]) {
                    to.copy_from_slice(pixel);
                }
                (at..at + few).for_each(|at| self.shown[at] = colour(at));
                let word = |n: usize| u32::from_le_bytes([packed[n], packed[n + 1], packed[n + 2], packed[n + 3]]);
                Record { kind: PIXELS, flags: few as u16, a: at as u32, b: word(0), id: word(4), wait: word(8), key: 0 }
            };
            self.widget.send(record);
            at += if run >= RUN { run } else { (count - at).min(4) };
        }
    }
}

impl Deref for Canvas {
    type Target = Widget;
    fn deref(&self) -> &Widget {
        &self.widget
    }
}
