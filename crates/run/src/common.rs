//! What the instances of a run have in common, for programs that ask for it ([`gpu_run_abi::guest`]): how many they are, the
//! buffer they share, the picture they draw.
//!
//! The memory stays from the first launch to the last one, whatever stage an instance runs on.

use gpu_run_abi::Launch;
use gpu_run_abi::guest::{PICTURE_HEAD, PIXEL};
use gpu_run_compiler::{Error, Program};
use gpu_run_device::{Buffer, Device};

/// What instances can ask for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Common {
    /// The number of the first instance, and how many there are; `None` if that is not known.
    pub first: u64,
    pub instances: Option<u64>,
    /// Bytes of the buffer that they share.
    pub shared_bytes: u64,
    /// The most pixels of the picture that they draw; 0 if nobody wants one.
    pub picture_pixels: u64,
    /// What `time` returns.
    pub seconds: f64,
}

impl Common {
    /// Bytes of the shared buffer, unless others are asked for.
    pub const SHARED_BYTES: u64 = 64 << 10;
    /// The most pixels of a picture: 256 MiB of device memory.
    pub const MAX_PIXELS: u64 = 64 << 20;
}

impl Default for Common {
    fn default() -> Self {
        Self { first: 0, instances: None, shared_bytes: Self::SHARED_BYTES, picture_pixels: 0, seconds: 0.0 }
    }
}

/// [`Common`], on a device.
#[derive(Debug)]
pub struct CommonMemory {
    common: Common,
    shared: Option<Buffer>,
    picture: Option<Buffer>,
}

/// Pixels that are read from the device at once.
const PIECE: u64 = 1 << 20;

/// What instances have drawn: three bytes for each pixel, row by row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    pub width: u32,
    pub height: u32,
    pub rgb: Vec<u8>,
}

impl CommonMemory {
    /// Allocates it on the program's device, if the program ever asks for it. The memory is zero.
    pub fn new(program: &Program, common: Common) -> Result<Self, Error> {
        let (device, asks) = (program.device(), program.compiled().asks_device);
        let shared = match common.shared_bytes {
            1.. if asks => Some(device.allocate(common.shared_bytes)?),
            _ => None,
        };
        let picture = match common.picture_pixels {
            pixels @ 1.. if asks => Some(device.allocate(PICTURE_HEAD + pixels * PIXEL)?),
            _ => None,
        };
        Ok(Self { common, shared, picture })
    }

    /// Returns what instances get on another device, where this memory is not: a shared buffer of no bytes, so that using it
    /// traps, and a picture without room for a pixel, if one is wanted.
    pub(crate) fn elsewhere(&self, device: &dyn Device) -> Result<Self, Error> {
        let common = Common { picture_pixels: 0, ..self.common };
        let picture = self.picture.as_ref().map(|_| device.allocate(PICTURE_HEAD)).transpose()?;
        Ok(Self { common, shared: None, picture })
    }

    /// Adds it to what a launch gives its instances.
    pub(crate) fn describe(&self, launch: &Launch) -> Launch {
        let place = |buffer: &Option<Buffer>| buffer.as_ref().map_or(0, Buffer::address);
        Launch {
            instances: self.common.instances.unwrap_or(0),
            shared: place(&self.shared),
            shared_bytes: self.shared.as_ref().map_or(0, |_| self.common.shared_bytes),
            picture: place(&self.picture),
            picture_pixels: self.picture.as_ref().map_or(0, |_| self.common.picture_pixels),
            time: self.common.seconds.to_bits(),
            ..*launch
        }
    }

    pub(crate) fn first(&self) -> u64 {
        self.common.first
    }

    /// Returns the picture, if instances began one.
    pub fn picture(&self) -> Result<Option<Picture>, Error> {
        let Some(buffer) = &self.picture else { return Ok(None) };
        let mut sides = [0u32; 2];
        buffer.read(0, bytemuck::cast_slice_mut(&mut sides))?;
        let [width, height] = sides;
        let count = u64::from(width) * u64::from(height);
        if count == 0 || count > self.common.picture_pixels {
            return Ok(None);
        }
        let mut rgb = Vec::with_capacity(3 * count as usize);
        let mut piece = vec![0u32; count.min(PIECE) as usize];
        for first in (0..count).step_by(PIECE as usize) {
            let piece = &mut piece[..(count - first).min(PIECE) as usize];
            buffer.read(PICTURE_HEAD + first * PIXEL, bytemuck::cast_slice_mut(piece))?;
            for pixel in piece {
                let [blue, green, red, _] = pixel.to_le_bytes();
                rgb.extend_from_slice(&[red, green, blue]);
            }
        }
        Ok(Some(Picture { width, height, rgb }))
    }
}
