//! Conway's Game of Life on a torus. The pointer draws.

use gpu_run_ui::{Canvas, Event, Icon, Pointer, Ui};
use std::io;
use std::time::Duration;

const WIDTH: usize = 120;
const HEIGHT: usize = 80;
/// Pixels of a cell.
const CELL: usize = 3;
const ALIVE: [u8; 3] = [0x58, 0xC4, 0xDD];
const DEAD: [u8; 3] = [0x14, 0x18, 0x22];

pub fn run(ui: &Ui, _: &[String]) -> io::Result<()> {
    let window = ui.window("Life");
    let mut canvas = window.canvas(WIDTH * CELL, HEIGHT * CELL);
    let bar = window.row().gap(8.0);
    let play = bar.button("Pause").icon(Icon::Pause);
    let step = bar.button("Step");
    let random = bar.button("Random").icon(Icon::Sparkle);
    let clear = bar.button("Clear");
    let said = bar.label("").quiet();
    let speed = window.row().gap(10.0);
    speed.label("Speed").quiet();
    let slider = speed.slider().grow(1.0);
    slider.set_value(0.5);

    let (mut cells, mut runs, mut generation, mut period) = (soup(), true, 0, Duration::from_millis(60));
    show(&mut canvas, &cells);
    ui.tick_in(period);
    while let Some(event) = ui.next()? {
        match event {
            Event::Tick if runs => {
                cells = next(&cells);
                generation += 1;
                ui.tick_in(period);
            }
            Event::Clicked(widget) if widget == play => {
                runs = !runs;
                play.set_text(if runs { "Pause" } else { "Play" });
                let _same = play.clone().icon(if runs { Icon::Pause } else { Icon::Play });
                ui.tick_in(period);
            }
            Event::Clicked(widget) if widget == step => {
                cells = next(&cells);
                generation += 1;
            }
            Event::Clicked(widget) if widget == random => (cells, generation) = (soup(), 0),
            Event::Clicked(widget) if widget == clear => (cells, generation) = (vec![false; WIDTH * HEIGHT], 0),
            Event::Changed(widget, value) if widget == slider => {
                period = Duration::from_millis((250.0 * (1.0 - value) * (1.0 - value) + 4.0) as u64);
            }
            Event::Pointed(_, Pointer::Pressed | Pointer::Moved, x, y) => {
                cells[(y / CELL).min(HEIGHT - 1) * WIDTH + (x / CELL).min(WIDTH - 1)] = true;
            }
            Event::Closed(_) => break,
            _ => continue,
        }
        show(&mut canvas, &cells);
        let alive = cells.iter().filter(|cell| **cell).count();
        said.set_text(&format!("generation {generation}, {alive} alive"));
    }
    Ok(())
}

fn soup() -> Vec<bool> {
    (0..WIDTH * HEIGHT).map(|_| fastrand::u8(..) < 70).collect()
}

fn next(cells: &[bool]) -> Vec<bool> {
    let alive = |x: usize, y: usize| u8::from(cells[y % HEIGHT * WIDTH + x % WIDTH]);
    let cell = |at: usize| {
        let (x, y) = (at % WIDTH + WIDTH, at / WIDTH + HEIGHT);
        let around: u8 = [y - 1, y, y + 1].iter().map(|y| alive(x - 1, *y) + alive(x, *y) + alive(x + 1, *y)).sum();
        // Its own cell is among the nine.
        around == 3 || around == 4 && cells[at]
    };
    (0..WIDTH * HEIGHT).map(cell).collect()
}

fn show(canvas: &mut Canvas, cells: &[bool]) {
    let pixel = |at: usize| {
        let (x, y) = (at % (WIDTH * CELL), at / (WIDTH * CELL));
        let is_gap = x % CELL == CELL - 1 || y % CELL == CELL - 1;
        if !is_gap && cells[y / CELL * WIDTH + x / CELL] { ALIVE } else { DEAD }
    };
    canvas.show(&(0..WIDTH * HEIGHT * CELL * CELL).map(pixel).collect::<Vec<_>>());
}
