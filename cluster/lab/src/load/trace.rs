//! Recorded movement: CSV, plain or gzip, with the header `t_s,id,x_m,z_m` and optionally `plane` and `kind`, in any
//! order.
//!
//! Rows are sorted by time. An agent is present from its first row to its last.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use anyhow::{Context, anyhow, bail, ensure};
use csv::ByteRecord;
use flate2::bufread::MultiGzDecoder;
use purview::scene::{Plane, Pos};

/// The position of the least x and z of a trace on the map, centimetres from its edges.
pub const OFFSET_CM: i32 = 100;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    pub t_s: f64,
    pub x_m: f64,
    pub z_m: f64,
    pub plane: Option<Plane>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Agent {
    pub id: String,
    pub kind: Option<String>,
    /// The samples, by time; never empty.
    pub samples: Vec<Sample>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    /// The agents, by first appearance.
    pub agents: Vec<Agent>,
    /// The time from the first row to the last, seconds.
    pub length_s: f64,
    min_m: [f64; 2],
    max_m: [f64; 2],
}

struct Columns {
    t: usize,
    id: usize,
    x: usize,
    z: usize,
    plane: Option<usize>,
    kind: Option<usize>,
}

impl Columns {
    fn find(header: &ByteRecord) -> anyhow::Result<Columns> {
        let at = |name: &str| header.iter().position(|h| h.trim_ascii() == name.as_bytes());
        let found = || {
            let names: Vec<_> = header.iter().map(String::from_utf8_lossy).collect();
            names.join(",")
        };
        let need = |column| {
            at(column).with_context(|| {
                let found = found();
                format!("line 1: no column {column:?}; expected the header t_s,id,x_m,z_m, got {found:?}")
            })
        };
        Ok(Columns {
            t: need("t_s")?,
            id: need("id")?,
            x: need("x_m")?,
            z: need("z_m")?,
            plane: at("plane"),
            kind: at("kind"),
        })
    }
}

fn text(row: &ByteRecord, at: usize) -> String {
    String::from_utf8_lossy(row.get(at).unwrap_or_default()).trim().to_owned()
}

fn number<T: std::str::FromStr>(
    row: &ByteRecord,
    (at, line): (usize, u64),
    column: &'static str,
    want: &'static str,
    legal: impl Fn(&T) -> bool,
) -> anyhow::Result<T> {
    let field = row.get(at).unwrap_or_default().trim_ascii();
    let value = std::str::from_utf8(field).ok().and_then(|s| s.parse().ok());
    value
        .filter(legal)
        .with_context(|| format!("line {line}: {column} is {:?}; expected {want}", text(row, at)))
}

impl Trace {
    /// Reads a file; its first bytes show whether it is gzip.
    pub fn open(path: &Path) -> anyhow::Result<Trace> {
        let io = |e| anyhow!("{}: {e}", path.display());
        let mut file = BufReader::with_capacity(1 << 16, File::open(path).map_err(io)?);
        if file.fill_buf().map_err(io)?.starts_with(&[0x1f, 0x8b]) {
            Trace::read(MultiGzDecoder::new(file))
        } else {
            Trace::read(file)
        }
    }

    pub fn read(from: impl Read) -> anyhow::Result<Trace> {
        let mut csv = csv::ReaderBuilder::new().has_headers(false).from_reader(from);
        let mut row = ByteRecord::new();
        let mut line = 1;
        let failed = |line| move |e: csv::Error| anyhow!("line {line}: {e}");
        csv.read_byte_record(&mut row).map_err(failed(line))?;
        let columns = Columns::find(&row)?;
        let mut trace = Trace {
            agents: Vec::new(),
            length_s: 0.0,
            min_m: [f64::INFINITY; 2],
            max_m: [f64::NEG_INFINITY; 2],
        };
        let mut by_id: HashMap<Vec<u8>, usize> = HashMap::new();
        let (mut first, mut before) = (None, f64::NEG_INFINITY);
        while csv.read_byte_record(&mut row).map_err(failed(line + 1))? {
            line = row.position().map_or(line + 1, csv::Position::line);
            let mut sample = sample(&row, &columns, line)?;
            if sample.t_s < before {
                let found = sample.t_s;
                bail!("line {line}: t_s is {found} after {before}; rows must be sorted by time");
            }
            before = sample.t_s;
            sample.t_s -= *first.get_or_insert(before);
            trace.length_s = sample.t_s;
            let id = row.get(columns.id).unwrap_or_default();
            let agent = match by_id.get(id) {
                Some(agent) => *agent,
                None => {
                    by_id.insert(id.to_vec(), trace.agents.len());
                    let kind = columns.kind.map(|at| text(&row, at));
                    trace.agents.push(Agent { id: text(&row, columns.id), kind, samples: vec![] });
                    trace.agents.len() - 1
                }
            };
            trace.push(agent, sample);
        }
        ensure!(
            !trace.agents.is_empty(),
            "no rows after the header: a trace needs at least one sample"
        );
        Ok(trace)
    }

    fn push(&mut self, agent: usize, sample: Sample) {
        for (i, m) in [sample.x_m, sample.z_m].into_iter().enumerate() {
            self.min_m[i] = self.min_m[i].min(m);
            self.max_m[i] = self.max_m[i].max(m);
        }
        self.agents[agent].samples.push(sample);
    }

