//! Keywords of layout.

use crate::event::style as s;

/// Where a container places its children across its direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // They are CSS's.
pub enum Align {
    Start,
    Center,
    End,
    Stretch,
}

/// How a container shares out the space that its children leave, along its direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // They are CSS's.
pub enum Justify {
    Start,
    Center,
    End,
    Between,
    Around,
    Evenly,
}

impl Align {
    pub(crate) fn code(self) -> u32 {
        match self {
            Self::Start => s::START,
            Self::Center => s::CENTER,
            Self::End => s::END,
            Self::Stretch => s::STRETCH,
        }
    }
}

impl Justify {
    pub(crate) fn code(self) -> u32 {
        match self {
            Self::Start => s::START,
            Self::Center => s::CENTER,
            Self::End => s::END,
            Self::Between => s::BETWEEN,
            Self::Around => s::AROUND,
            Self::Evenly => s::EVENLY,
        }
    }
}
