//! The clipboard of this computer.

use crate::map;

/// A connection that is made when it is first used, and then kept: what was copied is there as long as it is.
#[derive(Default)]
pub(super) struct Clipboard(Option<arboard::Clipboard>);

impl Clipboard {
    /// Its text, or an empty one; no more than a widget can have.
    pub(super) fn text(&mut self) -> String {
        let text = self.with(|clipboard| clipboard.get_text()).unwrap_or_default();
        match text.char_indices().nth(map::MAX_TEXT as usize) {
            Some((end, _)) => text[..end].to_owned(),
            None => text,
        }
    }

    pub(super) fn set(&mut self, text: String) {
        self.with(|clipboard| clipboard.set_text(text));
    }

    fn with<T>(&mut self, what: impl FnOnce(&mut arboard::Clipboard) -> Result<T, arboard::Error>) -> Option<T> {
        let clipboard = match &mut self.0 {
            Some(clipboard) => Ok(clipboard),
            none => arboard::Clipboard::new().map(|clipboard| none.insert(clipboard)),
        };
        let done = clipboard.and_then(what);
        match done {
            // Something else than a text was copied, or nothing.
            Err(arboard::Error::ContentNotAvailable) | Ok(_) => {}
            Err(ref error) => tracing::warn!("the clipboard cannot be used: {error}"),
        }
        done.ok()
    }
}
