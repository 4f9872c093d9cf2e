//! A list of things to do, kept in the file `todo.txt`.
//!
//! cargo build --release --target wasm32-wasip1 --example todo
//! gpu-run desktop --dir . target/wasm32-wasip1/release/examples/todo.wasm

use gpu_run_ui::{Event, Icon, Ui, Widget};
use std::fs;
use std::io;

const FILE: &str = "todo.txt";

struct Todo {
    /// Each with whether it is done.
    things: Vec<(bool, String)>,
    list: Widget,
    done: Widget,
    said: Widget,
    chosen: Option<usize>,
}

fn main() -> io::Result<()> {
    let ui = Ui::connect()?;
    let window = ui.window("To do").width(380.0).height(420.0);
    let bar = window.row().gap(8.0);
    let new = bar.field("").grow(1.0);
    let add = bar.button("Add").icon(Icon::Plus).strong();
    let list = window.list(&[]).grow(1.0);
    let row = window.row().gap(8.0);
    let toggle = row.button("Done").tooltip("Marks the chosen thing, or takes the mark back");
    let remove = row.button("Remove").icon(Icon::Close).quiet();
    let done = window.progress();
    let said = window.label("").quiet();
    new.focus();

    let mut todo = Todo { things: load(), list: list.clone(), done, said, chosen: None };
    todo.show();
    while let Some(event) = ui.next()? {
        match event {
            Event::Clicked(widget) if widget == add => todo.add(&new)?,
            Event::Entered(widget, _) if widget == new => todo.add(&new)?,
            Event::Chosen(widget, at) if widget == list => todo.chosen = Some(at),
            Event::Entered(widget, at) if widget == list => todo.toggle(Some(at)),
            Event::Clicked(widget) if widget == toggle => todo.toggle(todo.chosen),
            Event::Clicked(widget) if widget == remove => todo.remove(),
            Event::Closed(_) => break,
            _ => {}
        }
    }
    Ok(())
}

fn load() -> Vec<(bool, String)> {
    let text = fs::read_to_string(FILE).unwrap_or_default();
    let thing = |line: &str| match line.strip_prefix("x ") {
        Some(thing) => (true, thing.to_owned()),
        None => (false, line.trim_start_matches("- ").to_owned()),
    };
    text.lines().map(thing).collect()
}

impl Todo {
    fn add(&mut self, field: &Widget) -> io::Result<()> {
        let text = field.text()?;
        if !text.trim().is_empty() {
            self.things.push((false, text));
            field.set_text("");
            self.changed();
        }
        Ok(())
    }

    fn toggle(&mut self, at: Option<usize>) {
        if let Some((done, _)) = at.and_then(|at| self.things.get_mut(at)) {
            *done = !*done;
            self.changed();
        }
    }

    fn remove(&mut self) {
        if let Some(at) = self.chosen.take().filter(|at| *at < self.things.len()) {
            self.things.remove(at);
            self.changed();
        }
    }

    fn changed(&mut self) {
        let line = |(done, thing): &(bool, String)| format!("{} {thing}\n", if *done { 'x' } else { '-' });
        let saved = fs::write(FILE, self.things.iter().map(line).collect::<String>());
        self.show();
        if let Err(error) = saved {
            self.said.set_text(&format!("Cannot save {FILE}: {error}"));
        }
    }

    fn show(&self) {
        let row = |(done, thing): &(bool, String)| format!("{} {thing}", if *done { "•" } else { "–" });
        self.list.set_text(&self.things.iter().map(row).collect::<Vec<_>>().join("\n"));
        self.list.select(self.chosen);
        let (all, done) = (self.things.len(), self.things.iter().filter(|thing| thing.0).count());
        self.done.set_value(if all > 0 { done as f32 / all as f32 } else { 0.0 });
        self.said.set_text(&format!("{done} of {all} done"));
    }
}
