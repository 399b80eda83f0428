//! Programs of `clients/typescript/test`, which play and tell what they are told.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use serde_json::Value;

use super::package;

/// How long a program may take for a line.
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
