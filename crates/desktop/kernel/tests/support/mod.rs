//! A desktop on fibres of the host.
#![allow(dead_code)] // Each test uses a part of this.

use gpu_run_desktop_kernel::event::{self as e, properties as p};
use gpu_run_desktop_kernel::memory::*;
use gpu_run_desktop_kernel::{boot, frame};
use gpu_run_kernel::event::Event;
use gpu_run_kernel::gpu::{load, store, store64};
use gpu_run_kernel::layout::*;
use gpu_run_kernel::team::Team;
use gpu_run_kernel::twin::World;
use std::sync::Arc;

pub mod events;
pub mod random;

pub struct Desk {
    pub world: Arc<World>,
    pub groups: u32,
    pub threads: u32,
    pub ticks: u64,
    told: u32,
    waiting: Vec<Event>,
}

impl Desk {
    pub fn boot() -> Self {
        Self::of(1, 32)
    }

    /// A desktop whose workers are `groups` workgroups of `threads` threads.
    pub fn of(groups: u32, threads: u32) -> Self {
        let world = World::with_memory(DESKTOP_BYTES);
        world.launch(1, 32, || boot());
        Self { world, groups, threads, ticks: 0, told: 0, waiting: Vec::new() }
    }

    pub fn post(&mut self, event: Event) {
        self.waiting.push(event);
    }

    /// Does a tick with the events that were posted; several ticks, if they do not fit into one.
    pub fn tick(&mut self) {
        let mut events = std::mem::take(&mut self.waiting);
        while events.len() > STAGED_MAX as usize {
            let rest = events.split_off(STAGED_MAX as usize);
            self.tick_with(&std::mem::replace(&mut events, rest));
        }
        self.tick_with(&events);
    }

    fn tick_with(&mut self, events: &[Event]) {
        self.world.look(|| {
            for (i, event) in events.iter().enumerate() {
                for (word, value) in event.pack().into_iter().enumerate() {
                    store64(X_STAGED + i as u32 * RING_LINE + word as u32 * 8, value);
                }
            }
            store(S_COMMAND_FROM, X_STAGED);
            store(S_COMMAND_STAGED, events.len() as u32);
            store(S_COMMAND_TAKEN, self.told);
            store64(S_COMMAND_NUMBER, self.ticks);
        });
        let groups = self.groups;
        self.world.launch(groups, self.threads, move || frame::tick(&Team::new(groups)));
        self.ticks += 1;
    }

    /// Does ticks until nothing moves any more.
    pub fn settle(&mut self) {
        self.tick();
        while self.word(D_MOVING) != 0 {
            self.tick();
        }
    }

    pub fn word(&self, at: u32) -> u32 {
        self.world.look(|| load(at))
    }

    pub fn of_widget(&self, field: u32, widget: u32) -> u32 {
        self.word(field + widget * 4)
    }

    pub fn number(&self, field: u32, widget: u32) -> f32 {
        f32::from_bits(self.of_widget(field, widget))
    }

    pub fn post_all(&mut self, events: impl IntoIterator<Item = Event>) {
        self.waiting.extend(events);
    }

    pub fn create(&mut self, widget: u32, kind: u32, parent: u32) {
        self.post(events::create(widget, kind, parent));
    }

    pub fn destroy(&mut self, widget: u32) {
        self.post(events::destroy(widget));
    }

    pub fn set(&mut self, widget: u32, property: u32, value: f32) {
        self.post(events::set(widget, property, value));
    }

    pub fn set_word(&mut self, widget: u32, property: u32, value: u32) {
        self.post(events::set_word(widget, property, value));
    }

    pub fn text(&mut self, widget: u32, text: &str) {
        self.post_all(events::text(widget, text));
    }

    pub fn resize(&mut self, width: u32, height: u32, scale: f32) {
        self.post(events::resize(width, height, scale));
    }

    pub fn pointer(&mut self, kind: u16, x: f32, y: f32) {
        self.post(events::pointer(kind, x, y));
    }

