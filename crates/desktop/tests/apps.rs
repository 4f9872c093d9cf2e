//! Apps on a desktop, on `cpu` or on the device that `GPU_RUN_TEST_DEVICE` says. These apps are threads of the test, at the other end of an app's stream.
#![allow(clippy::unwrap_used)] // A test that cannot go on says so by panicking.

use gpu_run_cache::{Cache, Options as CacheOptions};
use gpu_run_compiler::Compiler;
use gpu_run_desktop::apps::{Apps, Listed, Running, Starter};
use gpu_run_desktop::event::{self as e, kinds};
use gpu_run_desktop::{Desktop, Options, Script, map};
use gpu_run_machine::{GridSize, Start};
use gpu_run_ui::wire::Record;
use gpu_run_ui::{Event, Ui};
use parking_lot::Mutex;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

static CACHE: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());
static COMPILER: LazyLock<Compiler> = LazyLock::new(|| {
    Compiler::new(Cache::open(CacheOptions { durable: false, ..CacheOptions::new(CACHE.path().to_owned()) }))
});

type App = fn(UnixStream) -> io::Result<()>;

/// Starts functions as apps, and keeps what is said to the user.
#[derive(Clone)]
struct Threads {
    apps: Vec<(&'static str, App)>,
    said: Arc<Mutex<Vec<String>>>,
    killed: Arc<Mutex<Vec<String>>>,
}

impl Starter for Threads {
    fn start(&self, name: &str, _: &[String], stream: UnixStream) -> Result<Box<dyn Running>, String> {
        let (_, app) = *self.apps.iter().find(|(known, _)| *known == name).ok_or("there is none")?;
        let killed = Killed(name.to_owned(), self.killed.clone(), stream.try_clone().unwrap());
        // Its end is closed when it ends, as a process's is, also if somebody else has it.
        let end = stream.try_clone().unwrap();
        thread::spawn(move || {
            let ended = app(stream);
            _ = end.shutdown(Shutdown::Both);
            ended
        });
        Ok(Box::new(killed))
    }

