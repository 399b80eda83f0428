//! Passes over values whose form nobody knows: fields that a later release has added.

use super::Other;
use super::read::Reader;

impl Reader<'_> {
    /// Passes over values of any form, without recursion.
    pub(super) fn skip(&mut self, count: usize) -> Result<(), Other> {
        let mut left = count;
        while let Some(rest) = left.checked_sub(1) {
            let marker = self.byte()?;
            let within = match marker {
                0x80..=0x8f => 2 * usize::from(marker & 0x0f),
                0x90..=0x9f => usize::from(marker & 0x0f),
                0xdc | 0xdd => self.length(marker, 0xdb)?,
                0xde | 0xdf => self.length(marker, 0xdd)?.saturating_mul(2),
                _ => {
                    let len = match marker {
                        0xa0..=0xbf => usize::from(marker & 0x1f),
                        0xc4..=0xc6 => self.length(marker, 0xc4)?,
                        0xd9..=0xdb => self.length(marker, 0xd9)?,
                        0xc7..=0xc9 => self.length(marker, 0xc7)?.saturating_add(1),
                        0xcc | 0xd0 => 1,
                        0xcd | 0xd1 | 0xd4 => 2,
                        0xd5 => 3,
                        0xca | 0xce | 0xd2 => 4,
                        0xd6 => 5,
                        0xcb | 0xcf | 0xd3 => 8,
                        0xd7 => 9,
                        0xd8 => 17,
                        0xc1 => return Err(Other::Form),
                        0x00..=0x7f
                        | 0xe0..=0xff
                        | 0xc0
                        | 0xc2
                        | 0xc3
                        | 0x80..=0x9f
                        | 0xdc..=0xdf => 0,
                    };
                    self.take(len)?;
                    0
                }
            };
            // Each value takes at least one byte.
            if within > self.bytes.len() {
                return Err(Other::Form);
            }
            left = rest + within;
        }
        Ok(())
    }
}
