//! Checks the bytes of a client message before they are decoded: lengths must fit the bytes that
//! are there, and only forms of the protocol may occur. A message that passes cannot make a decoder
//! allocate more than a small multiple of its size.

/// Deepest nesting of arrays in a message's fields, counting the array of fields. Legal messages
/// nest three deep.
const MAX_DEPTH: usize = 8;

/// What is wrong with the bytes of a message's fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    /// Not MessagePack: cut off, too deep, or followed by other bytes.
    Broken(String),
    /// MessagePack, but of a form that no message contains.
    Foreign(String),
}

/// The head of a value.
enum Head {
    /// The value has this many more bytes.
    Scalar(usize),
    /// The array has this many elements.
    Array(usize),
}

/// Size of a value that starts with this byte, if the byte determines it; otherwise 0.
const SIZES: [u8; 256] = {
    let mut sizes = [0; 256];
    let mut marker = 0;
    while marker < 256 {
        sizes[marker] = match marker {
            0x00..=0x7f | 0xe0..=0xff | 0xc0 | 0xc2 | 0xc3 => 1,
            0xa0..=0xbf => 1 + (marker as u8 & 0x1f),
            0xcc | 0xd0 => 2,
            0xcd | 0xd1 => 3,
            0xca | 0xce | 0xd2 => 5,
            0xcb | 0xcf | 0xd3 => 9,
            _ => 0,
        };
        marker += 1;
    }
    sizes
};

/// Checks that `bytes` is exactly one MessagePack array, without maps or extensions.
pub(super) fn check(bytes: &[u8]) -> Result<(), Fault> {
    if !matches!(bytes.first(), Some(0x90..=0x9f | 0xdc | 0xdd)) {
        return Err(Fault::Broken("the second element is not an array of fields".into()));
    }
    // Values still to come, per level of nesting.
    let mut open = [0usize; MAX_DEPTH];
    let mut depth = 0;
    let mut at = 0;
    loop {
        let (count, end) = match bytes.get(at).map_or(0, |marker| SIZES[usize::from(*marker)]) {
            0 => match head(bytes, at)? {
                (Head::Scalar(len), start) => (0, start.saturating_add(len)),
                (Head::Array(count), start) => (count, start),
            },
            size => (0, at + usize::from(size)),
        };
        // Every value takes at least one byte.
        if end > bytes.len() || count > bytes.len() - end {
            return Err(Fault::Broken(format!("byte {at}: the value ends after the message does")));
        }
        at = end;
        if count > 0 {
            if depth == MAX_DEPTH {
                return Err(Fault::Broken(format!("byte {at}: nested deeper than {MAX_DEPTH}")));
            }
            open[depth] = count;
            depth += 1;
            continue;
        }
        while depth > 0 && open[depth - 1] == 1 {
            depth -= 1;
        }
        if depth == 0 {
            break;
        }
        open[depth - 1] -= 1;
    }
    match bytes.len() - at {
        0 => Ok(()),
        left => Err(Fault::Broken(format!("{left} bytes left over after the fields"))),
    }
}

/// Reads the head of the value at `at` whose first byte does not determine its size; also returns
/// where its content starts.
fn head(bytes: &[u8], at: usize) -> Result<(Head, usize), Fault> {
    let Some(&marker) = bytes.get(at) else {
        return Err(Fault::Broken(format!("byte {at}: the message ends where a value should be")));
    };
    let foreign =
        |what| Err(Fault::Foreign(format!("byte {at}: {what}, which no message contains")));
    let head = match marker {
        0x90..=0x9f => Head::Array(usize::from(marker & 0x0f)),
        0xc4 | 0xd9 => return Ok((Head::Scalar(length(bytes, at, 1)?), at + 2)),
        0xc5 | 0xda => return Ok((Head::Scalar(length(bytes, at, 2)?), at + 3)),
        0xc6 | 0xdb => return Ok((Head::Scalar(length(bytes, at, 4)?), at + 5)),
        0xdc => return Ok((Head::Array(length(bytes, at, 2)?), at + 3)),
        0xdd => return Ok((Head::Array(length(bytes, at, 4)?), at + 5)),
        0x80..=0x8f | 0xde | 0xdf => return foreign("a map"),
        0xc7..=0xc9 | 0xd4..=0xd8 => return foreign("an extension"),
        0xc1 => return Err(Fault::Broken(format!("byte {at}: 0xc1 is not a MessagePack value"))),
        // All other first bytes are scalars.
        _ => Head::Scalar(usize::from(SIZES[usize::from(marker)]).saturating_sub(1)),
    };
    Ok((head, at + 1))
}