    /// The position of a sample on the map: its coordinates times `scale`, shifted so that the least x and z of the
    /// trace are [`OFFSET_CM`] from the edges.
    pub fn pos(&self, sample: &Sample, scale: f64) -> Pos {
        let cm = |m: f64, min: f64| ((m - min) * scale * 100.0).round() as i32 + OFFSET_CM;
        Pos::ground(cm(sample.x_m, self.min_m[0]), cm(sample.z_m, self.min_m[1]))
    }

    /// The smallest map, `[width, depth]` in centimetres, that contains the trace at `scale`.
    pub fn size_cm(&self, scale: f64) -> [i32; 2] {
        let cm = |i: usize| ((self.max_m[i] - self.min_m[i]) * scale * 100.0).ceil() as i32;
        [cm(0) + 2 * OFFSET_CM, cm(1) + 2 * OFFSET_CM]
    }
}

fn sample(row: &ByteRecord, columns: &Columns, line: u64) -> anyhow::Result<Sample> {
    let finite = |n: &f64| n.is_finite();
    // So that centimetres fit into 32 bits.
    let near = |n: &f64| n.abs() <= 1e7;
    Ok(Sample {
        t_s: number(row, (columns.t, line), "t_s", "seconds, a finite number", finite)?,
        x_m: number(row, (columns.x, line), "x_m", "metres, a number within 1e7", near)?,
        z_m: number(row, (columns.z, line), "z_m", "metres, a number within 1e7", near)?,
        plane: match columns.plane {
            Some(at) => {
                let want = "a whole number of 32 bits";
                Some(Plane(number(row, (at, line), "plane", want, |n| *n != Plane::LIMBO.0)?))
            }
            None => None,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Trace, String> {
        Trace::read(text.as_bytes()).map_err(|e| e.to_string())
    }

    #[test]
    fn rows_become_agents_in_centimetres_from_the_corner() {
        let trace = read("t_s,id,x_m,z_m\n5.0,a,-1.5,2\n5.5,b,0,3\n6,a,1,4.004\n").unwrap();
        assert_eq!((trace.agents.len(), trace.length_s), (2, 1.0));
        assert_eq!([0, 1].map(|i| trace.agents[i].samples.len()), [2, 1]);
        let a = &trace.agents[0];
        assert_eq!((a.id.as_str(), a.samples[1].t_s), ("a", 1.0));
        assert_eq!(trace.pos(&a.samples[0], 1.0), Pos::ground(100, 100));
        assert_eq!(trace.pos(&a.samples[1], 1.0), Pos::ground(350, 300));
        assert_eq!(trace.pos(&a.samples[1], 2.0), Pos::ground(600, 501));
        assert_eq!(trace.size_cm(2.0), [700, 601]);
    }

    #[test]
    fn columns_may_stand_in_any_order_with_plane_and_kind() {
        let trace = read("kind,z_m,plane,x_m,id,t_s\nnpc,1,3,2,7,0\n").unwrap();
        let agent = &trace.agents[0];
        assert_eq!((agent.id.as_str(), agent.kind.as_deref()), ("7", Some("npc")));
        assert_eq!(agent.samples[0].plane, Some(Plane(3)));
    }

    #[test]
    fn an_error_names_the_line_and_the_legal_content() {
        let head = "t_s,id,x_m,z_m\n";
        for (text, want) in [
            (
                "t_s,id,x,z_m\n0,1,2,3\n".into(),
                "line 1: no column \"x_m\"; expected the header t_s,id,x_m,z_m, got \"t_s,id,x,z_m\"",
            ),
            (
                format!("{head}0,1,2,3\n1,1,two,3\n"),
                "line 3: x_m is \"two\"; expected metres, a number within 1e7",
            ),
            (
                format!("{head}NaN,1,2,3\n"),
                "line 2: t_s is \"NaN\"; expected seconds, a finite number",
            ),
            (
                format!("{head}0,1,2,inf\n"),
                "line 2: z_m is \"inf\"; expected metres, a number within 1e7",
            ),
            (
                format!("{head}1,1,2,3\n0.5,1,2,3\n"),
                "line 3: t_s is 0.5 after 1; rows must be sorted by time",
            ),
            (head.into(), "no rows after the header: a trace needs at least one sample"),
        ] {
            assert_eq!(read(&text).unwrap_err(), want);
        }
        assert!(read(&format!("{head}0,1,2\n")).unwrap_err().starts_with("line 2: "));
        let missing = Trace::open(Path::new("/no/such/trace.csv")).unwrap_err();
        assert!(missing.to_string().starts_with("/no/such/trace.csv: "));
    }

    #[test]
    fn gzip_is_recognised_by_its_first_bytes() {
        use std::io::Write;
        let path = std::env::temp_dir().join(format!("purview-trace-{}.gz", std::process::id()));
        let file = File::create(&path).unwrap();
        let mut gz = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
        gz.write_all(b"t_s,id,x_m,z_m\n0,1,2,3\n").unwrap();
        gz.finish().unwrap();
        let trace = Trace::open(&path);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(trace.unwrap().agents[0].samples.len(), 1);
    }
}
