//! Messages over TCP: each is preceded by its length, a big-endian `u32`. Gateways and clients use
//! it.
//!
//! Sans IO: bytes from a socket go in, in pieces of any size; complete messages come out. A length
//! from a peer must never cause an allocation.

/// Bytes of the length that precedes each message.
pub const PREFIX_LEN: usize = 4;

/// Why a stream cannot be split into messages. The position in the stream is lost: close it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FramingError {
    /// The announced message is too long.
    #[error("message of {len} bytes announced; at most {max} are allowed")]
    TooBig {
        /// Announced length in bytes.
        len: usize,
        /// The limit in bytes.
        max: usize,
    },
    /// A message of 0 bytes was announced; no message is empty.
    #[error("message of 0 bytes announced")]
    Empty,
}

/// Splits a stream into messages. Holds at most one message, and only the bytes of it that have
/// arrived.
#[derive(Debug, Clone)]
pub struct Framer {
    max: usize,
    prefix: [u8; PREFIX_LEN],
    // Bytes of the prefix that have arrived.
    prefixed: usize,
    message: Vec<u8>,
    failed: Option<FramingError>,
}

impl Framer {
    /// A framer for messages of at most `max` bytes.
    pub fn new(max: usize) -> Framer {
        Framer { max, prefix: [0; PREFIX_LEN], prefixed: 0, message: Vec::new(), failed: None }
    }

    /// Takes bytes from the front of `input` until a message is complete and returns it; `None` if
    /// `input` ends before that. Call it until it returns `None`:
    ///
    /// ```
    /// # use purview::wire::client::framing::Framer;
    /// let mut framer = Framer::new(4_096);
    /// let mut input: &[u8] = &[0, 0, 0, 1, b'a', 0, 0, 0, 2, b'b'];
    /// while let Some(message) = framer.next(&mut input).unwrap() {
    ///     assert_eq!(message, b"a");
    /// }
    /// assert_eq!(framer.pending(), 5);
    /// ```
    ///
    /// # Errors
    /// A length is 0 or above the limit. From then on every call returns the same error.
    pub fn next(&mut self, input: &mut &[u8]) -> Result<Option<Vec<u8>>, FramingError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let prefix = take(input, PREFIX_LEN - self.prefixed);
        self.prefix[self.prefixed..][..prefix.len()].copy_from_slice(prefix);
        self.prefixed += prefix.len();
        if self.prefixed < PREFIX_LEN {
            return Ok(None);
        }
        let len = u32::from_be_bytes(self.prefix) as usize;
        check(len, self.max).inspect_err(|e| self.failed = Some(*e))?;
        self.message.extend_from_slice(take(input, len - self.message.len()));
        if self.message.len() < len {
            return Ok(None);
        }
        self.prefixed = 0;
        Ok(Some(std::mem::take(&mut self.message)))
    }

    /// Bytes of an incomplete message. If it is not 0 at the end of a stream, the stream was cut
    /// off.
    pub fn pending(&self) -> usize {
        self.prefixed + self.message.len()
    }
}

/// Appends `message` to `out`, preceded by its length.
///
/// # Errors
/// The message is empty, or longer than `max` or than a `u32` can express; `out` is unchanged.
pub fn write(message: &[u8], max: usize, out: &mut Vec<u8>) -> Result<(), FramingError> {
    let max = max.min(u32::MAX as usize);
    check(message.len(), max)?;
    out.extend_from_slice(&(message.len() as u32).to_be_bytes());
    out.extend_from_slice(message);
    Ok(())
}

fn check(len: usize, max: usize) -> Result<(), FramingError> {
    match len {
        0 => Err(FramingError::Empty),
        len if len > max => Err(FramingError::TooBig { len, max }),
        _ => Ok(()),
    }
}

/// Takes at most `n` bytes from the front of `input`.
fn take<'a>(input: &mut &'a [u8], n: usize) -> &'a [u8] {
    let (taken, rest) = input.split_at(n.min(input.len()));
    *input = rest;
    taken
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(framer: &mut Framer, mut input: &[u8]) -> Result<Vec<Vec<u8>>, FramingError> {
        let mut out = Vec::new();
        while let Some(message) = framer.next(&mut input)? {
            out.push(message);
        }
        assert!(input.is_empty(), "all bytes are consumed");
        Ok(out)
    }

    #[test]
    fn a_message_at_the_limit_passes_and_one_above_it_does_not() {
        let mut bytes = Vec::new();
        write(&[7; 10], 10, &mut bytes).unwrap();
        assert_eq!(all(&mut Framer::new(10), &bytes).unwrap(), [[7; 10]]);
        let too_big = FramingError::TooBig { len: 10, max: 9 };
        assert_eq!(all(&mut Framer::new(9), &bytes), Err(too_big));
        assert_eq!(write(&[7; 10], 9, &mut bytes), Err(too_big));
        assert_eq!(bytes.len(), 14);
    }

    #[test]
    fn an_empty_message_is_an_error() {
        assert_eq!(all(&mut Framer::new(10), &[0; 4]), Err(FramingError::Empty));
        assert_eq!(write(&[], 10, &mut Vec::new()), Err(FramingError::Empty));
    }

    #[test]
    fn an_announced_length_allocates_nothing() {
        let mut framer = Framer::new(usize::MAX);
        assert_eq!(all(&mut framer, &[0xff, 0xff, 0xff, 0xff, 1]), Ok(Vec::new()));
        assert!(framer.message.capacity() < 100);
        assert_eq!(framer.pending(), 5);
    }

    #[test]
    fn after_an_error_no_message_comes_out() {
        let mut framer = Framer::new(10);
        let mut input: &[u8] = &[0, 0, 0, 0, 0, 0, 0, 1, 5];
        assert_eq!(framer.next(&mut input), Err(FramingError::Empty));
        assert_eq!(framer.next(&mut input), Err(FramingError::Empty));
        assert_eq!(framer.next(&mut &[0, 0, 0, 1, 5][..]), Err(FramingError::Empty));
    }

    proptest! {
        #[test]
        fn messages_survive_any_split(
            messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..12),
            splits in prop::collection::vec(0usize..30, 1..200),
        ) {
            let mut bytes = Vec::new();
            for m in &messages {
                write(m, 64, &mut bytes).unwrap();
            }
            let mut framer = Framer::new(64);
            let mut got = Vec::new();
            let mut rest = &bytes[..];
            for n in splits.into_iter().chain([usize::MAX]) {
                got.extend(all(&mut framer, take(&mut rest, n)).unwrap());
                prop_assert!(framer.pending() < 64 + PREFIX_LEN);
            }
            prop_assert_eq!(got, messages);
            prop_assert_eq!(framer.pending(), 0);
        }

        #[test]
        fn any_bytes_split_alike_whole_or_byte_by_byte(
            bytes in prop::collection::vec(prop_oneof![4 => 0u8..3, 1 => any::<u8>()], 0..200),
        ) {
            let whole = all(&mut Framer::new(100), &bytes);
            let mut framer = Framer::new(100);
            let mut single = Ok(Vec::new());
            for b in &bytes {
                match (all(&mut framer, &[*b]), &mut single) {
                    (Ok(more), Ok(got)) => got.extend(more),
                    (Err(e), _) => { single = Err(e); break }
                    (Ok(_), Err(_)) => unreachable!("the loop ends at the first error"),
                }
            }
            // The caller already has the messages that were complete before the error.
            prop_assert_eq!(whole, single);
        }
    }
}
