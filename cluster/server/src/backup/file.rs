//! The file format of backups. A reader uses a file only if all of it is intact.
//!
//! ```text
//! file    = magic version record* end
//! magic   = "PVBACKUP", 8 bytes            version = u16
//! record  = kind u8, length u32, payload, CRC-32 u32 of the record before it
//! end     = a record of kind 0 whose payload counts the records before it
//! ```
//!
//! Numbers are big-endian, payloads are MessagePack. A reader skips unknown kinds of records, which
//! a newer release may have added.

use std::io::{Read, Write};

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::storage::{KeptLayout, RegionKey, SavedPlayer, SavedSnapshots, Snapshot};
use purview::scene::{EntityId, Epoch, Tick};
use purview::wire;

/// How every backup begins.
pub const MAGIC: [u8; 8] = *b"PVBACKUP";

/// The version of the file that this release writes, and the newest that it reads.
pub const VERSION: u16 = 1;

/// Longest payload that is read, bytes: a region's two snapshots and their names.
const RECORD_MAX: usize = 130 << 20;

/// Why a file cannot be used as a backup.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("this is not a backup: it does not begin with \"PVBACKUP\"")]
    NotABackup,
    #[error("the file has version {0}; this release reads versions 1 to {VERSION}")]
    Version(u16),
    #[error("the file ends early, after {0} whole records: take a copy that is complete")]
    Torn(u64),
    #[error("record {at} is damaged ({why}): take another copy")]
    Damaged {
        /// Which, from 1.
        at: u64,
        why: String,
    },
    #[error("there is data after the end of the backup: take another copy")]
    Trailing,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The cluster's name; empty for a single server.
    pub cluster: String,
    /// Where it was read from: `redb` or `postgres`.
    pub store: String,
    /// When it was begun, seconds since 1970.
    pub unix_s: u64,
    pub release: String,
    pub processes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// What it is of: the first one.
    About(About),
    Region(RegionKey, SavedSnapshots),
    Players(Vec<SavedPlayer>),
    Layout(KeptLayout),
}

const END: u8 = 0;
const ABOUT: u8 = 1;
const REGION: u8 = 2;
const PLAYERS: u8 = 3;
const LAYOUT: u8 = 4;

/// Epoch, tick, state.
type Saved = (u64, u64, Bytes);

/// Name, epoch, clock, holder, record.
type PlayerRow = (String, u64, u64, Option<EntityId>, Bytes);

pub struct Writer<W: Write> {
    out: W,
    records: u64,
}

impl<W: Write> Writer<W> {
    pub fn begin(mut out: W, about: &About) -> Result<Writer<W>, FileError> {
        out.write_all(&MAGIC)?;
        out.write_all(&VERSION.to_be_bytes())?;
        let mut writer = Writer { out, records: 0 };
        writer.put(ABOUT, about)?;
        Ok(writer)
    }

    pub fn region(&mut self, key: &RegionKey, kept: &SavedSnapshots) -> Result<(), FileError> {
        let saved = |s: &Snapshot| -> Saved { (s.epoch.0, s.tick.0, s.state.clone()) };
        let (newest, previous) =
            (kept.newest.as_ref().map(saved), kept.previous.as_ref().map(saved));
        self.put(REGION, &(key.to_string(), newest, previous))
    }

    pub fn players(&mut self, players: &[SavedPlayer]) -> Result<(), FileError> {
        let row = |p: &SavedPlayer| -> PlayerRow {
            (p.name.clone(), p.epoch.0, p.clock, p.holder, p.place.clone())
        };
        self.put(PLAYERS, &players.iter().map(row).collect::<Vec<_>>())
    }

    pub fn layout(&mut self, layout: &KeptLayout) -> Result<(), FileError> {
        self.put(LAYOUT, &(&layout.scene, layout.change, &layout.data))
    }