    /// Clicks, over three ticks.
    pub fn click(&mut self, x: f32, y: f32) {
        for kind in [e::MOVE, e::PRESS, e::RELEASE] {
            self.pointer(kind, x, y);
            self.tick();
        }
    }

    /// The middle of a widget, in units.
    pub fn middle(&self, widget: u32) -> (f32, f32) {
        let at = |at: u32, size: u32| self.number(at, widget) + self.number(size, widget) / 2.0;
        (at(W_AT_X, W_W), at(W_AT_Y, W_H))
    }

    pub fn key(&mut self, key: u32, with: u32) {
        self.post(Event { kind: e::KEY, key, a: with, ..Event::default() });
        self.tick();
    }

    pub fn type_text(&mut self, text: &str) {
        for c in text.chars() {
            self.post(Event { kind: e::TYPE, key: c as u32, ..Event::default() });
        }
        self.tick();
    }

    pub fn text_of(&self, widget: u32) -> String {
        let mut text = String::new();
        self.world.look(|| {
            gpu_run_desktop_kernel::text::each(widget, |_, code| text.push(char::from_u32(code).unwrap()));
        });
        text
    }

    /// What owners were told since the last call: kind, widget, value.
    pub fn told(&mut self) -> Vec<(u16, u32, u32)> {
        self.told_events().iter().map(|event| (event.kind, event.key, event.a)).collect()
    }

    pub fn told_events(&mut self) -> Vec<Event> {
        use gpu_run_kernel::tagged::{are_tagged, lap_tag};
        let mut told = Vec::new();
        loop {
            let at = OUT_RING + self.told % OUT_CAPACITY * RING_LINE;
            let words = [0, 8, 16, 24].map(|word| self.world.bus_word(at + word));
            if !are_tagged(&words, lap_tag(self.told, OUT_CAPACITY)) {
                return told;
            }
            told.push(Event::unpack(words));
            self.told += 1;
        }
    }

    pub fn size(&self) -> (u32, u32) {
        (self.word(D_WIDTH), self.word(D_HEIGHT))
    }

    pub fn pixels(&self) -> Vec<u32> {
        let (width, height) = self.size();
        let words = self.world.words(PIXELS, PIXELS + (width * height * 4).next_multiple_of(8));
        let halves = words.iter().flat_map(|word| [*word as u32, (*word >> 32) as u32]);
        halves.take((width * height) as usize).collect()
    }

    /// The state, as a checkpoint has it.
    pub fn state(&self) -> Vec<u64> {
        let mut state = self.world.state();
        state.extend(self.world.words(ROOM, ROOM_END));
        state
    }

    /// A desktop with the same state and fresh scratch, as after a restart.
    pub fn resumed(&self) -> Self {
        let world = World::with_memory(DESKTOP_BYTES);
        world.set_words(STATE, &self.world.state());
        world.set_words(ROOM, &self.world.words(ROOM, ROOM_END));
        Self { world, groups: self.groups, threads: self.threads, ticks: self.ticks, told: 0, waiting: Vec::new() }
    }

    /// A window with one widget of each kind, from number `first` on.
    pub fn furnish(&mut self, first: u32, x: f32, y: f32) {
        use e::kinds::*;
        self.create(first, WINDOW, 0);
        self.text(first, &format!("Window {first}"));
        for (property, value) in [(p::LEFT, x), (p::TOP, y), (p::WIDTH, 320.0), (p::HEIGHT, 340.0)] {
            self.set(first, property, value);
        }
        for (i, kind) in [LABEL, BUTTON, CHECKBOX, RADIO, RADIO, SLIDER, FIELD, PROGRESS, PANEL].into_iter().enumerate()
        {
            let widget = first + 1 + i as u32;
            self.create(widget, kind, first);
            self.text(widget, "Quick brown fox");
        }
        self.set_word(first + 9, p::LOOK, e::looks::STRONG);
        self.set(first + 9, p::GROW, 1.0);
        self.set(first + 6, p::VALUE, 0.3);
        self.set(first + 8, p::VALUE, 0.6);
    }
}
