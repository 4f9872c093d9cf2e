//! The desktop's icons.

/// A picture before a button's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // The names say it.
#[repr(u32)]
pub enum Icon {
    Folder = 1,
    File,
    Terminal,
    Chart,
    Pen,
    Gear,
    Sparkle,
    Grid,
    Plus,
    Close,
    Refresh,
    Save,
    Play,
    Stop,
    Up,
    Home,
}
