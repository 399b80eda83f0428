//! Backup and restore of a cluster's lasting state in one file, for `purview backup` and `purview
//! restore`.
//!
//! A backup is read from the checkpoint store alone. The other data in etcd (owners of regions,
//! plan, clock) is made anew from the checkpoints when a cluster starts.
//!
//! What must never happen: a restore that begins before the whole file was checked, or that changes
//! a store with data without `--force`.

pub mod file;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::storage::{CheckpointError, Checkpoints, Saved};

use file::{About, FileError, Record, Writer};

/// Players that are read and written at a time.
const PLAYERS: usize = 1_000;

/// Why there is no backup, or nothing was restored.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error("{}: {source}", .file.display())]
    File { file: PathBuf, source: FileError },
    #[error(transparent)]
    Store(#[from] CheckpointError),
    #[error("{}: this file exists already; choose another name", .0.display())]
    Exists(PathBuf),
    #[error(
        "the store holds {0} already: nothing was restored; use --force to erase the store first"
    )]
    NotEmpty(String),
    #[error(
        "region {0} was saved by a running process during the restore: stop every process, and restore with \
         --force"
    )]
    Overtaken(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct Contents {
    pub regions: u64,
    /// Players' last positions.
    pub players: u64,
    pub layouts: u64,
}

impl std::fmt::Display for Contents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Contents { regions, players, layouts } = self;
        write!(f, "{regions} regions, {players} players, {layouts} changed layouts")
    }
}

/// Writes everything that a store holds to a new file. Processes may go on meanwhile: each region
/// is whole, and regions are as far apart as their checkpoints are.
///
/// # Errors
/// [`BackupError`]; then there is no such file.
pub async fn back_up(
    store: &dyn Checkpoints,
    (cluster, kind): (&str, &str),
    now: Duration,
    to: &Path,
) -> Result<Contents, BackupError> {
    let at = |source: FileError| BackupError::File { file: to.into(), source };
    if to.try_exists().map_err(|e| at(e.into()))? {
        return Err(BackupError::Exists(to.into()));
    }
    let folder = to.parent().filter(|f| !f.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Complete and on the disk before it has its name; readable by its owner alone.
    let part = tempfile::NamedTempFile::new_in(folder).map_err(|e| at(e.into()))?;
    let about = About {
        cluster: cluster.into(),
        store: kind.into(),
        unix_s: now.as_secs(),
        release: env!("CARGO_PKG_VERSION").into(),
        processes: store.processes().await?,
    };
    let mut writer = Writer::begin(BufWriter::new(part), &about).map_err(at)?;
    let contents = write_all(store, &mut writer, &at).await?;
    let part = writer.end().map_err(at)?.into_inner().map_err(|e| at(e.into_error().into()))?;
    part.as_file().sync_all().map_err(|e| at(e.into()))?;
    match part.persist_noclobber(to) {
        Ok(_) => {}
        Err(e) if e.error.kind() == std::io::ErrorKind::AlreadyExists => {
            return Err(BackupError::Exists(to.into()));
        }
        Err(e) => return Err(at(e.error.into())),
    }
    // The name, too, is on the disk.
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|e| at(e.into()))?;
    Ok(contents)
}

async fn write_all<W: Write>(
    store: &dyn Checkpoints,
    writer: &mut Writer<W>,
    at: &impl Fn(FileError) -> BackupError,
) -> Result<Contents, BackupError> {
    let mut contents = Contents::default();
    // Layouts first: regions that are kept by a newer one are then in it or not at all.
    for layout in store.layouts().await? {
        writer.layout(&layout).map_err(at)?;
        contents.layouts += 1;
    }
    for key in store.regions().await? {
        let kept = store.load(&key).await?;
        writer.region(&key, &kept).map_err(at)?;
        contents.regions += 1;
    }
    let mut after = String::new();
    loop {
        let players = store.players(&after, PLAYERS).await?;
        let Some(last) = players.last() else { return Ok(contents) };
        after.clone_from(&last.name);
        writer.players(&players).map_err(at)?;
        contents.players += players.len() as u64;
    }
}

