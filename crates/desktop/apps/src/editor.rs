//! A text editor that opens and saves.

use gpu_run_ui::{Event, Icon, Ui, Widget};
use std::fs;
use std::io;

/// The largest file that is opened, in bytes.
const MAX_FILE: u64 = 256 << 10;

struct Editor {
    window: Widget,
    path: Widget,
    text: Widget,
    said: Widget,
    /// The file whose text is shown, and whether it was changed since.
    opened: Option<String>,
    is_changed: bool,
}

pub fn run(ui: &Ui, args: &[String]) -> io::Result<()> {
    let window = ui.window("Editor").width(560.0).height(440.0);
    let bar = window.row().gap(8.0);
    let path = bar.field(args.first().map_or("", String::as_str)).grow(1.0);
    let open = bar.button("Open").icon(Icon::Folder);
    let save = bar.button("Save").icon(Icon::Save).strong();
    let text = window.area("").grow(1.0);
    let said = window.label("A file's path, and Open. Save writes it; a new path makes a new file.").quiet();
    let mut editor = Editor {
        window: window.clone(),
        path: path.clone(),
        text: text.clone(),
        said,
        opened: None,
        is_changed: false,
    };
    if !args.is_empty() {
        editor.open()?;
    }
    while let Some(event) = ui.next()? {
        match event {
            Event::Clicked(widget) if widget == open => editor.open()?,
            Event::Entered(widget, _) if widget == path => editor.open()?,
            Event::Clicked(widget) if widget == save => editor.save()?,
            Event::Changed(widget, _) if widget == text && !editor.is_changed => {
                editor.is_changed = true;
                editor.title();
            }
            Event::Closed(_) => break,
            _ => {}
        }
    }
    Ok(())
}

impl Editor {
    fn open(&mut self) -> io::Result<()> {
        let path = self.path.text()?;
        match read(&path) {
            Ok(text) => {
                self.text.set_text(&text);
                self.said.set_text(&format!("{} lines", text.lines().count()));
                self.opened = Some(path);
                self.is_changed = false;
                self.title();
                self.text.focus();
            }
            Err(why) => self.said.set_text(&format!("Cannot open {path}: {why}")),
        }
        Ok(())
    }

    fn save(&mut self) -> io::Result<()> {
        let (path, text) = (self.path.text()?, self.text.text()?);
        // What stands in an existing file that was not opened here is not lost by a click.
        if self.opened.as_ref() != Some(&path) && fs::exists(&path).unwrap_or(false) {
            self.said.set_text(&format!("{path} exists, and is not what is shown here: open it first"));
            return Ok(());
        }
        match write(&path, &text) {
            Ok(()) => {
                self.said.set_text(&format!("Saved {} bytes", text.len()));
                self.opened = Some(path);
                self.is_changed = false;
                self.title();
            }
            Err(error) => self.said.set_text(&format!("Cannot save {path}: {error}")),
        }
        Ok(())
    }

    fn title(&self) {
        let mark = if self.is_changed { " *" } else { "" };
        let name = self.opened.as_deref().unwrap_or("new");
        self.window.set_text(&format!("{name}{mark} – Editor"));
    }
}

fn read(path: &str) -> Result<String, String> {
    let about = fs::metadata(path).map_err(|error| error.to_string())?;
    if about.len() > MAX_FILE {
        return Err(format!("it is larger than {} KiB", MAX_FILE >> 10));
    }
    let text = fs::read(path).map_err(|error| error.to_string())?;
    let text = String::from_utf8(text).map_err(|_| "it is not text in UTF-8".to_owned())?;
    // What the desktop cannot show would be lost by saving.
    match text.chars().find(|c| *c as u32 > 0xFFFF || (*c < ' ' && !matches!(c, '\n' | '\t'))) {
        Some(c) => Err(format!("it has the character {c:?}, which the desktop's text cannot keep")),
        None => Ok(text),
    }
}

/// Writes beside the file first: what was there is lost only when the new text is whole.
fn write(path: &str, text: &str) -> io::Result<()> {
    let beside = format!("{path}.saving");
    fs::write(&beside, text)?;
    fs::rename(&beside, path).inspect_err(|_| _ = fs::remove_file(&beside))
}
