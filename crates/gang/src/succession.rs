//! New code for a running gang: a successor continues with the image of the gang before it.
//!
//! A GPU loads no code while a kernel runs in its context, so a gang must stop before its successor can be loaded.
//! Everything else happens before, while the old gang runs: a [`Successor`] is compiled, its machine code is in host
//! memory, and its slots and its module's data are in device memory of its own. Only two things are left for
//! [`Successor::take_over`]: load the code, and copy the part of the image that lasts, on the device. Bus and report
//! stay where they are.
//!
//! Old memory and code cannot be freed while a kernel runs, either. So the gang that was replaced is kept: the next
//! successor uses its memory, and frees the rest of it when it takes over.

use crate::gang::{Gang, GangOptions, GangProgram};
use crate::memory::{GangMemory, HostChannels, gang_place};
use gpu_run_cache::Cache;
use gpu_run_compiler::Error;
use gpu_run_compiler::{Compiler, Request, Unloaded};
use gpu_run_device::Device;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

/// What a successor must know of the running gang. It is a copy, so that the successor can be prepared while another
/// thread holds the gang.
#[derive(Clone, Debug)]
pub struct Seat {
    device: Arc<dyn Device>,
    channels: HostChannels,
}

/// A gang that is ready to replace another one, except that its code is not loaded.
#[derive(Debug)]
pub struct Successor {
    cache: Arc<Cache>,
    request: Request,
    unloaded: Unloaded,
    device: Arc<dyn Device>,
    memory: GangMemory,
    /// The part of the image that it takes from the other gang.
    carried: Range<u64>,
    /// A gang that was replaced earlier, whose memory this one may use.
    spare: Option<Gang>,
}

impl Gang {
    pub fn seat(&self) -> Seat {
        Seat { device: self.program().device().clone(), channels: self.memory().channels.clone() }
    }
}

impl Successor {
    /// Compiles a module, or finds it in the cache, and prepares everything; nothing here waits for the running gang.
    /// `spare` is a gang that was replaced before, if there is one: it is taken once the module is known to compile,
    /// and its memory is used if it is large enough. `carried` is the part of the image that lasts; the rest begins
    /// with the module's data.
    pub fn prepare(
        compiler: &Compiler,
        seat: &Seat,
        wasm: Arc<Vec<u8>>,
        options: &GangOptions,
        name: &str,
        carried: Range<u64>,
        spare: &mut Option<Gang>,
    ) -> Result<Self, Error> {
        let device = seat.device.clone();
        let request = compiler.request(&device, wasm, &options.compile_options(), name)?;
        let unloaded = compiler.fetch(&request)?;
        let compiled = unloaded.compiled.clone();
        let bytes = GangMemory::bytes(&gang_place(&compiled)?);
        let fitting = spare.as_ref().map(|gang| gang.memory().buffer.clone()).filter(|buffer| buffer.len() >= bytes);
        let buffer = fitting.map_or_else(|| device.allocate_uncleared(bytes).map(Arc::new), Ok)?;
        let image = options.image_bytes;
        let end = carried.end.min(image);
        // The buffer has not been cleared.
        let cleared = [0..carried.start.min(end), end..image];
        let memory = GangMemory::new(&*device, &compiled, buffer, seat.channels.clone(), &cleared)?;
        if device.properties().overcommits {
            memory.touch()?;
        }
        let mut spare = spare.take();
        if let Some(gang) = &mut spare {
            gang.retire();
        }
        Ok(Self { cache: compiler.shared_cache(), request, unloaded, device, memory, carried, spare })
    }

    /// Loads the code and continues with the part `carried` of the other gang's image. No launch may be running.
    ///
    /// # Panics
    /// If that part is not inside both images.
    pub fn take_over(self, from: &Gang) -> Result<Gang, Error> {
        let Self { cache, request, unloaded, device, memory, carried, spare } = self;
        let inside =
            |memory: &GangMemory| carried.start <= carried.end && carried.end <= memory.place.sizes.image_bytes;
        assert!(inside(&memory) && inside(from.memory()), "{carried:?} is outside an image");
        let (to, at) = (memory.image_at() + carried.start, from.memory().image_at() + carried.start);
        let began = Instant::now();
        memory.buffer.copy_from(to, &from.memory().buffer, at, carried.end - carried.start)?;
        let copied = began.elapsed();
        let program = Arc::new(request.place(&cache, unloaded)?);
        let program = Arc::new(GangProgram { program, device, place: memory.place });
        let gang = Gang::of(program, memory)?;
        let loaded = began.elapsed() - copied;
        drop(spare);
        tracing::debug!(?copied, ?loaded, freed = ?began.elapsed() - copied - loaded, "took over a gang");
        Ok(gang)
    }
}
