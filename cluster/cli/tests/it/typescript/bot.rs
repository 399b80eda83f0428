//! Programs of `clients/typescript/test`: `bot.mjs`, which plays and tells what it shows, and others.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use purview::scene::{EntityId, Pos, Tick};
use serde_json::Value;

use super::package;

/// Positions by tick and entity.
pub type Shown = BTreeMap<(Tick, EntityId), Pos>;

/// How long the bot may take for a part of its way.
const PATIENCE: Duration = Duration::from_secs(90);

/// A program below `clients/typescript` that tells lines of JSON.
pub struct Program {
    child: Child,
    told: Receiver<Value>,
}

impl Program {
    /// Starts it, with this argument.
    pub fn start(script: &str, argument: Option<&Value>) -> Program {
        let mut child = Command::new("node")
            .current_dir(package::copy())
            .arg(script)
            .args(argument.map(Value::to_string))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("`bash .ci/test` installs Node.js");
        let (tell, told) = channel();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let line = serde_json::from_str(&line).unwrap_or(Value::String(line));
                let _ = tell.send(line);
            }
        });
        Program { child, told }
    }

    /// The next line; none: the program has ended.
    pub fn next(&mut self) -> Option<Value> {
        match self.told.recv_timeout(PATIENCE) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("the program tells nothing any more"),
        }
    }

    /// Writes a line to it.
    pub fn say(&mut self, line: &Value) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Waits until it has ended.
    pub fn end(mut self) {
        assert!(self.child.wait().unwrap().success(), "the program ends in order");
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

pub struct Bot {
    program: Program,
    /// What it has shown so far.
    pub shown: Shown,
}

/// A place where the bot rests, with what had happened until then.
#[derive(Debug)]
pub struct Rest {
    pub id: EntityId,
    pub at: Pos,
    pub told: Value,
}

fn pos(at: &[Value]) -> Pos {
    let along = |i: usize| i32::try_from(at[i].as_i64().unwrap()).unwrap();
    Pos { x: along(0), y: along(1), z: along(2) }
}

impl Bot {
    /// Starts the program with this argument.
    pub fn start(arguments: &Value) -> Bot {
        let program = Program::start("test/bot.mjs", Some(arguments));
        Bot { program, shown: Shown::new() }
    }

    /// The next line but those of frames, which are kept.
    fn next(&mut self) -> Value {
        loop {
            let line = self.program.next().expect("the bot goes on");
            let Some(tick) = line["tick"].as_u64() else { return line };
            for seen in line["seen"].as_array().unwrap() {
                let seen = seen.as_array().unwrap();
                let id = EntityId(seen[0].as_u64().unwrap());
                self.shown.insert((Tick(tick), id), pos(&seen[1..]));
            }
        }
    }

    /// Waits for a line with this member.
    pub fn wait(&mut self, name: &str) -> Value {
        let line = self.next();
        assert!(!line[name].is_null(), "want {name}, got {line}");
        line
    }

    /// Waits until the bot rests at the end of this part of its way.
    pub fn rest(&mut self, name: &str) -> Rest {
        let told = self.wait("rest");
        assert_eq!(told["rest"], name, "{told}");
        assert_eq!(told["waiting"], 0, "{told}");
        let id = EntityId(told["id"].as_u64().unwrap());
        Rest { id, at: pos(told["at"].as_array().unwrap()), told }
    }

    /// The program leaves and ends.
    pub fn end(mut self) -> Shown {
        self.program.say(&Value::Null);
        self.program.end();
        self.shown
    }
}
