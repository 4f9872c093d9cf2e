//! The apps that come with gpu-run's desktop. The name that the program is started by says which one it is.

mod editor;
mod files;
mod life;
mod mandelbrot;
mod monitor;
mod settings;
mod terminal;

use gpu_run_ui::Ui;
use std::io;
use std::process::ExitCode;

type App = fn(&Ui, &[String]) -> io::Result<()>;

const APPS: [(&str, App); 7] = [
    ("Monitor", monitor::run),
    ("Terminal", terminal::run),
    ("Files", files::run),
    ("Editor", editor::run),
    ("Settings", settings::run),
    ("Mandelbrot", mandelbrot::run),
    ("Life", life::run),
];

fn main() -> ExitCode {
    let mut args = std::env::args();
    let name = args.next().unwrap_or_default();
    let args: Vec<String> = args.collect();
    let Some((_, app)) = APPS.iter().find(|(known, _)| *known == name) else {
        let names = APPS.map(|(name, _)| name).join(", ");
        eprintln!("there is no app `{name}`; there are {names}");
        return ExitCode::from(2);
    };
    match Ui::connect().and_then(|ui| app(&ui, &args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{name}: {error}");
            ExitCode::FAILURE
        }
    }
}