    pub fn end(mut self) -> Result<W, FileError> {
        let records = self.records;
        self.put(END, &records)?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn put<T: Serialize>(&mut self, kind: u8, what: &T) -> Result<(), FileError> {
        let at = self.records + 1;
        let bad = |why: String| FileError::Damaged { at, why };
        let payload = rmp_serde::to_vec(what).map_err(|e| bad(e.to_string()))?;
        let length = u32::try_from(payload.len()).map_err(|e| bad(e.to_string()))?;
        let head = [&[kind][..], &length.to_be_bytes()].concat();
        let crc = crc(&head, &payload);
        for part in [&head[..], &payload, &crc.to_be_bytes()] {
            self.out.write_all(part)?;
        }
        self.records += 1;
        Ok(())
    }
}

fn crc(head: &[u8], payload: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(head);
    crc.update(payload);
    crc.finalize()
}

/// Reads a backup record by record; calls `take` with each known record.
///
/// # Errors
/// The first thing that is wrong; what came before it was told.
pub fn read<E: From<FileError>>(
    mut from: impl Read,
    mut take: impl FnMut(Record) -> Result<(), E>,
) -> Result<u64, E> {
    begin(&mut from)?;
    let mut records = 0;
    loop {
        let (kind, payload) = next(&mut from, records)?;
        if kind == END {
            let counted: u64 = parse(&payload, records + 1)?;
            if counted != records {
                let why = format!("it counts {counted} records; there are {records}");
                return Err(FileError::Damaged { at: records + 1, why }.into());
            }
            if from.read(&mut [0]).map_err(FileError::from)? > 0 {
                return Err(FileError::Trailing.into());
            }
            return Ok(records);
        }
        records += 1;
        if let Some(record) = record(kind, &payload, records)? {
            take(record)?;
        }
    }
}

fn begin(from: &mut impl Read) -> Result<(), FileError> {
    let mut magic = [0; MAGIC.len()];
    let mut version = [0; 2];
    if !fill(from, &mut magic)? || magic != MAGIC {
        return Err(FileError::NotABackup);
    }
    if !fill(from, &mut version)? {
        return Err(FileError::Torn(0));
    }
    match u16::from_be_bytes(version) {
        1..=VERSION => Ok(()),
        other => Err(FileError::Version(other)),
    }
}

/// The next record's kind and payload; `before` is the number of records before it.
fn next(from: &mut impl Read, before: u64) -> Result<(u8, Vec<u8>), FileError> {
    let (mut head, mut crc_read) = ([0; 5], [0; 4]);
    if !fill(from, &mut head)? {
        return Err(FileError::Torn(before));
    }
    let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
    let at = before + 1;
    if length > RECORD_MAX {
        let why = format!("{length} bytes; there are at most {RECORD_MAX}");
        return Err(FileError::Damaged { at, why });
    }
    // Not more than there is: a damaged length asks for no memory.
    let mut payload = Vec::new();
    from.by_ref().take(length as u64).read_to_end(&mut payload)?;
    if payload.len() < length || !fill(from, &mut crc_read)? {
        return Err(FileError::Torn(before));
    }
    if crc(&head, &payload) != u32::from_be_bytes(crc_read) {
        return Err(FileError::Damaged { at, why: "its checksum is wrong".into() });
    }
    Ok((head[0], payload))
}

/// False: there is less.
fn fill(from: &mut impl Read, to: &mut [u8]) -> Result<bool, FileError> {
    match from.read_exact(to) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => Ok(false),
        Err(e) => Err(e.into()),
    }
}

fn parse<T: DeserializeOwned>(payload: &[u8], at: u64) -> Result<T, FileError> {
    wire::read_record(payload).map_err(|e| FileError::Damaged { at, why: e.to_string() })
}

