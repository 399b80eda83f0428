//! A page as a moving picture: an animated WebP of screenshots. Chromium encodes each picture, and this file joins them.
//!
//! The container: <https://developers.google.com/speed/webp/docs/riff_container>.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::console::browser::Page;

/// Size of the pictures, pixels.
const SIZE: (u32, u32) = (800, 500);

/// Least time between two pictures.
const EVERY: Duration = Duration::from_millis(110);

/// Screenshots, each with the time when it was made.
pub struct Film {
    begin: Instant,
    pictures: Vec<(Duration, Vec<u8>)>,
}

impl Film {
    pub fn new() -> Film {
        Film { begin: Instant::now(), pictures: Vec::new() }
    }

    /// Takes so many pictures.
    pub async fn take(&mut self, page: &Page, pictures: usize) {
        for _ in 0..pictures {
            let begin = Instant::now();
            self.pictures.push((self.begin.elapsed(), page.screenshot().await));
            tokio::time::sleep(EVERY.saturating_sub(begin.elapsed())).await;
        }
    }

    /// The film, encoded by the page's browser, which must be able to play it.
    pub async fn develop(self, page: &Page) -> Vec<u8> {
        let mut frames = Vec::new();
        for (at, png) in &self.pictures {
            frames.push((*at, still(page, png).await));
        }
        let film = join(&frames);
        let count = page
            .eval(&format!(
                "(async () => {{ const data = Uint8Array.from(atob('{}'), (c) => c.charCodeAt(0)); \
                 const decoder = new ImageDecoder({{ data, type: 'image/webp' }}); \
                 await decoder.tracks.ready; await decoder.completed; \
                 const {{ image }} = await decoder.decode({{ frameIndex: {} }}); \
                 return [decoder.tracks.selectedTrack.frameCount, image.displayWidth, \
                 image.displayHeight]; }})()",
                STANDARD.encode(&film),
                frames.len() - 1,
            ))
            .await;
        assert_eq!(count, json!([frames.len(), SIZE.0, SIZE.1]));
        film
    }

    /// Writes the film beside the path in `PURVIEW_SCREENSHOT`, if it is set.
    pub async fn write(self, page: &Page) {
        let path = std::env::var_os("PURVIEW_SCREENSHOT").map(PathBuf::from);
        let film = self.develop(page).await;
        if let Some(path) = path.map(|path| path.with_extension("webp")) {
            std::fs::write(&path, &film).unwrap();
            println!("wrote {}, {} bytes", path.display(), film.len());
        }
    }
}

/// Whether a whole film is wanted.
pub fn is_wanted() -> bool {
    std::env::var_os("PURVIEW_SCREENSHOT").is_some()
}

/// A picture as the chunks of a WebP, smaller.
async fn still(page: &Page, png: &[u8]) -> Vec<u8> {
    let (width, height) = SIZE;
    let encoded = page
        .eval(&format!(
            "(async () => {{ const data = Uint8Array.from(atob('{}'), (c) => c.charCodeAt(0)); \
             const picture = await createImageBitmap(new Blob([data], {{ type: 'image/png' }})); \
             const canvas = Object.assign(document.createElement('canvas'), \
             {{ width: {width}, height: {height} }}); \
             const ctx = canvas.getContext('2d', {{ alpha: false }}); \
             ctx.imageSmoothingQuality = 'high'; \
             ctx.drawImage(picture, 0, 0, {width}, {height}); \
             const blob = await new Promise((done) => canvas.toBlob(done, 'image/webp', 0.6)); \
             const bytes = new Uint8Array(await blob.arrayBuffer()); let text = ''; \
             for (const byte of bytes) text += String.fromCharCode(byte); return btoa(text); }})()",
            STANDARD.encode(png)
        ))
        .await;
    let Value::String(text) = encoded else { panic!("{encoded}") };
    let webp = STANDARD.decode(text).unwrap();
    picture_of(&webp).to_vec()
}

/// The chunk with the picture of a WebP without transparency; others, such as a colour profile, are left out.
fn picture_of(webp: &[u8]) -> &[u8] {
    assert_eq!((&webp[..4], &webp[8..12]), (&b"RIFF"[..], &b"WEBP"[..]));
    let mut rest = &webp[12..];
    loop {
        let length = u32::from_le_bytes(rest[4..8].try_into().unwrap()) as usize;
        let (chunk, others) = rest.split_at(8 + length + length % 2);
        match &chunk[..4] {
            b"VP8 " => return chunk,
            other => assert_ne!(other, b"ALPH", "it is transparent"),
        }
        rest = others;
    }
}

/// Pictures with their times as an animated WebP, which repeats for ever.
fn join(frames: &[(Duration, Vec<u8>)]) -> Vec<u8> {
    let of_24_bits = |n: u32| n.to_le_bytes()[..3].to_vec();
    let size = [of_24_bits(SIZE.0 - 1), of_24_bits(SIZE.1 - 1)].concat();
    let chunk = |name: &[u8; 4], data: &[u8]| {
        let length = u32::try_from(data.len()).unwrap().to_le_bytes();
        [&name[..], &length, data, &[0][..data.len() % 2]].concat()
    };
    const ANIMATED: u8 = 2;
    let head = chunk(b"VP8X", &[&[ANIMATED, 0, 0, 0], &size[..]].concat());
    let repeats = chunk(b"ANIM", &[0; 6]);
    let mut body = [b"WEBP".to_vec(), head, repeats].concat();
    for (at, (begin, picture)) in frames.iter().enumerate() {
        let next = frames.get(at + 1).map_or(*begin + EVERY, |(next, _)| *next);
        let shown_ms = u32::try_from((next - *begin).as_millis()).unwrap();
        const NOT_BLENDED: u8 = 2;
        let place = [&[0; 6], &size[..], &of_24_bits(shown_ms), &[NOT_BLENDED]].concat();
        body.extend(chunk(b"ANMF", &[place, picture.clone()].concat()));
    }
    chunk(b"RIFF", &body)
}
