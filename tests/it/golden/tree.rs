//! MessagePack as a tree, in the forms of the protocol. Written independently of the code under
//! test: both are compared.

/// A value of the envelope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tree {
    Nil,
    Bool(bool),
    Int(i128),
    Text(String),
    Bytes(Vec<u8>),
    Array(Vec<Tree>),
}

impl Tree {
    /// Reads one value.
    pub fn read(bytes: &[u8]) -> Tree {
        let mut rest = bytes;
        let tree = take(&mut rest);
        assert!(rest.is_empty(), "{} bytes follow", rest.len());
        tree
    }

    /// Writes the value in the shortest form.
    pub fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.append(&mut out);
        out
    }

    fn append(&self, out: &mut Vec<u8>) {
        match self {
            Tree::Nil => out.push(0xc0),
            Tree::Bool(on) => out.push(0xc2 | u8::from(*on)),
            Tree::Int(n) => int(*n, out),
            Tree::Text(text) => {
                head(out, text.len(), 0xa0, 32, [Some(0xd9), Some(0xda)]);
                out.extend(text.bytes());
            }
            Tree::Bytes(bytes) => {
                head(out, bytes.len(), 0, 0, [Some(0xc4), Some(0xc5)]);
                out.extend(bytes);
            }
            Tree::Array(all) => {
                head(out, all.len(), 0x90, 16, [None, Some(0xdc)]);
                all.iter().for_each(|tree| tree.append(out));
            }
        }
    }

    pub fn array(&self) -> &[Tree] {
        let Tree::Array(all) = self else { panic!("{self:?} is no array") };
        all
    }

    /// The part at a path of indices.
    pub fn at(&mut self, path: &[usize]) -> &mut Tree {
        path.iter().fold(self, |tree, i| match tree {
            Tree::Array(all) => &mut all[*i],
            other => panic!("{other:?} is no array"),
        })
    }
}

/// A length: in the first byte if it is below `short`, or after a marker of one or two bytes.
fn head(out: &mut Vec<u8>, len: usize, base: u8, short: usize, markers: [Option<u8>; 2]) {
    match (len, markers) {
        (len, _) if len < short => out.push(base | len as u8),
        (0..=0xff, [Some(one), _]) => out.extend([one, len as u8]),
        (_, [_, Some(two)]) => {
            out.push(two);
            out.extend(u16::try_from(len).expect("a short value").to_be_bytes());
        }
        _ => panic!("{len} is too long"),
    }
}

fn int(n: i128, out: &mut Vec<u8>) {
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

fn take(rest: &mut &[u8]) -> Tree {
    let marker = number(rest, 1) as u8;
    let text = |bytes: Vec<u8>| Tree::Text(String::from_utf8(bytes).expect("UTF-8"));
    match marker {
        0x00..=0x7f => Tree::Int(marker.into()),
        0xe0..=0xff => Tree::Int((marker as i8).into()),
        0x90..=0x9f => array(rest, usize::from(marker & 0x0f)),
        0xa0..=0xbf => text(bytes(rest, usize::from(marker & 0x1f))),
        0xc0 => Tree::Nil,
        0xc2 | 0xc3 => Tree::Bool(marker == 0xc3),
        0xc4 | 0xc5 => {
            let len = number(rest, 1 << (marker - 0xc4));
            Tree::Bytes(bytes(rest, len as usize))
        }
        0xcc..=0xcf => Tree::Int(number(rest, 1 << (marker - 0xcc)).into()),
        0xd0..=0xd3 => {
            let width = 1 << (marker - 0xd0);
            let shift = 64 - 8 * width as u32;
            Tree::Int(((number(rest, width) << shift) as i64 >> shift).into())
        }
        0xd9 | 0xda => {
            let len = number(rest, 1 << (marker - 0xd9));
            text(bytes(rest, len as usize))
        }
        0xdc => {
            let len = number(rest, 2);
            array(rest, len as usize)
        }
        _ => panic!("{marker:#04x} is not of the envelope"),
    }
}

fn array(rest: &mut &[u8], len: usize) -> Tree {
    Tree::Array((0..len).map(|_| take(rest)).collect())
}

fn bytes(rest: &mut &[u8], len: usize) -> Vec<u8> {
    let (head, tail) = rest.split_at(len);
    *rest = tail;
    head.to_vec()
}

fn number(rest: &mut &[u8], width: usize) -> u64 {
    bytes(rest, width).iter().fold(0, |n, byte| n << 8 | u64::from(*byte))
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