    fn say(&self, message: &str) {
        self.said.lock().push(message.to_owned());
    }
}

struct Killed(String, Arc<Mutex<Vec<String>>>, UnixStream);

impl Running for Killed {
    fn kill(&self) {
        self.1.lock().push(self.0.clone());
        // As a program that is stopped: nothing is open any more.
        _ = self.2.shutdown(Shutdown::Both);
    }
}

/// A desktop with these apps.
struct Desk {
    desktop: Desktop,
    apps: Apps,
    threads: Threads,
}

impl Desk {
    fn new(apps: &[(&'static str, App)]) -> Self {
        let options = Options { width: 640, height: 480, scale: 1.0, grid: GridSize::Groups(1), threads: Some(64) };
        let id = std::env::var("GPU_RUN_TEST_DEVICE").unwrap_or_else(|_| "cpu".to_owned());
        let device = gpu_run_device::open(&id).unwrap();
        let desktop = Desktop::boot(&COMPILER, &device, Start::Empty, &options).unwrap();
        let threads = Threads { apps: apps.to_vec(), said: Arc::default(), killed: Arc::default() };
        let listed = |(name, _): &(&str, App)| Listed { name: (*name).to_owned(), is_trusted: *name == "Trusted" };
        let apps = Apps::new(Box::new(|| true), Box::new(threads.clone()), apps.iter().map(listed).collect(), 100);
        Self { desktop, apps, threads }
    }

    fn run(&mut self, script: &str) {
        self.desktop.run_with(&Script::parse(script).unwrap(), &mut self.apps).unwrap();
    }

    /// Goes on until this holds.
    fn until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        for _ in 0..3000 {
            if holds(self) {
                return;
            }
            self.run("wait 10");
        }
        panic!("{what}: {:?}", self.threads.said.lock());
    }

    /// How many widgets there are.
    fn widgets(&self) -> u32 {
        self.desktop.word(map::D_COUNT).unwrap()
    }

    fn said(&self) -> String {
        self.threads.said.lock().join("\n")
    }
}

fn counter(stream: UnixStream) -> io::Result<()> {
    let ui = Ui::over(stream.into());
    let window = ui.window("Counter");
    let (count, more) = (window.label("so far 0"), window.button("One more"));
    let field = window.field("");
    let mut n = 0;
    while let Some(event) = ui.next()? {
        match event {
            Event::Clicked(widget) if widget == more => {
                n += 1;
                count.set_text(&format!("so far {n}"));
            }
            Event::Entered(widget, _) if widget == field => count.set_text(&format!("Hello {}", field.text()?)),
            Event::Closed(_) => break,
            _ => {}
        }
    }
    Ok(())
}

#[test]
fn an_app_makes_widgets_hears_of_them_and_asks_for_texts() {
    let mut desk = Desk::new(&[("Counter", counter)]);
    desk.run(
        "start Counter\nexpect \"so far 0\"\nkey tab\nkey enter\nexpect \"so far 1\"\nkey enter\nexpect \"so far 2\"",
    );
    desk.run("key tab\ntype \"you there\"\nkey enter\nexpect \"Hello you there\"");
    assert_eq!(desk.widgets(), 4);
    desk.run("key f4 alt");
    desk.until("the window is gone", |desk| desk.widgets() == 0);
    assert_eq!(desk.said(), "");
}

#[test]
fn an_app_that_ends_takes_its_windows_along_and_numbers_come_back() {
    fn brief(stream: UnixStream) -> io::Result<()> {
        let ui = Ui::over(stream.into());
        let window = ui.window("Brief");
        (0..200).for_each(|n| _ = window.row().label(&format!("{n}")));
        ui.status().map(drop)
    }
    let mut desk = Desk::new(&[("Brief", brief), ("Counter", counter)]);
    desk.run("start Counter\nexpect \"so far 0\"");
    for round in 0..5 {
        desk.run("start Brief");
        desk.until("it has ended", |desk| desk.threads.killed.lock().len() > round);
        desk.until("it is gone", |desk| desk.widgets() == 4);
    }
    assert!(desk.desktop.word(map::D_USED).unwrap() < 100 + 4 + 2 * 401);
    desk.run("key tab\nkey enter\nexpect \"so far 1\"");
}

#[test]
fn what_no_app_may_do_closes_it_and_nothing_else() {
    fn send(mut stream: UnixStream, record: Record) -> io::Result<()> {
        stream.write_all(&Record { kind: e::CREATE, key: 1, a: kinds::WINDOW, ..Record::default() }.to_bytes())?;
        stream.write_all(&record.to_bytes())?;
        stream.read_to_end(&mut Vec::new()).map(drop)
    }
    let press: App = |stream| send(stream, Record { kind: e::PRESS, ..Record::default() });
    let twice: App = |stream| send(stream, Record { kind: e::CREATE, key: 1, a: kinds::WINDOW, ..Record::default() });
    let resize: App = |stream| send(stream, Record { kind: e::RESIZE, a: 1, b: 1, key: 256, ..Record::default() });
    let vast: App = |stream| send(stream, Record { kind: gpu_run_ui::wire::START, a: u32::MAX, ..Record::default() });
    let mut desk =
        Desk::new(&[("Press", press), ("Twice", twice), ("Resize", resize), ("Vast", vast), ("Counter", counter)]);
    desk.run("start Counter\nexpect \"so far 0\"");
    for name in ["Press", "Twice", "Resize", "Vast"] {
        desk.run(&format!("start {name}"));
        desk.until("it is closed", |desk| desk.said().contains(&format!("{name} was closed: it ")));
        desk.until("its window is gone", |desk| desk.widgets() == 4);
    }
    assert_eq!(desk.desktop.word(map::D_WIDTH).unwrap(), 640);
    desk.run("key tab\nkey enter\nexpect \"so far 1\"");
}

#[test]
fn others_widgets_and_the_desktops_settings_are_out_of_reach() {
    fn meddle(stream: UnixStream) -> io::Result<()> {
        let ui = Ui::over(stream.try_clone()?.into());
        let window = ui.window("Meddler");
        window.label("meddled");
        ui.set_dark(true);
        ui.status()?;
        let mut stream = &stream;
        for key in (0..200).filter(|key| ![1, 2].contains(key)) {
            stream.write_all(&Record { kind: e::DESTROY, key, ..Record::default() }.to_bytes())?;
            stream.write_all(&Record { kind: e::TEXT, key, flags: e::TEXT_BEGINS, ..Record::default() }.to_bytes())?;
        }
        while ui.next()?.is_some() {}
        Ok(())
    }
    let mut desk = Desk::new(&[("Counter", counter), ("Meddler", meddle), ("Trusted", meddle)]);
    desk.run("start Counter\nexpect \"so far 0\"\nstart Meddler\nexpect \"meddled\"\nwait 100");
    assert_eq!(desk.widgets(), 6);
    assert_eq!(desk.desktop.word(map::D_THEME).unwrap(), 0);
    assert_eq!(desk.desktop.text(0).unwrap(), "Counter\nMeddler\nTrusted");
    desk.run("start Trusted\nwait 200");
    desk.until("it is dark", |desk| desk.desktop.word(map::D_THEME).unwrap() == 1);
}

#[test]
fn an_app_that_hangs_is_ended_when_its_window_is_closed() {
    fn hang(stream: UnixStream) -> io::Result<()> {
        let ui = Ui::over(stream.try_clone()?.into());
        ui.window("Hangs").button("Nothing");
        ui.status()?;
        thread::sleep(Duration::from_secs(600));
        Ok(())
    }
    let mut desk = Desk::new(&[("Hangs", hang)]);
    desk.run("start Hangs\nexpect \"Nothing\"\nkey f4 alt");
    assert_eq!(desk.widgets(), 0);
    desk.until("it is killed", |desk| desk.threads.killed.lock().contains(&"Hangs".to_owned()));
}

#[test]
fn an_app_that_floods_the_desktop_holds_up_no_other() {
    fn flood(stream: UnixStream) -> io::Result<()> {
        let ui = Ui::over(stream.into());
        let label = ui.window("Flood").label("flooded");
        loop {
            (0..10_000).for_each(|n| label.set_text(&n.to_string()));
            ui.status()?;
        }
    }
    let mut desk = Desk::new(&[("Flood", flood), ("Counter", counter)]);
    desk.run("start Flood\nwait 300\nstart Counter\nexpect \"so far 0\"");
    let clicks = "key enter\n".repeat(3);
    desk.run(&format!("key tab\n{clicks}expect \"so far 3\""));
    desk.apps.end();
}

#[test]
fn ticks_come_and_figures_are_there() {
    fn clock(stream: UnixStream) -> io::Result<()> {
        let ui = Ui::over(stream.into());
        let label = ui.window("Clock").label("");
        let mut ticks = 0;
        ui.tick_in(Duration::from_millis(5));
        while let Some(event) = ui.next()? {
            if event == Event::Tick {
                ticks += 1;
                let status = ui.status()?;
                let frames = status.iter().find(|(name, _)| name == "frames").map_or(0.0, |(_, value)| *value);
                label.set_text(&format!("ticks {ticks}, {}", if frames > 0.0 { "frames" } else { "none" }));
                ui.tick_in(Duration::from_millis(5));
            }
        }
        Ok(())
    }
    let mut desk = Desk::new(&[("Clock", clock)]);
    desk.run("start Clock\nexpect \"ticks 20, frames\"");
    desk.apps.end();
}