/// Looks through a whole file: what it is of, and what it holds.
///
/// # Errors
/// [`BackupError::File`]: the first thing that is wrong with it.
pub fn inspect(from: &Path) -> Result<(About, Contents), BackupError> {
    let (mut about, mut contents) = (None, Contents::default());
    each(from, |record| {
        match record {
            Record::About(told) => about = Some(told),
            Record::Region(..) => contents.regions += 1,
            Record::Players(players) => contents.players += players.len() as u64,
            Record::Layout(_) => contents.layouts += 1,
        }
        Ok(())
    })?;
    let nothing = || FileError::Damaged { at: 1, why: "it does not say what it is of".into() };
    let file = from.to_owned();
    about
        .map(|about| (about, contents))
        .ok_or_else(|| BackupError::File { file, source: nothing() })
}

fn each(
    from: &Path,
    mut take: impl FnMut(Record) -> Result<(), FileError>,
) -> Result<(), BackupError> {
    let at = |source: FileError| BackupError::File { file: from.into(), source };
    let file = File::open(from).map_err(|e| at(e.into()))?;
    file::read(BufReader::new(file), &mut take).map_err(at)?;
    Ok(())
}

/// What a store holds, as far as it matters for whether it is empty; `None`: nothing.
async fn held(store: &dyn Checkpoints) -> Result<Option<String>, CheckpointError> {
    let regions = store.regions().await?.len();
    let has_players = !store.players("", 1).await?.is_empty();
    let layouts = store.layouts().await?.len();
    let held = (regions > 0 || has_players || layouts > 0).then(|| {
        let players = if has_players { "players" } else { "no players" };
        format!("{regions} regions, {players} and {layouts} changed layouts")
    });
    Ok(held)
}

/// Puts everything of a file into a store. The file is looked through first.
///
/// # Errors
/// [`BackupError`]. A store that held nothing, or was to be erased, may then hold a part: restore
/// once more with `force`.
pub async fn restore(
    store: &dyn Checkpoints,
    from: &Path,
    force: bool,
) -> Result<Contents, BackupError> {
    let (about, contents) = inspect(from)?;
    if let Some(held) = held(store).await?.filter(|_| !force) {
        return Err(BackupError::NotEmpty(held));
    }
    // An empty store may have the id of a cluster: what is restored is another cluster.
    store.erase().await?;
    store.processes_are(about.processes).await?;
    let (send, mut records) = tokio::sync::mpsc::channel(1);
    let path = from.to_owned();
    // Files block.
    let reading = tokio::task::spawn_blocking(move || {
        each(&path, |record| {
            // The task that takes them has failed.
            send.blocking_send(record)
                .map_err(|_| FileError::Io(std::io::ErrorKind::Interrupted.into()))
        })
    });
    while let Some(record) = records.recv().await {
        take(store, record).await?;
    }
    drop(records);
    match reading.await {
        Ok(read) => read?,
        Err(e) => std::panic::resume_unwind(e.into_panic()),
    }
    Ok(contents)
}

async fn take(store: &dyn Checkpoints, record: Record) -> Result<(), BackupError> {
    match record {
        Record::About(_) => {}
        Record::Region(key, kept) => {
            // The one before first, so that it is the one before.
            for snapshot in kept.previous.into_iter().chain(kept.newest) {
                let saved = store.save(&key, snapshot.epoch, snapshot.tick, snapshot.state).await?;
                if let Saved::Fenced { .. } = saved {
                    return Err(BackupError::Overtaken(key.to_string()));
                }
            }
        }
        Record::Players(players) => {
            let _saved: crate::storage::PlayersSaved = store.save_players(players).await?;
        }
        Record::Layout(layout) => _ = store.save_layout(layout).await?,
    }
    Ok(())
}
