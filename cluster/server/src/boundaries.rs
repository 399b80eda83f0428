//! Every boundary at which bytes from outside become values, for the fuzz target `boundaries` and its
//! short run in the tests: whatever the bytes are, the decoder ends, and takes no more memory than the
//! table in `docs/operations.md` says. Nothing else calls this.

use std::path::{Path, PathBuf};

use prost::Message;
use purview::scene::SceneSpec;
use purview::wire::{ClientMsg, ServerMsg, fuzzing, peer};

use crate::backup::file::{self, FileError, MAGIC, VERSION};
use crate::grpc::bounds::{self, Bounded};
use crate::maps::{self, MapSpec};
use crate::{interest, logic};

#[derive(Debug, Clone, Copy)]
pub struct Boundary {
    pub name: &'static str,
    /// Decodes bytes; whether they are a legal value.
    pub decode: fn(&[u8]) -> bool,
    pub per_byte: usize,
    /// Most memory beside that.
    pub fixed: usize,
}

impl Boundary {
    /// Most memory that so many bytes take.
    pub fn most(&self, len: usize) -> usize {
        len.saturating_mul(self.per_byte).saturating_add(self.fixed)
    }
}

/// What the capacity of lists may take that promise elements which do not come: a MiB for each list
/// that is open at once.
const OPEN_LISTS: usize = 8 << 20;

pub const BOUNDARIES: [Boundary; 8] = [
    Boundary { name: "client", decode: client, per_byte: 120, fixed: 4 << 10 },
    Boundary { name: "server", decode: server, per_byte: 120, fixed: 4 << 10 },
    Boundary { name: "peer", decode: peer, per_byte: 80, fixed: OPEN_LISTS },
    Boundary { name: "checkpoint", decode: fuzzing::snapshot, per_byte: 80, fixed: OPEN_LISTS },
    Boundary { name: "backup", decode: backup, per_byte: 80, fixed: OPEN_LISTS },
    Boundary { name: "worker", decode: worker, per_byte: 640, fixed: 64 << 10 },
    Boundary { name: "interest", decode: interest, per_byte: 640, fixed: 64 << 10 },
    Boundary { name: "map", decode: map, per_byte: 4_096, fixed: 32 << 20 },
];

fn client(bytes: &[u8]) -> bool {
    ClientMsg::decode(bytes).is_ok()
}

fn server(bytes: &[u8]) -> bool {
    ServerMsg::decode(bytes).is_ok()
}

fn peer(bytes: &[u8]) -> bool {
    peer::decode(bytes).is_ok()
}

/// A backup with one record, whose kind is the first byte.
fn backup(bytes: &[u8]) -> bool {
    let Some((kind, payload)) = bytes.split_first() else { return false };
    let Ok(length) = u32::try_from(payload.len()) else { return false };
    let record = [&[*kind][..], &length.to_be_bytes(), payload].concat();
    let crc = crc32fast::hash(&record).to_be_bytes();
    let file = [&MAGIC[..], &VERSION.to_be_bytes(), &record, &crc].concat();
    let mut records = 0;
    let counted = |_| {
        records += 1;
        Ok::<(), FileError>(())
    };
    // It ends after the record, so that it is torn at last.
    file::read(&file[..], counted).is_err() && records == 1
}

fn request<R: Message + Default + Bounded>(bytes: &[u8]) -> bool {
    bounds::check(bytes, R::REPEATED).is_ok() && R::decode(bytes).is_ok()
}

fn worker(bytes: &[u8]) -> bool {
    request::<logic::proto::Request>(bytes)
}

fn interest(bytes: &[u8]) -> bool {
    request::<interest::proto::Request>(bytes)
}

/// A map, whose kind the first byte says.
fn map(bytes: &[u8]) -> bool {
    let Some((kind, file)) = bytes.split_first() else { return false };
    let name = ["map.tmx", "map.tmj", "map.png"][usize::from(kind % 3)];
    let map = MapSpec { file: Some(PathBuf::from(name)), ..MapSpec::default() };
    let open = |path: &Path| -> std::io::Result<Box<dyn std::io::Read>> {
        match path == Path::new(name) {
            true => Ok(Box::new(std::io::Cursor::new(file.to_vec()))),
            false => Err(std::io::ErrorKind::NotFound.into()),
        }
    };
    let size = purview::scene::Pos::ground(6_400, 6_400);
    let scene = SceneSpec { width_cm: size.x, depth_cm: size.z, ..SceneSpec::default() };
    maps::load_with(&map, &scene, &open).is_ok()
}
