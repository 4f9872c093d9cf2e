//! A machine on the host's own threads, talked to as the host talks to a device.

use fastrand::Rng;
use gpu_run_kernel::event::Event;
use gpu_run_kernel::layout::*;
use gpu_run_kernel::tagged::{are_tagged, lap_tag};
use gpu_run_kernel::twin::World;
use std::sync::Arc;

pub struct Twin {
    pub world: Arc<World>,
    posted: u32,
    out: u32,
}

impl Twin {
    pub fn boot() -> Self {
        let world = World::new();
        world.launch(1, 32, || gpu_run_kernel::boot());
        world.set_bus_word(CONTROL + C_SLEEP * 8, 1000);
        Self { world, posted: 0, out: 0 }
    }

    pub fn post(&mut self, event: Event) {
        let at = IN_RING + self.posted % IN_CAPACITY * RING_LINE;
        for (word, value) in event.pack().into_iter().enumerate() {
            self.world.set_bus_word(at + word as u32 * 8, value | lap_tag(self.posted, IN_CAPACITY));
        }
        self.posted += 1;
    }

    /// Does ticks, up to this one, in one launch.
    pub fn run_to(&mut self, tick: u64, workers: u32, threads: u32) {
        let now = self.tick();
        self.world.set_bus_word(CONTROL + C_LIMIT * 8, tick);
        self.world.set_bus_word(CONTROL + C_TICKS * 8, tick - now);
        self.world.launch(workers + 1, threads, || gpu_run_kernel::run());
        assert_eq!(self.tick(), tick);
    }

    pub fn tick(&self) -> u64 {
        self.world.look(|| gpu_run_kernel::gpu::load64(H_TICK))
    }

    pub fn word(&self, at: u32) -> u32 {
        self.world.look(|| gpu_run_kernel::gpu::load(at))
    }

    pub fn replies(&mut self) -> Vec<Event> {
        read_ring(&self.world, OUT_RING, OUT_CAPACITY, &mut self.out)
    }
}

pub fn read_ring(world: &World, ring: u32, capacity: u32, from: &mut u32) -> Vec<Event> {
    let mut events = Vec::new();
    loop {
        let at = ring + *from % capacity * RING_LINE;
        let words = [0, 8, 16, 24].map(|word| world.bus_word(at + word));
        if !are_tagged(&words, lap_tag(*from, capacity)) {
            return events;
        }
        events.push(Event::unpack(words));
        *from += 1;
    }
}

/// A size up to a power of two, small ones as often as large ones.
pub fn size(random: &mut Rng, least: u32, more: u32) -> u32 {
    let limit = 1 << (least + random.u32(..more));
    1 + random.u32(..limit)
}