/// The length in the `width` bytes after the marker at `at`.
fn length(bytes: &[u8], at: usize, width: usize) -> Result<usize, Fault> {
    let Some(digits) = bytes.get(at + 1..at + 1 + width) else {
        return Err(Fault::Broken(format!("byte {at}: the message ends inside a length")));
    };
    Ok(digits.iter().fold(0, |n, &b| n << 8 | usize::from(b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(bytes: &[u8]) -> bool {
        matches!(check(bytes), Err(Fault::Broken(_)))
    }

    #[test]
    fn every_form_of_a_field_passes() {
        let forms: &[&[u8]] = &[
            &[0x05],
            &[0xff],
            &[0xc0],
            &[0xc2],
            &[0xcc, 200],
            &[0xcd, 1, 2],
            &[0xce, 1, 2, 3, 4],
            &[0xcf, 1, 2, 3, 4, 5, 6, 7, 8],
            &[0xd0, 200],
            &[0xd1, 1, 2],
            &[0xd2, 1, 2, 3, 4],
            &[0xd3, 1, 2, 3, 4, 5, 6, 7, 8],
            &[0xa2, b'h', b'i'],
            &[0xd9, 2, b'h', b'i'],
            &[0xda, 0, 2, b'h', b'i'],
            &[0xdb, 0, 0, 0, 2, b'h', b'i'],
            &[0xc4, 1, 9],
            &[0xc5, 0, 1, 9],
            &[0xc6, 0, 0, 0, 1, 9],
            &[0x90],
            &[0x92, 1, 0x91, 2],
            &[0xdc, 0, 1, 7],
            &[0xdd, 0, 0, 0, 1, 7],
        ];
        for form in forms {
            let two = [&[0x92][..], form, form].concat();
            assert_eq!(check(&two), Ok(()), "{form:02x?}");
            for cut in 1..two.len() {
                assert!(broken(&two[..cut]), "{form:02x?} cut at {cut}");
            }
            assert!(broken(&[&two[..], &[0x00]].concat()), "{form:02x?} and an extra byte");
        }
    }

    #[test]
    fn a_length_beyond_the_message_is_refused_whatever_its_value() {
        for marker in [0xc6, 0xdb, 0xdd] {
            assert!(broken(&[0x91, marker, 0xff, 0xff, 0xff, 0xff, 0x00]));
        }
        assert!(broken(&[0xdd, 0xff, 0xff, 0xff, 0xff]));
        assert!(broken(&[0x91, 0xdc, 0xff, 0xff]));
    }

    #[test]
    fn maps_and_extensions_are_foreign() {
        for marker in [0x80, 0x8f, 0xde, 0xdf, 0xc7, 0xc8, 0xc9, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8] {
            let got = check(&[0x91, marker, 0, 0, 0, 0]);
            assert!(matches!(got, Err(Fault::Foreign(_))), "{marker:02x} {got:?}");
        }
    }

    #[test]
    fn nesting_ends_at_the_limit() {
        let nested = |depth: usize| [vec![0x91; depth], vec![0x05]].concat();
        assert_eq!(check(&nested(MAX_DEPTH)), Ok(()));
        assert!(broken(&nested(MAX_DEPTH + 1)));
        assert!(broken(&nested(100_000)));
    }

    #[test]
    fn fields_must_be_an_array() {
        for bytes in [&[][..], &[0x05], &[0xc0], &[0xa0], &[0xc4, 0], &[0x80], &[0xc1]] {
            assert!(broken(bytes), "{bytes:02x?}");
        }
    }
}
