//! The Mandelbrot set: a click goes nearer, the wheel both ways.

use gpu_run_ui::{Canvas, Event, Icon, Justify, Key, Pointer, Ui, Widget};
use std::io;
use std::time::Duration;

const WIDTH: usize = 400;
const HEIGHT: usize = 280;
/// Rows that are computed between two looks at what the user does.
const ROWS: usize = 8;

struct View {
    x: f64,
    y: f64,
    /// The width of what is seen.
    width: f64,
    steps: u32,
}

const WHOLE: View = View { x: -0.6, y: 0.0, width: 3.4, steps: 200 };

pub fn run(ui: &Ui, _: &[String]) -> io::Result<()> {
    let window = ui.window("Mandelbrot");
    let mut canvas = window.canvas(WIDTH, HEIGHT);
    let bar = window.row().gap(10.0).justify(Justify::Between);
    let place = bar.label("").quiet();
    let whole = bar.button("Whole").icon(Icon::Home);
    let (mut view, mut row) = (WHOLE, 0);
    let mut pixels = vec![[0; 3]; WIDTH * HEIGHT];
    ui.tick_in(Duration::ZERO);
    while let Some(event) = ui.next()? {
        let mut zoom = |at: (usize, usize), by: f64| {
            let (x, y) = view.at(at.0, at.1);
            // Where the pointer is stays where it is.
            view.x = x + (view.x - x) * by;
            view.y = y + (view.y - y) * by;
            view.width = (view.width * by).clamp(1e-12, 8.0);
            view.steps = (200.0 + 120.0 * (3.4 / view.width).log2().max(0.0)) as u32;
        };
        match event {
            Event::Pointed(_, Pointer::Pressed, x, y) => zoom((x, y), 0.5),
            Event::Wheeled(_, down) => zoom((WIDTH / 2, HEIGHT / 2), if down > 0.0 { 1.25 } else { 0.8 }),
            Event::Keyed(_, Key::Character('+')) => zoom((WIDTH / 2, HEIGHT / 2), 0.5),
            Event::Keyed(_, Key::Character('-')) => zoom((WIDTH / 2, HEIGHT / 2), 2.0),
            Event::Clicked(widget) if widget == whole => view = WHOLE,
            Event::Tick => {
                draw(&view, &mut pixels, row);
                row += ROWS;
                canvas.show(&pixels);
                if row < HEIGHT {
                    ui.tick_in(Duration::ZERO);
                } else {
                    say(&place, &view, &canvas);
                }
                continue;
            }
            Event::Closed(_) => break,
            _ => continue,
        }
        row = 0;
        ui.tick_in(Duration::ZERO);
    }
    Ok(())
}

fn say(place: &Widget, view: &View, canvas: &Canvas) {
    let (pixels, steps) = (canvas.columns() * canvas.rows(), view.steps);
    place.set_text(&format!("{pixels} pixels, up to {steps} steps, width {:.2e}", view.width));
}

impl View {
    fn at(&self, column: usize, row: usize) -> (f64, f64) {
        let pixel = self.width / WIDTH as f64;
        (self.x + (column as f64 - WIDTH as f64 / 2.0) * pixel, self.y + (row as f64 - HEIGHT as f64 / 2.0) * pixel)
    }
}

fn draw(view: &View, pixels: &mut [[u8; 3]], from: usize) {
    for row in from..(from + ROWS).min(HEIGHT) {
        for column in 0..WIDTH {
            let (x, y) = view.at(column, row);
            pixels[row * WIDTH + column] = colour(x, y, view.steps);
        }
    }
}

fn colour(x: f64, y: f64, most: u32) -> [u8; 3] {
    let (mut a, mut b, mut step) = (0.0f64, 0.0f64, 0);
    while step < most && a * a + b * b < 256.0 {
        (a, b) = (a * a - b * b + x, 2.0 * a * b + y);
        step += 1;
    }
    if step == most {
        return [8, 10, 20];
    }
    // Between two steps the colour goes on without a seam.
    let smooth = f64::from(step) + 1.0 - (a * a + b * b).ln().log2().max(0.0) + 2.0;
    let wave = |phase: f64| (127.5 + 127.5 * (smooth * 0.11 + phase).sin()) as u8;
    [wave(4.0), wave(4.6), wave(5.4)]
}
