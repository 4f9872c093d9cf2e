//! What the desktop shows, as a picture.

use crate::desktop::{Error, Result};
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

/// The pixels of a frame: red, green, blue, 255 for each, from the top left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    pub width: u32,
    pub height: u32,
    pub pixels: Vec<u8>,
}

impl Picture {
    /// Writes the picture as a PNG file.
    pub fn write(&self, path: &Path) -> Result<()> {
        let failed = |error: String| Error::Picture { path: path.to_owned(), error };
        let file = File::create(path).map_err(|error| failed(error.to_string()))?;
        let mut encoder = png::Encoder::new(BufWriter::new(file), self.width, self.height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_compression(png::Compression::High);
        encoder.set_source_srgb(png::SrgbRenderingIntent::Perceptual);
        let (pixels, _) = self.pixels.as_chunks::<4>();
        let colours: Vec<u8> = pixels.iter().flat_map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect();
        let write = |mut writer: png::Writer<_>| {
            writer.write_image_data(&colours)?;
            writer.finish()
        };
        encoder.write_header().and_then(write).map_err(|error| failed(error.to_string()))
    }
}
