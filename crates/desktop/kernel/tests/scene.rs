//! The scene that devices are compared with, on the twin.

mod support;

use gpu_run_desktop_kernel::event::{self as e, properties as p};
use gpu_run_kernel::event::Event;
use support::Desk;

include!("support/scene.rs");

#[test]
fn the_scene_has_its_pixels() {
    let mut desk = Desk::boot();
    for events in frames() {
        events.into_iter().for_each(|event| desk.post(event));
        desk.tick();
    }
    assert_eq!(desk.size(), (WIDTH, HEIGHT));
    let found = hash(desk.pixels().iter().flat_map(|pixel| pixel.to_le_bytes()));
    assert_eq!(found, HASH, "{found:#018x}");
}
