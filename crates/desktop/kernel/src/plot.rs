//! Plots: the last values of up to four series, as lines.

use crate::event::kinds;
use crate::item::{Brush, Edges};
use crate::math::{floor, round};
use crate::memory::*;
use crate::theme::{self, Colour::*, colour, faded};
use crate::{font, paint, tree};
use gpu_run_kernel::gpu::{load, store};

/// Lines of the grid above the one at the bottom.
const GRID: u32 = 4;
const STROKE: f32 = 1.75;

/// The word that counts the values of a series. It goes on from `VALUES` when it has come to twice that.
fn series(plot: u32, number: u32) -> u32 {
    PLOT_ARENA + (get(W_PLOT, plot) - 1) * PLOT_BYTES + number * (VALUES + 1) * 4
}

/// The `i`th of the values that are kept, from the oldest.
fn value(series: u32, i: u32) -> f32 {
    let count = load(series);
    f32::from_bits(load(series + 4 + (count - count.min(VALUES) + i) % VALUES * 4))
}

/// Adds a value to a series. Returns false if that is not allowed, or too many plots have values.
pub fn add(plot: u32, number: u32, bits: u32) -> bool {
    let allowed = tree::exists(plot) && get(W_KIND, plot) == kinds::PLOT && number < SERIES;
    if !allowed || !f32::from_bits(bits).is_finite() || get(W_PLOT, plot) == 0 && !take(plot) {
        return false;
    }
    let at = series(plot, number);
    let count = load(at);
    store(at + 4 + count % VALUES * 4, bits);
    store(at, if count + 1 == 2 * VALUES { VALUES } else { count + 1 });
    store(D_CHANGED, 1);
    true
}

/// Takes the first free place.
fn take(plot: u32) -> bool {
    let mut place = 0;
    while place < PLOTS {
        let (word, bit) = (D_PLOTS + place / 32 * 4, 1 << (place % 32));
        if load(word) & bit == 0 {
            store(word, load(word) | bit);
            set(W_PLOT, plot, place + 1);
            (0..SERIES).for_each(|number| store(series(plot, number), 0));
            return true;
        }
        place += 1;
    }
    false
}

/// Gives a plot's place back.
pub fn free(plot: u32) {
    let place = get(W_PLOT, plot).wrapping_sub(1);
    if place < PLOTS {
        let word = D_PLOTS + place / 32 * 4;
        store(word, load(word) & !(1 << (place % 32)));
        set(W_PLOT, plot, 0);
    }
}

/// The value at the plot's top: what the owner said, or the least of 1, 2 and 5 times a power of ten that no value is above.
pub fn greatest(plot: u32) -> f32 {
    let given = getf(W_GREATEST, plot);
    if !given.is_nan() || get(W_PLOT, plot) == 0 {
        return if given.is_nan() { 1.0 } else { given };
    }
    let mut most = 0.0f32;
    (0..SERIES).for_each(|number| {
        let at = series(plot, number);
        (0..load(at).min(VALUES)).for_each(|i| most = most.max(value(at, i)));
    });
    rounded_up(most)
}

fn rounded_up(most: f32) -> f32 {
    if most <= 1e-9 {
        return 1.0;
    }
    let mut power = 1.0f32;
    while power * 10.0 <= most && power < 1e30 {
        power *= 10.0;
    }
    while power > most && power > 1e-9 {
        power /= 10.0;
    }
    let whole = [1.0, 2.0, 5.0].into_iter().find(|part| part * power >= most);
    whole.unwrap_or(10.0) * power
}

pub fn paint(plot: u32, edges: Edges, brush: &mut Brush) {
    let (scale, hair) = (brush.scale, paint::hair(brush));
    let radius = theme::CONTROL_RADIUS * scale;
    brush.rectangle(edges, radius, colour(Field));
    let [left, top, right, bottom] = edges;
    let pad = round(8.0 * scale) as f32;
    let inner = [left + pad, top + pad, right - pad, bottom - pad];
    if inner[2] > inner[0] && inner[3] > inner[1] {
        let before = brush.limit([left + hair, top + hair, right - hair, bottom - hair]);
        (0..=GRID).for_each(|line| {
            let y = inner[1] + round((inner[3] - inner[1]) * line as f32 / GRID as f32) as f32;
            brush.rectangle([inner[0], y, inner[2], y + hair], 0.0, colour(CardEdge));
        });
        let most = greatest(plot);
        (0..SERIES).for_each(|number| draw(plot, SERIES - 1 - number, inner, most, brush));
        write_number(most, inner, brush);
        brush.clip = before;
    }
    brush.border(edges, radius, hair, colour(CardEdge));
}

/// Draws a series: its newest value at the right edge.
fn draw(plot: u32, number: u32, inner: Edges, most: f32, brush: &mut Brush) {
    if get(W_PLOT, plot) == 0 {
        return;
    }
    let at = series(plot, number);
    let count = load(at).min(VALUES);
    let [left, top, right, bottom] = inner;
    let place = |i: u32| {
        let share = (value(at, i) / most).clamp(0.0, 1.0);
        [right - (right - left) * (count - 1 - i) as f32 / (VALUES - 1) as f32, bottom - (bottom - top) * share]
    };
    (1..count).for_each(|i| {
        brush.line(place(i - 1), place(i), STROKE * brush.scale, theme::series(number));
    });
    if count == 1 {
        let [x, y] = place(0);
        brush.circle(x, y, STROKE * brush.scale, theme::series(number));
    }
}

/// Writes the number at the top, over a piece of the plot's ground so that lines do not make it hard to read.
fn write_number(most: f32, inner: Edges, brush: &mut Brush) {
    let (scale, size) = (brush.scale, theme::SMALL * brush.scale);
    let mut width = 0;
    digits(most, |code| width += font::advance(code));
    let [left, top, ..] = inner;
    let [x, y] = [left + 2.0 * scale, top + 3.0 * scale];
    let ground = [left, top + scale, x + width as f32 * size / font::EM + 4.0 * scale, y + 1.3 * size];
    brush.rectangle(ground, 3.0 * scale, faded(colour(Field), 200));
    let (baseline, mut advance) = (round(y + size) as f32, 0);
    digits(most, |code| {
        brush.glyph(code, x + advance as f32 * size / font::EM, baseline, size / font::EM, colour(Quiet));
        advance += font::advance(code);
    });
}

/// Calls `body` with the characters of a number: three digits or so, and k, M or G.
fn digits(number: f32, mut body: impl FnMut(u32)) {
    let (mut rest, mut unit) = (number, 0);
    while rest >= 10_000.0 && unit < 3 {
        rest /= 1000.0;
        unit += 1;
    }
    // Decimals until three digits count.
    let (mut decimals, mut power) = (0, 1.0f32);
    while decimals < 6 && rest * power < 100.0 && (rest * power - floor(rest * power) as f32) > 0.001 {
        power *= 10.0;
        decimals += 1;
    }
    let whole = (rest * power + 0.5) as u32;
    let mut divisor = 1u32;
    let mut places = 1;
    while places <= decimals || whole / divisor >= 10 {
        divisor *= 10;
        places += 1;
    }
    while places > 0 {
        body(b'0' as u32 + whole / divisor % 10);
        divisor = (divisor / 10).max(1);
        places -= 1;
        if places == decimals && places != 0 {
            body(b'.' as u32);
        }
    }
    if unit != 0 {
        body(b"kMG"[unit as usize - 1] as u32);
    }
}
