//! Decodes the tiles of a layer within bounds: a file that claims few tiles but unpacks to many is
//! refused before the tiles are in memory.

use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ruzstd::decoding::StreamingDecoder;

use crate::maps::DataProblem;

/// Most tiles of all layers together.
pub(super) const MAX_CELLS: u64 = 1 << 24;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Csv,
    Base64(Compression),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compression {
    None,
    Zlib,
    Gzip,
    Zstd,
}

impl Encoding {
    /// The encoding that these words name; empty is none.
    pub fn named(encoding: &str, compression: &str) -> Result<Encoding, DataProblem> {
        let compressed = match compression {
            "" => Some(Compression::None),
            "zlib" => Some(Compression::Zlib),
            "gzip" => Some(Compression::Gzip),
            "zstd" => Some(Compression::Zstd),
            _ => None,
        };
        match (encoding, compressed) {
            ("csv", Some(Compression::None)) => Ok(Encoding::Csv),
            ("base64", Some(compressed)) => Ok(Encoding::Base64(compressed)),
            _ => Err(DataProblem::Encoding {
                encoding: encoding.into(),
                compression: compression.into(),
            }),
        }
    }
}

/// Reads exactly `wanted` tiles, which commas separate.
pub(super) fn csv(text: &str, wanted: u64) -> Result<Vec<u32>, DataProblem> {
    let text = text.trim();
    let found = if text.is_empty() { 0 } else { text.split(',').count() as u64 };
    if found != wanted {
        return Err(DataProblem::Count { found, wanted });
    }
    let tile = |(at, tile): (usize, &str)| {
        let tile = tile.trim();
        tile.parse().map_err(|_| DataProblem::Tile { at, found: tile.into() })
    };
    // `wanted` may be 0, and then there is no first one.
    text.split(',').take(wanted as usize).enumerate().map(tile).collect()
}

/// Unpacks exactly `wanted` tiles from base64.
pub(super) fn unpack(
    text: &str,
    compression: Compression,
    wanted: u64,
) -> Result<Vec<u32>, DataProblem> {
    let packed = STANDARD.decode(text.trim())?;
    let bytes = match compression {
        Compression::None => packed,
        Compression::Zlib => all_of(flate2::bufread::ZlibDecoder::new(&packed[..]), wanted)?,
        Compression::Gzip => all_of(flate2::bufread::GzDecoder::new(&packed[..]), wanted)?,
        Compression::Zstd => all_of(zstd_decoder(&packed, wanted)?, wanted)?,
    };
    let found = bytes.len() as u64 / 4;
    if found > wanted || bytes.len() % 4 != 0 {
        return Err(DataProblem::More { wanted });
    }
    if found < wanted {
        return Err(DataProblem::Count { found, wanted });
    }
    let tile = |b: &[u8]| u32::from_le_bytes([b[0], b[1], b[2], b[3]]);
    Ok(bytes.chunks_exact(4).map(tile).collect())
}

/// A decoder whose window, which the packed bytes choose, is no larger than what is unpacked, or
/// than the 8 MiB that every decoder is meant to bear.
fn zstd_decoder(packed: &[u8], wanted: u64) -> Result<impl Read, DataProblem> {
    let most = (wanted * 4).next_power_of_two().max(8 << 20);
    StreamingDecoder::new_with_max_window_size(packed, most)
        .map_err(|e| DataProblem::Unpack(e.to_string()))
}

/// Everything that comes, or one byte more than `wanted` tiles have.
fn all_of(unpacked: impl Read, wanted: u64) -> Result<Vec<u8>, DataProblem> {
    let mut bytes = Vec::new();
    let read = unpacked.take(wanted * 4 + 1).read_to_end(&mut bytes);
    read.map_err(|e| DataProblem::Unpack(e.to_string()))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the program `zstd` 1.5 at level 19, as Tiled's library packs.
    #[test]
    fn what_zstandard_itself_has_packed_is_unpacked() {
        let packed = "KLUv/WQAAPUAAEIDBYtSIiEREREPPwc3v5fbyevjdPEBAQCUvJSCAvhI57Y=";
        let tiles: Vec<u32> = (0..64).map(|i| i * 7 % 13).collect();
        assert_eq!(unpack(packed, Compression::Zstd, 64).unwrap(), tiles);
        assert!(matches!(unpack(packed, Compression::Zstd, 63), Err(DataProblem::More { .. })));
        let short = &packed[..packed.len() - 12];
        assert!(matches!(unpack(short, Compression::Zstd, 64), Err(DataProblem::Unpack(_))));
    }
}
