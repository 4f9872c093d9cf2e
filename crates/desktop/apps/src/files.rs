//! A browser of the folders that the desktop was given.

use gpu_run_ui::{Event, Icon, Ui, Widget};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

const COLUMNS: [&str; 3] = ["Name", "Size", "Changed"];
/// The most entries of a folder that are shown.
const MAX_SHOWN: usize = 2000;

struct Files {
    at: PathBuf,
    entries: Vec<Entry>,
    table: Widget,
    place: Widget,
    said: Widget,
}

struct Entry {
    name: String,
    is_folder: bool,
    size: u64,
    changed: Option<SystemTime>,
}

pub fn run(ui: &Ui, args: &[String]) -> io::Result<()> {
    let window = ui.window("Files").width(520.0).height(420.0);
    let bar = window.row().gap(6.0);
    let home = bar.button("").icon(Icon::Home).quiet().tooltip("The first folder");
    let up = bar.button("").icon(Icon::Up).quiet().tooltip("The folder above");
    let again = bar.button("").icon(Icon::Refresh).quiet().tooltip("Read again");
    let place = bar.field("").grow(1.0);
    let table = window.table(&COLUMNS).grow(1.0);
    let said = window.label("").quiet();
    let begin = PathBuf::from(args.first().map_or(".", String::as_str));
    let mut files = Files { at: begin.clone(), entries: Vec::new(), table: table.clone(), place: place.clone(), said };
    files.go(begin.clone());
    while let Some(event) = ui.next()? {
        match event {
            Event::Clicked(widget) if widget == home => files.go(begin.clone()),
            Event::Clicked(widget) if widget == up => {
                let above = files.at.parent().filter(|above| !above.as_os_str().is_empty()).map(Path::to_owned);
                files.go(above.unwrap_or_else(|| begin.clone()));
            }
            Event::Clicked(widget) if widget == again => files.go(files.at.clone()),
            Event::Entered(widget, _) if widget == place => files.go(PathBuf::from(place.text()?)),
            Event::Entered(widget, row) if widget == table => files.open(ui, row),
            Event::Closed(_) => break,
            _ => {}
        }
    }
    Ok(())
}

impl Files {
    /// Shows a folder. If it cannot be read, the last one stays.
    fn go(&mut self, to: PathBuf) {
        let mut entries = match read(&to) {
            Ok(entries) => entries,
            Err(error) => return self.said.set_text(&format!("Cannot read {}: {error}", to.display())),
        };
        entries.sort_by(|a, b| b.is_folder.cmp(&a.is_folder).then_with(|| a.name.cmp(&b.name)));
        let (all, folders) = (entries.len(), entries.iter().filter(|entry| entry.is_folder).count());
        entries.truncate(MAX_SHOWN);
        let row = |entry: &Entry| {
            let (name, size) = match entry.is_folder {
                true => (format!("{}/", entry.name), String::new()),
                false => (entry.name.clone(), size(entry.size)),
            };
            vec![one_line(&name), size, entry.changed.map_or(String::new(), ago)]
        };
        self.table.set_rows(&COLUMNS, &entries.iter().map(row).collect::<Vec<_>>());
        self.place.set_text(&one_line(&to.to_string_lossy()));
        let cut = if all > MAX_SHOWN { format!("; the first {MAX_SHOWN} are shown") } else { String::new() };
        self.said.set_text(&format!("{folders} folders, {} files{cut}", all - folders));
        (self.at, self.entries) = (to, entries);
    }

    fn open(&mut self, ui: &Ui, row: usize) {
        let Some(entry) = self.entries.get(row) else { return };
        let path = self.at.join(&entry.name);
        match (entry.is_folder, path.to_str()) {
            (true, _) => self.go(path),
            (false, Some(path)) => ui.start("Editor", &[path]),
            (false, None) => self.said.set_text("The name of this file is no text"),
        }
    }
}

fn read(folder: &Path) -> io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        // What went away meanwhile, or cannot be looked at, is listed by its name.
        let about = fs::metadata(entry.path()).ok();
        entries.push(Entry {
            name: entry.file_name().to_string_lossy().into_owned(),
            is_folder: about.as_ref().is_some_and(fs::Metadata::is_dir),
            size: about.as_ref().map_or(0, fs::Metadata::len),
            changed: about.and_then(|about| about.modified().ok()),
        });
    }
    Ok(entries)
}

/// A name may have line ends and tabulators, which would be rows and cells.
fn one_line(name: &str) -> String {
    name.replace(|c: char| c < ' ', "?")
}

fn size(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} B"),
        10_000..10_000_000 => format!("{} KB", bytes / 1000),
        10_000_000..10_000_000_000 => format!("{} MB", bytes / 1_000_000),
        _ => format!("{} GB", bytes / 1_000_000_000),
    }
}

fn ago(time: SystemTime) -> String {
    let seconds = time.elapsed().map_or(0, |time| time.as_secs());
    match seconds {
        0..60 => "now".to_owned(),
        60..3600 => format!("{} min ago", seconds / 60),
        3600..86_400 => format!("{} h ago", seconds / 3600),
        _ => format!("{} days ago", seconds / 86_400),
    }
}
