//! Grey-scale PNG pictures: a pixel for each tile, whose grey says whether it is blocked or how
//! high it lies.

use std::io::Cursor;
use std::path::Path;

use png::{BitDepth, ColorType, Decoder, Limits, Transformations};
use purview::scene::terrain::{Draft, Tile};

use super::{Files, MapProblem, MapSpec, Shade, Wanted, caught};

/// Most bytes that the decoder takes beside the picture itself: text and profiles within the file.
const DECODER_BYTES: usize = 1 << 20;

/// A picture of a grey for each tile, row by row, in as many levels as it has.
struct Greys {
    levels: Vec<u16>,
    white: u16,
}

/// A map of which the dark (or light) tiles are blocked.
pub(super) fn blocking(
    path: &Path,
    map: &MapSpec,
    wanted: Wanted,
    files: &mut Files<'_>,
) -> Result<Draft, MapProblem> {
    // Too many tiles are refused before a picture of as many is decoded.
    let mut draft = wanted.draft()?;
    let greys = read(path, wanted, files)?;
    for (i, level) in greys.levels.iter().enumerate() {
        let of_255 = u32::from(*level) * 255 / u32::from(greys.white);
        let dark = of_255 < u32::from(map.threshold);
        if dark == (map.blocked == Shade::Dark) {
            let (x, z) = (i as i32 % wanted.width, i as i32 / wanted.width);
            draft.set_blocked(Tile { x, z }, true)?;
        }
    }
    Ok(draft)
}

/// Sets how high the tiles of `draft` lie.
pub(super) fn heights(
    path: &Path,
    map: &MapSpec,
    wanted: Wanted,
    files: &mut Files<'_>,
    draft: &mut Draft,
) -> Result<(), MapProblem> {
    let greys = read(path, wanted, files)?;
    let base = i64::from(map.height_zero) * -i64::from(map.height_step_cm);
    // What does not fit is refused with the figure below the lowest that may be.
    let base_cm = i32::try_from(base).unwrap_or(i32::MIN);
    draft.set_heights(base_cm, map.height_step_cm, greys.levels)?;
    Ok(())
}

fn read(path: &Path, wanted: Wanted, files: &mut Files<'_>) -> Result<Greys, MapProblem> {
    let bytes = files.read(path)?;
    caught(|| decode(&bytes, wanted))
}

fn decode(bytes: &[u8], wanted: Wanted) -> Result<Greys, MapProblem> {
    let limits = Limits { bytes: DECODER_BYTES + 16 * wanted.width as usize };
    let mut decoder = Decoder::new_with_limits(Cursor::new(bytes), limits);
    decoder.set_transformations(Transformations::IDENTITY);
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    let header = decoder.read_header_info()?;
    wanted.check(header.size())?;
    let found = match header.color_type {
        ColorType::Grayscale => None,
        ColorType::Rgb => Some("colour (RGB)"),
        ColorType::Indexed => Some("indexed colour"),
        ColorType::GrayscaleAlpha => Some("grey-scale with transparency"),
        ColorType::Rgba => Some("colour with transparency (RGBA)"),
    };
    if let Some(found) = found {
        return Err(MapProblem::Colour { found });
    }
    let depth = header.bit_depth;
    let mut reader = decoder.read_info()?;
    if reader.info().is_animated() {
        return Err(MapProblem::Animated);
    }
    let row_bytes = reader.output_line_size(wanted.width as u32);
    let row_bytes = row_bytes.ok_or(png::DecodingError::LimitsExceeded)?;
    let mut raw = vec![0; row_bytes * wanted.depth as usize];
    reader.next_frame(&mut raw)?;
    let mut levels = Vec::with_capacity(wanted.width as usize * wanted.depth as usize);
    for row in raw.chunks_exact(row_bytes) {
        spread(row, depth, wanted.width as usize, &mut levels);
    }
    let white = match depth {
        BitDepth::One => 1,
        BitDepth::Two => 3,
        BitDepth::Four => 15,
        BitDepth::Eight => 255,
        BitDepth::Sixteen => u16::MAX,
    };
    Ok(Greys { levels, white })
}

fn spread(row: &[u8], depth: BitDepth, width: usize, levels: &mut Vec<u16>) {
    match depth {
        BitDepth::Eight => levels.extend(row.iter().map(|b| u16::from(*b))),
        BitDepth::Sixteen => {
            levels.extend(row.chunks_exact(2).map(|b| u16::from_be_bytes([b[0], b[1]])));
        }
        BitDepth::One | BitDepth::Two | BitDepth::Four => {
            let bits = depth as usize;
            let mask = (1_u8 << bits) - 1;
            let level = |i: usize| {
                let at = i * bits;
                let shift = 8 - bits - at % 8;
                u16::from(row[at / 8] >> shift & mask)
            };
            levels.extend((0..width).map(level));
        }
    }
}
