//! The desktop's icons.

use crate::event::icons;

/// A picture before a button's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // The names say it.
#[repr(u32)]
pub enum Icon {
    Folder = icons::FOLDER,
    File = icons::FILE,
    Terminal = icons::TERMINAL,
    Chart = icons::CHART,
    Text = icons::TEXT,
    Pen = icons::PEN,
    Gear = icons::GEAR,
    Sparkle = icons::SPARKLE,
    Grid = icons::GRID,
    Plus = icons::PLUS,
    Close = icons::CLOSE,
    Refresh = icons::REFRESH,
    Save = icons::SAVE,
    Play = icons::PLAY,
    Stop = icons::STOP,
    Up = icons::UP,
    Home = icons::HOME,
    Pause = icons::PAUSE,
}
