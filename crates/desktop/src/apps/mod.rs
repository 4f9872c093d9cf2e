//! Apps: programs that run beside the desktop, on the same device, and have windows there (`crates/ui`).
//!
//! Each app has a stream to the desktop, of which it is given one end. Two threads of the host serve the other end: one reads commands,
//! and waits while the desktop has not taken the last ones; one writes ([`outbox`]). [`widgets`] says which widgets are whose. What an
//! app says takes effect in the next frame; what owners are told comes back after each.

mod app;
mod outbox;
mod widgets;

use crate::{Desktop, Owners, event, records};
use app::App;
use gpu_run_machine::Event;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Weak};
use widgets::Numbers;

/// Apps that run at once.
const MAX_APPS: usize = 64;

/// Runs programs beside the desktop.
pub trait Starter: Send + Sync {
    /// Starts an app, which is given this end of its stream. An error is a message for the user.
    fn start(&self, name: &str, args: &[String], stream: UnixStream) -> Result<Box<dyn Running>, String>;
    /// Tells the user something.
    fn say(&self, message: &str);
}

/// Has the desktop do a frame soon. Returns false if it has ended.
pub type Wake = Box<dyn Fn() -> bool + Send + Sync>;

/// A program that was started.
pub trait Running: Send + Sync {
    /// Ends it.
    fn kill(&self);
}

/// An app that can be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// What the menu says, and by which it is started.
    pub name: String,
    /// Whether it may change what is the desktop's: the palette, the size of everything, the rate.
    pub is_trusted: bool,
}

/// The apps of a desktop.
#[derive(Clone)]
pub struct Apps(Arc<Shared>);

struct Shared {
    wake: Wake,
    /// What the next frame takes before the commands of apps.
    posts: Mutex<Vec<Event>>,
    starter: Box<dyn Starter>,
    listed: Vec<Listed>,
    numbers: Mutex<Numbers>,
    running: Mutex<State>,
}

#[derive(Default)]
struct State {
    last: u32,
    apps: HashMap<u32, Arc<App>>,
}

impl std::fmt::Debug for Apps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Apps").field("listed", &self.0.listed).finish_non_exhaustive()
    }
}

impl Apps {
    /// Widgets of apps have numbers from `first` on.
    pub fn new(wake: Wake, starter: Box<dyn Starter>, listed: Vec<Listed>, first: u32) -> Self {
        let names = listed.iter().map(|app| app.name.as_str()).collect::<Vec<_>>().join("\n");
        let posts = Mutex::new(records::text(0, &names));
        let numbers = Mutex::new(Numbers::after(first));
        Self(Arc::new(Shared { wake, posts, starter, listed, numbers, running: Mutex::default() }))
    }

    /// Starts an app of the list.
    pub fn start(&self, name: &str, args: &[String]) {
        self.0.start(name, args);
    }

    /// Ends all apps.
    pub fn end(&self) {
        self.0.running.lock().apps.values().for_each(|app| app.kill());
    }
}

impl Shared {
    fn start(self: &Arc<Self>, name: &str, args: &[String]) {
        let Some(listed) = self.listed.iter().find(|app| app.name == name) else {
            return self.starter.say(&format!("an app wanted to start `{name}`, which is none of the desktop's apps"));
        };
        let mut state = self.running.lock();
        if state.apps.len() >= MAX_APPS {
            return self.starter.say(&format!("cannot start {name}: {MAX_APPS} apps are running"));
        }
        let started = UnixStream::pair()
            .map_err(|error| error.to_string())
            .and_then(|(ours, theirs)| Ok((ours, self.starter.start(name, args, theirs)?)));
        let (stream, running) = match started {
            Ok(started) => started,
            Err(error) => return self.starter.say(&format!("cannot start {name}: {error}")),
        };
        state.last += 1;
        let app = Arc::new(App::new(state.last, listed.clone(), running));
        state.apps.insert(app.id, app.clone());
        drop(state);
        app.serve(stream, self);
    }

    /// An app has ended, or is ended: its windows go.
    fn ended(&self, app: &App) {
        if self.running.lock().apps.remove(&app.id).is_none() {
            return;
        }
        let mut numbers = self.numbers.lock();
        let mut widgets = app.widgets.lock();
        let windows = widgets.windows();
        let destroy = |key: u32| Event { kind: event::DESTROY, key, ..Event::default() };
        // Whoever is given the numbers next says so after this.
        self.posts.lock().extend(windows.iter().copied().map(destroy));
        windows.into_iter().for_each(|window| widgets.forget(window, &mut numbers));
        drop((widgets, numbers));
        (self.wake)();
    }
}

impl Owners for Apps {
    fn events(&mut self, most: usize) -> Vec<Event> {
        let apps: Vec<Arc<App>> = self.0.running.lock().apps.values().cloned().collect();
        let mut posts = self.0.posts.lock();
        let own = posts.len().min(most);
        let mut events: Vec<Event> = posts.drain(..own).collect();
        let rest = !posts.is_empty();
        drop(posts);
        for app in apps {
            // What is the desktop's own comes first.
            let most = if rest { 0 } else { most - events.len() };
            events.extend(app.take(most));
        }
        events
    }

    fn told(&mut self, told: &[Event], desktop: &Desktop) {
        let apps = self.0.running.lock().apps.clone();
        for it in told {
            if it.kind == event::CHOSEN && it.key == 0 {
                if let Some(app) = self.0.listed.get(it.a as usize) {
                    self.0.start(&app.name, &[]);
                }
                continue;
            }
            if let Some(app) = apps.get(&it.b) {
                app.tell(it, &mut self.0.numbers.lock());
            }
        }
        apps.values().for_each(|app| app.answer(desktop));
    }
}

/// The way back from an app's threads, which do not keep the desktop.
type Back = Weak<Shared>;
