//! The notation of the golden vectors, `[3, [1, "text", h'00ff', nil, true]]`, and its conversion
//! to MessagePack in the shortest forms; written independently of the code under test.

/// The bytes of a value in the notation.
pub fn encode(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let rest = value(text, &mut out);
    assert!(rest.is_empty(), "unread notation: {rest:?}");
    out
}

fn value<'a>(text: &'a str, out: &mut Vec<u8>) -> &'a str {
    if let Some(rest) = text.strip_prefix('[') {
        return array(rest, out);
    }
    if let Some(rest) = text.strip_prefix("h'") {
        let (digits, rest) = rest.split_once('\'').expect("a closing quote");
        let bytes = unhex(digits);
        out.extend([0xc4, u8::try_from(bytes.len()).expect("a short one")]);
        out.extend(bytes);
        return rest;
    }
    if let Some(rest) = text.strip_prefix('"') {
        let (s, rest) = rest.split_once('"').expect("a closing quote");
        match s.len() {
            n @ 0..32 => out.push(0xa0 | n as u8),
            n => out.extend([0xd9, u8::try_from(n).expect("a short one")]),
        }
        out.extend(s.bytes());
        return rest;
    }
    let end = text.find([',', ']']).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    match word {
        "nil" => out.push(0xc0),
        "false" => out.push(0xc2),
        "true" => out.push(0xc3),
        _ => number(word.parse().unwrap_or_else(|_| panic!("a number, not {word:?}")), out),
    }
    rest
}

fn array<'a>(mut rest: &'a str, out: &mut Vec<u8>) -> &'a str {
    let (mut items, mut count) = (Vec::new(), 0u8);
    while !rest.starts_with(']') {
        rest = value(rest.trim_start_matches([',', ' ']), &mut items);
        count += 1;
    }
    assert!(count < 16, "a short array");
    out.push(0x90 | count);
    out.append(&mut items);
    &rest[1..]
}

fn number(n: i128, out: &mut Vec<u8>) {
    let (marker, width) = match n {
        -32..=0x7f => return out.push(n as u8),
        0x80..=0xff => (0xcc, 1),
        0x100..=0xffff => (0xcd, 2),
        0x1_0000..=0xffff_ffff => (0xce, 4),
        0x1_0000_0000.. => (0xcf, 8),
        -0x80..-32 => (0xd0, 1),
        -0x8000..-0x80 => (0xd1, 2),
        -0x8000_0000..-0x8000 => (0xd2, 4),
        _ => (0xd3, 8),
    };
    out.push(marker);
    out.extend(&n.to_be_bytes()[16 - width..]);
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Hexadecimal digits as bytes.
pub fn unhex(digits: &str) -> Vec<u8> {
    assert!(digits.len().is_multiple_of(2), "pairs of digits: {digits:?}");
    let pair = |i| u8::from_str_radix(&digits[i..i + 2], 16).expect("hexadecimal digits");
    (0..digits.len()).step_by(2).map(pair).collect()
}
