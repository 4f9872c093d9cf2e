//! The widgets of an app: the numbers that it chose, and those that the desktop knows them by.
//!
//! An app can name nothing but its own widgets. What it says of others has no effect, because a window may have been closed before
//! the app hears of it.

use crate::event::{self, kinds};
use crate::records;
use gpu_run_machine::Event;
use gpu_run_ui::wire::Record;
use std::collections::HashMap;

/// The most widgets that an app has at once.
const MAX_WIDGETS: usize = 1 << 14;

/// Numbers of widgets that no app has.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    free: Vec<u32>,
    next: u32,
}

impl Numbers {
    /// Those from `first` on.
    pub(super) fn after(first: u32) -> Self {
        Self { free: Vec::new(), next: first }
    }

    fn take(&mut self) -> Option<u32> {
        self.free.pop().or_else(|| {
            let number = Some(self.next).filter(|next| next + 1 < crate::map::WIDGETS)?;
            self.next += 1;
            Some(number)
        })
    }
}

#[derive(Debug, Default)]
pub(super) struct Widgets {
    /// By the app's numbers: the desktop's.
    numbers: HashMap<u32, u32>,
    /// By the desktop's numbers.
    all: HashMap<u32, Widget>,
}

#[derive(Debug)]
struct Widget {
    /// The app's number.
    own: u32,
    parent: u32,
    children: Vec<u32>,
}

impl Widgets {
    /// Returns an app's command as an event of the desktop; none if it is about a widget that is gone. An error says what the app did
    /// that no app may do.
    pub(super) fn command(
        &mut self,
        it: &Record,
        owner: u32,
        numbers: &mut Numbers,
    ) -> Result<Option<Event>, &'static str> {
        let own = self.numbers.get(&it.key).copied();
        let event = records::event(it);
        let about = |key: Option<u32>| key.map(|key| Event { key, ..event });
        Ok(match it.kind {
            event::CREATE => {
                if it.key == 0 || own.is_some() {
                    return Err("it gave two widgets the same number");
                }
                let parent = match (it.a, it.b) {
                    (kinds::WINDOW, 0) => 0,
                    (_, parent) => match self.numbers.get(&parent) {
                        Some(parent) => *parent,
                        None => return Ok(None),
                    },
                };
                if self.all.len() >= MAX_WIDGETS {
                    return Err("it made more than 16384 widgets");
                }
                let number = numbers.take().ok_or("the desktop has no room for more widgets")?;
                self.numbers.insert(it.key, number);
                self.all.insert(number, Widget { own: it.key, parent, children: Vec::new() });
                if let Some(parent) = self.all.get_mut(&parent) {
                    parent.children.push(number);
                }
                Some(Event { key: number, b: parent, id: owner, wait: 0, ..event })
            }
            event::DESTROY => {
                if let Some(number) = own {
                    self.forget(number, numbers);
                }
                about(own)
            }
            event::SET | event::TEXT | event::PIXELS | event::POINT => about(own),
            _ => return Err("it said something that the desktop does not know"),
        })
    }

    /// The app's number of a widget that the desktop names.
    pub(super) fn own(&self, number: u32) -> Option<u32> {
        self.all.get(&number).map(|widget| widget.own)
    }

    /// The desktop's number of a widget that the app names.
    pub(super) fn number(&self, own: u32) -> Option<u32> {
        self.numbers.get(&own).copied()
    }

    /// A widget is gone, and everything in it. Its numbers can be given to others.
    pub(super) fn forget(&mut self, number: u32, numbers: &mut Numbers) {
        if let Some(parent) = self.all.get(&number).map(|widget| widget.parent)
            && let Some(parent) = self.all.get_mut(&parent)
        {
            parent.children.retain(|child| *child != number);
        }
        let mut gone = vec![number];
        while let Some(number) = gone.pop() {
            if let Some(widget) = self.all.remove(&number) {
                self.numbers.remove(&widget.own);
                numbers.free.push(number);
                gone.extend(widget.children);
            }
        }
    }

    /// The windows.
    pub(super) fn windows(&self) -> Vec<u32> {
        self.all.iter().filter(|(_, widget)| widget.parent == 0).map(|(number, _)| *number).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn create(key: u32, kind: u32, parent: u32) -> Record {
        Record { kind: event::CREATE, key, a: kind, b: parent, ..Record::default() }
    }

    #[test]
    fn an_app_reaches_its_own_widgets_only() {
        let (mut numbers, mut one, mut other) = (Numbers::after(10), Widgets::default(), Widgets::default());
        let mut say = |widgets: &mut Widgets, record: Record| widgets.command(&record, 3, &mut numbers);
        let window = say(&mut one, create(1, kinds::WINDOW, 0)).unwrap().unwrap();
        assert_eq!((window.key, window.b, window.id), (10, 0, 3));
        assert_eq!(say(&mut one, create(2, kinds::LABEL, 1)).unwrap().unwrap().key, 11);
        assert_eq!(say(&mut other, create(2, kinds::LABEL, 1)).unwrap(), None, "the window is another app's");
        assert_eq!(say(&mut other, Record { kind: event::DESTROY, key: 10, ..Record::default() }).unwrap(), None);
        assert!(say(&mut one, create(2, kinds::LABEL, 1)).is_err(), "the number is in use");
        assert!(say(&mut one, create(0, kinds::LABEL, 1)).is_err());
        for kind in [event::RESIZE, event::MOVE, event::TYPE, 9999] {
            assert!(say(&mut one, Record { kind, ..Record::default() }).is_err());
        }
        let text = Record { kind: event::TEXT, key: 0, ..Record::default() };
        assert_eq!(say(&mut one, text).unwrap(), None, "the desktop is no app's");
    }

    #[test]
    fn numbers_come_back_with_everything_in_a_window() {
        let (mut numbers, mut widgets) = (Numbers::after(1), Widgets::default());
        for _ in 0..100 {
            widgets.command(&create(1, kinds::WINDOW, 0), 0, &mut numbers).unwrap().unwrap();
            (2..50).for_each(|key| {
                let made = widgets.command(&create(key, kinds::PANEL, key - 1), 0, &mut numbers).unwrap().unwrap();
                assert!(made.key < 50);
            });
            let window = widgets.windows()[0];
            assert_eq!(widgets.own(window), Some(1));
            widgets.forget(window, &mut numbers);
            assert!(widgets.all.is_empty() && widgets.numbers.is_empty());
        }
    }

    #[test]
    fn the_desktop_s_last_number_is_given_and_no_other() {
        let mut numbers = Numbers::after(crate::map::WIDGETS - 2);
        assert_eq!(numbers.take(), Some(crate::map::WIDGETS - 2));
        assert_eq!(numbers.take(), None);
        assert_eq!(numbers.take(), None);
    }
}
