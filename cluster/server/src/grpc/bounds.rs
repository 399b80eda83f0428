//! Bounds the memory of a gRPC request before it is decoded. An element of a repeated field takes
//! two bytes in a request and up to some hundred in memory, so elements are counted first.

use tonic::Status;

/// A repeated field of a request, and how many elements it may have in the whole request.
#[derive(Debug, Clone, Copy)]
pub struct Repeated {
    /// Its name, for the error.
    pub name: &'static str,
    /// The numbers of the fields that lead to it, and its own.
    pub path: &'static [u32],
    /// Most elements.
    pub most: usize,
}

/// A request whose elements are counted.
pub trait Bounded {
    /// Its repeated fields of messages and texts. Numbers need no limit of their own: they take at
    /// most eight times their bytes.
    const REPEATED: &'static [Repeated];
}

/// Checks the counts of a request's elements.
///
/// # Errors
/// `INVALID_ARGUMENT` with the field and its limit.
pub fn check(request: &[u8], repeated: &[Repeated]) -> Result<(), Status> {
    for Repeated { name, path, most } in repeated {
        if count(request, path) > *most {
            let text = format!("a request with more than {most} elements of `{name}`");
            return Err(Status::invalid_argument(text));
        }
    }
    Ok(())
}

/// How often a field occurs. What cannot be read counts no further: the decoder refuses it.
fn count(mut message: &[u8], path: &[u32]) -> usize {
    let Some((wanted, rest)) = path.split_first() else { return 0 };
    let mut found = 0;
    while let Some((number, content)) = next_field(&mut message) {
        if number == u64::from(*wanted) {
            found += if rest.is_empty() { 1 } else { count(content, rest) };
        }
    }
    found
}

/// Takes a field off the front: its number, and its content if it is a text or a message.
fn next_field<'a>(message: &mut &'a [u8]) -> Option<(u64, &'a [u8])> {
    let key = varint(message)?;
    let content = match key & 7 {
        0 => varint(message).map(|_| &[][..]),
        1 => take(message, 8).map(|_| &[][..]),
        2 => {
            let len = varint(message)?;
            take(message, usize::try_from(len).ok()?)
        }
        5 => take(message, 4).map(|_| &[][..]),
        _ => None,
    };
    Some((key >> 3, content?))
}

fn take<'a>(message: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (content, rest) = message.split_at_checked(len)?;
    *message = rest;
    Some(content)
}

fn varint(message: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = message.split_first()?;
        *message = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;
    use crate::logic::proto::{self, request};

    fn request(commands: Vec<proto::Command>) -> Vec<u8> {
        let lease = Some(proto::Lease { region: 3, epoch: 1 << 40, number: 1 });
        let answer = proto::Answer { lease, seq: 1, commands };
        proto::Request { message: Some(request::Message::Answer(answer)) }.encode_to_vec()
    }

    fn batch(commands: usize) -> Vec<u8> {
        request(vec![proto::Command::default(); commands])
    }

    #[test]
    fn elements_are_counted_before_a_request_is_decoded() {
        let most = 2 * proto::MOST_COMMANDS;
        assert!(check(&batch(most), proto::Request::REPEATED).is_ok());
        let refused = check(&batch(most + 1), proto::Request::REPEATED).unwrap_err();
        assert_eq!(refused.message(), "a request with more than 131072 elements of `commands`");
        // Two answers in one request are one answer to the decoder.
        let twice = [batch(most / 2 + 1), batch(most / 2)].concat();
        assert!(check(&twice, proto::Request::REPEATED).is_err());
    }

    #[test]
    fn elements_of_a_command_are_counted_over_all_commands() {
        let subjects = vec![String::new(); 1_000];
        let plane = proto::OpenPlane { plane: 1, subjects };
        let command = proto::command::Command::OpenPlane(plane);
        let command = proto::Command { command: Some(command), ..proto::Command::default() };
        let planes = |count: usize| request(vec![command.clone(); count]);
        assert!(check(&planes(262), proto::Request::REPEATED).is_ok());
        assert!(check(&planes(263), proto::Request::REPEATED).is_err());
    }

    #[test]
    fn any_bytes_end_the_count() {
        for bytes in [&[][..], &[0x12], &[0x12, 0xff, 0xff], &[0xff; 40], &[0x12, 3, 0x32, 9, 0]] {
            assert_eq!(count(bytes, &[2, 6]), usize::from(bytes.len() == 5 && bytes[3] == 0));
        }
    }
}
