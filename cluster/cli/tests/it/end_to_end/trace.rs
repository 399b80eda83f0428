//! A small recording for the tests: three dozen people who stroll across a square.

use std::f64::consts::TAU;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

/// The scene where recordings are played.
pub const STATION: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/scenes/station.toml");

/// The number of people.
pub const PEOPLE: u32 = 36;

/// Eight seconds at 10 Hz on 60 m x 40 m. With `planes` every sixth person changes the plane halfway.
fn stroll(planes: bool) -> String {
    let mut csv = String::from(if planes { "t_s,id,x_m,z_m,plane\n" } else { "t_s,id,x_m,z_m\n" });
    for step in 0..80 {
        let t = f64::from(step) / 10.0;
        for who in 0..PEOPLE {
            let turn = f64::from(who) / f64::from(PEOPLE);
            let x = 30.0 + 30.0 * (TAU * (t / 16.0 + turn)).sin();
            let z = 20.0 + 20.0 * (TAU * (t / 11.0 + turn * 7.0)).cos();
            write!(csv, "{t},{who},{x:.2},{z:.2}").unwrap();
            if planes {
                let plane = u32::from(who % 6 == 0 && (30..60).contains(&step));
                write!(csv, ",{plane}").unwrap();
            }
            csv.push('\n');
        }
    }
    csv
}

/// Writes the recording as plain CSV.
pub fn plain(folder: &Path, planes: bool) -> PathBuf {
    let path = folder.join("stroll.csv");
    std::fs::write(&path, stroll(planes)).unwrap();
    path
}

/// Writes the recording as gzip.
pub fn gzipped(folder: &Path, planes: bool) -> PathBuf {
    let path = folder.join("stroll.csv.gz");
    let mut gz = GzEncoder::new(File::create(&path).unwrap(), Compression::fast());
    gz.write_all(stroll(planes).as_bytes()).unwrap();
    gz.finish().unwrap();
    path
}
