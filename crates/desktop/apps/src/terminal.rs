//! A terminal: runs programs, and shows what they print as it comes.

use gpu_run_ui::{Event, Icon, Ui, Widget};
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How often a program that runs is looked at.
const PERIOD: Duration = Duration::from_millis(30);
/// The most characters that are shown; of more, the last half stays.
const MAX_SHOWN: usize = 60_000;

const HELP: &str = "\
Runs programs: those of --program by their names, and .wasm files by their paths.
  cd FOLDER   goes to a folder        ls [FOLDER]  lists one
  cat FILE    shows a file            clear        clears the screen
  help        shows this              exit         closes the terminal
While a program runs, what is entered goes to its standard input.
";

struct Terminal {
    output: Widget,
    shown: String,
    folder: String,
    running: Option<Running>,
}

struct Running {
    child: Child,
    name: String,
}

pub fn run(ui: &Ui, _: &[String]) -> io::Result<()> {
    let window = ui.window("Terminal").width(600.0).height(400.0);
    let output = window.area("").read_only().grow(1.0);
    output.scroll_to_end();
    let bar = window.row().gap(8.0);
    let line = bar.field("").grow(1.0);
    let stop = bar.button("Stop").icon(Icon::Stop);
    stop.set_disabled(true);
    line.focus();
    let mut terminal = Terminal { output, shown: String::new(), folder: ".".to_owned(), running: None };
    terminal.print("A program's name or path starts it. `help` says more.\n");
    while let Some(event) = ui.next()? {
        match event {
            Event::Entered(widget, _) if widget == line => {
                let text = line.text()?;
                line.set_text("");
                if !terminal.enter(&text) {
                    break;
                }
                stop.set_disabled(terminal.running.is_none());
                ui.tick_in(PERIOD);
            }
            Event::Clicked(widget) if widget == stop => {
                if let Some(running) = &mut terminal.running {
                    // It may have ended meanwhile.
                    _ = running.child.kill();
                }
            }
            Event::Tick => {
                if terminal.look() {
                    ui.tick_in(PERIOD);
                } else {
                    stop.set_disabled(true);
                }
            }
            Event::Closed(_) => break,
            _ => {}
        }
    }
    if let Some(mut running) = terminal.running {
        _ = running.child.kill();
    }
    Ok(())
}

impl Terminal {
    fn print(&mut self, text: &str) {
        // Other control characters have no picture.
        let text = text.replace(|c: char| c < ' ' && c != '\n' && c != '\t', "");
        self.shown += &text;
        if self.shown.len() <= MAX_SHOWN {
            return self.output.add_text(&text);
        }
        let half = (MAX_SHOWN / 2..).find(|at| self.shown.is_char_boundary(*at)).unwrap_or(0);
        self.shown.drain(..half);
        self.output.set_text(&self.shown);
    }

    /// Takes a line. Returns false if the terminal is to be closed.
    fn enter(&mut self, line: &str) -> bool {
        if let Some(running) = &mut self.running {
            if let Some(stdin) = &mut running.child.stdin {
                // A program that has ended reads nothing.
                _ = stdin.write_all(format!("{line}\n").as_bytes());
            }
            self.print(&format!("{line}\n"));
            return true;
        }
        self.print(&format!("{} $ {line}\n", self.folder));
        let words = words(line);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let done = match words.as_slice() {
            [] => Ok(()),
            ["exit"] => return false,
            ["help"] => {
                self.print(HELP);
                Ok(())
            }
            ["clear"] => {
                self.shown.clear();
                self.output.set_text("");
                Ok(())
            }
            ["cd", folder] => self.go(folder),
            ["ls"] => self.list("."),
            ["ls", folder] => self.list(folder),
            ["cat", file] => fs::read(self.path(file)).map(|bytes| self.print(&String::from_utf8_lossy(&bytes))),
            [program, args @ ..] => self.start(program, args),
        };
        if let Err(error) = done {
            self.print(&format!("{}: {error}\n", words.first().unwrap_or(&"")));
        }
        true
    }

    fn path(&self, name: &str) -> String {
        if name.starts_with('/') { name.to_owned() } else { format!("{}/{name}", self.folder) }
    }

    fn go(&mut self, folder: &str) -> io::Result<()> {
        let path = self.path(folder);
        if !fs::metadata(&path)?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        // Without `..` and `.`, so that the line stays short.
        let mut parts: Vec<&str> = Vec::new();
        for part in path.split('/') {
            match part {
                "" | "." => {}
                ".." if parts.last().is_some_and(|last| *last != "..") => _ = parts.pop(),
                part => parts.push(part),
            }
        }
        let joined = parts.join("/");
        self.folder = match (path.starts_with('/'), joined.is_empty()) {
            (true, _) => format!("/{joined}"),
            (false, true) => ".".to_owned(),
            (false, false) => joined,
        };
        Ok(())
    }

    fn list(&mut self, folder: &str) -> io::Result<()> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.path(folder))? {
            let entry = entry?;
            let mark = if entry.file_type()?.is_dir() { "/" } else { "" };
            names.push(entry.file_name().to_string_lossy().into_owned() + mark);
        }
        names.sort();
        self.print(&names.iter().map(|name| format!("{name}\n")).collect::<String>());
        Ok(())
    }

    fn start(&mut self, program: &str, args: &[&str]) -> io::Result<()> {
        let is_path = program.contains('/') || program.ends_with(".wasm");
        let file = if is_path { self.path(program) } else { program.to_owned() };
        let mut command = Command::new(file);
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if self.folder != "." {
            command.current_dir(&self.folder);
        }
        let child = command.spawn()?;
        // What has nothing to read must not keep the window waiting.
        for stream in [child.stdout.as_ref().map(AsRawFd::as_raw_fd), child.stderr.as_ref().map(AsRawFd::as_raw_fd)] {
            let stream = stream.unwrap_or(-1) as u32;
            // SAFETY: this changes how our end of a pipe is read, and no memory.
            unsafe { wasip1::fd_fdstat_set_flags(stream, wasip1::FDFLAGS_NONBLOCK) }
                .map_err(|errno| io::Error::from_raw_os_error(errno.raw().into()))?;
        }
        self.running = Some(Running { child, name: program.to_owned() });
        Ok(())
    }

    /// Shows what came from the program. Returns whether it still runs.
    fn look(&mut self) -> bool {
        let Some(mut running) = self.running.take() else { return false };
        let ended = running.child.try_wait();
        let mut text = String::new();
        if let Some(stdout) = &mut running.child.stdout {
            text += &come(stdout);
        }
        if let Some(stderr) = &mut running.child.stderr {
            text += &come(stderr);
        }
        if !text.is_empty() {
            self.print(&text);
        }
        match ended {
            Ok(None) => {
                self.running = Some(running);
                true
            }
            Ok(Some(status)) => {
                if !status.success() {
                    self.print(&format!("{}: {status}\n", running.name));
                }
                false
            }
            Err(error) => {
                self.print(&format!("{}: {error}\n", running.name));
                false
            }
        }
    }
}

/// Returns what can be read without waiting.
fn come(stream: &mut impl Read) -> String {
    let (mut all, mut piece) = (Vec::new(), [0; 4096]);
    // A program that prints without end has its turn again soon.
    while all.len() < MAX_SHOWN {
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => break,
            Ok(count) => all.extend_from_slice(&piece[..count]),
        }
    }
    String::from_utf8_lossy(&all).into_owned()
}

/// Splits a line into words. Quotes keep spaces.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match (c, quote) {
            ('"' | '\'', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (c, Some(q)) if c == q => quote = None,
            (' ' | '\t', None) => words.extend(word.take()),
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}