/// `None`: of a kind that this release does not know.
fn record(kind: u8, payload: &[u8], at: u64) -> Result<Option<Record>, FileError> {
    Ok(Some(match kind {
        ABOUT => Record::About(parse(payload, at)?),
        REGION => {
            let (key, newest, previous): (String, Option<Saved>, Option<Saved>) =
                parse(payload, at)?;
            let key = key.parse::<RegionKey>();
            let key = key.map_err(|e| FileError::Damaged { at, why: e.to_string() })?;
            let snapshot = |(epoch, tick, state): Saved| Snapshot {
                epoch: Epoch(epoch),
                tick: Tick(tick),
                state,
            };
            let (newest, previous) = (newest.map(snapshot), previous.map(snapshot));
            Record::Region(key, SavedSnapshots { newest, previous })
        }
        PLAYERS => {
            let all: Vec<PlayerRow> = parse(payload, at)?;
            let player = |(name, epoch, clock, holder, place): PlayerRow| SavedPlayer {
                name,
                epoch: Epoch(epoch),
                clock,
                holder,
                place,
            };
            Record::Players(all.into_iter().map(player).collect())
        }
        LAYOUT => {
            let (scene, change, data) = parse(payload, at)?;
            Record::Layout(KeptLayout { scene, change, data })
        }
        _ => return Ok(None),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about() -> About {
        About {
            cluster: "test".into(),
            store: "redb".into(),
            unix_s: 1,
            release: "0".into(),
            processes: 7,
        }
    }

    fn sample() -> (Vec<u8>, Vec<Record>) {
        let key = RegionKey { scene: "a/b".into(), region: 4, planes: 1 };
        let snapshot =
            |n: u64| Snapshot { epoch: Epoch(n), tick: Tick(n), state: vec![n as u8; 99].into() };
        let kept = SavedSnapshots { newest: Some(snapshot(9)), previous: Some(snapshot(8)) };
        let ann = SavedPlayer {
            name: "ann".into(),
            epoch: Epoch(3),
            clock: 5,
            holder: Some(EntityId(7)),
            place: Bytes::from_static(b"p"),
        };
        let layout =
            KeptLayout { scene: "city".into(), change: 2, data: Bytes::from_static(b"{}") };
        let mut writer = Writer::begin(Vec::new(), &about()).unwrap();
        writer.region(&key, &kept).unwrap();
        writer.players(std::slice::from_ref(&ann)).unwrap();
        writer.layout(&layout).unwrap();
        let records = vec![
            Record::About(about()),
            Record::Region(key, kept),
            Record::Players(vec![ann]),
            Record::Layout(layout),
        ];
        (writer.end().unwrap(), records)
    }

    fn all(bytes: &[u8]) -> Result<Vec<Record>, FileError> {
        let mut found = Vec::new();
        read(bytes, |record| {
            found.push(record);
            Ok::<_, FileError>(())
        })?;
        Ok(found)
    }

    #[test]
    fn what_was_written_is_read() {
        let (bytes, records) = sample();
        assert_eq!(all(&bytes).unwrap(), records);
    }

    #[test]
    fn a_file_that_ends_early_or_late_is_refused_at_every_place() {
        let (bytes, _) = sample();
        for end in 0..bytes.len() {
            let error = all(&bytes[..end]).unwrap_err();
            let want = matches!(error, FileError::Torn(_) | FileError::NotABackup);
            assert!(want, "{end}: {error}");
        }
        let error = all(&[&bytes[..], &[0]].concat()).unwrap_err();
        assert!(matches!(error, FileError::Trailing), "{error}");
    }

    #[test]
    fn a_byte_that_has_changed_is_noticed_at_every_place() {
        let (bytes, _) = sample();
        for at in 0..bytes.len() {
            for bit in [1, 0x80] {
                let mut damaged = bytes.clone();
                damaged[at] ^= bit;
                assert!(all(&damaged).is_err(), "byte {at}");
            }
        }
    }

    #[test]
    fn a_newer_version_is_refused_and_a_newer_kind_passed_over() {
        let (mut bytes, _) = sample();
        bytes[9] = 2;
        assert!(matches!(all(&bytes).unwrap_err(), FileError::Version(2)));
        let mut writer = Writer::begin(Vec::new(), &about()).unwrap();
        writer.put(77, &"new").unwrap();
        assert_eq!(all(&writer.end().unwrap()).unwrap(), [Record::About(about())]);
    }

    #[test]
    fn a_length_that_lies_asks_for_no_memory() {
        let mut bytes = [&MAGIC[..], &VERSION.to_be_bytes(), &[ABOUT]].concat();
        bytes.extend(u32::MAX.to_be_bytes());
        assert!(matches!(all(&bytes).unwrap_err(), FileError::Damaged { at: 1, .. }));
    }
}
