//! Reads pictures of browsers: PNG files of eight bits a sample, without interlacing, with three or four samples a pixel.

use std::io::Read as _;

/// A picture.
pub(crate) struct Picture {
    width: usize,
    samples: usize,
    bytes: Vec<u8>,
}

impl Picture {
    /// Reads a PNG file, which must be of the form that the module names.
    pub(crate) fn read(file: &[u8]) -> Self {
        let (mut rest, mut packed, mut header) = (&file[8..], Vec::new(), Vec::new());
        while rest.len() >= 12 {
            let length = u32::from_be_bytes(rest[..4].try_into().unwrap()) as usize;
            let (kind, data) = (&rest[4..8], &rest[8..8 + length]);
            match kind {
                b"IHDR" => header.extend_from_slice(data),
                b"IDAT" => packed.extend_from_slice(data),
                _ => {}
            }
            rest = &rest[12 + length..];
        }
        let width = u32::from_be_bytes(header[..4].try_into().unwrap()) as usize;
        let samples = match header[8..] {
            [8, 2, 0, 0, 0] => 3,
            [8, 6, 0, 0, 0] => 4,
            _ => panic!("{header:?}"),
        };
        let mut lines = Vec::new();
        flate2::read::ZlibDecoder::new(packed.as_slice()).read_to_end(&mut lines).unwrap();
        let stride = width * samples;
        let mut bytes: Vec<u8> = Vec::with_capacity(lines.len());
        let mut above = vec![0; stride];
        for line in lines.chunks_exact(stride + 1) {
            let mut own = line[1..].to_vec();
            unfilter(line[0], samples, &above, &mut own);
            bytes.extend_from_slice(&own);
            above = own;
        }
        Self { width, samples, bytes }
    }

    /// Returns how far the nearest pixel of a rectangle is from a colour: the sum over red, green and blue.
    pub(crate) fn nearest(&self, from: (usize, usize), to: (usize, usize), colour: [u8; 3]) -> u64 {
        let far = |x: usize, y: usize| {
            let at = (y * self.width + x) * self.samples;
            let pixel = &self.bytes[at..at + 3];
            pixel.iter().zip(colour).map(|(one, other)| u64::from(one.abs_diff(other))).sum::<u64>()
        };
        let pixels = (from.1..to.1.max(from.1 + 1)).flat_map(|y| (from.0..to.0.max(from.0 + 1)).map(move |x| (x, y)));
        pixels.map(|(x, y)| far(x, y)).min().unwrap()
    }
}

/// Turns a filtered line into its bytes (PNG, section 9).
fn unfilter(filter: u8, samples: usize, above: &[u8], own: &mut [u8]) {
    for at in 0..own.len() {
        let left = if at < samples { 0 } else { own[at - samples] };
        let corner = if at < samples { 0 } else { above[at - samples] };
        let guess = match filter {
            0 => 0,
            1 => left,
            2 => above[at],
            3 => u8::midpoint(left, above[at]),
            4 => paeth(left, above[at], corner),
            _ => panic!("filter {filter}"),
        };
        own[at] = own[at].wrapping_add(guess);
    }
}

fn paeth(left: u8, above: u8, corner: u8) -> u8 {
    let estimate = i16::from(left) + i16::from(above) - i16::from(corner);
    let far = |one: u8| (estimate - i16::from(one)).abs();
    match (far(left), far(above), far(corner)) {
        (left_far, above_far, corner_far) if left_far <= above_far && left_far <= corner_far => left,
        (_, above_far, corner_far) if above_far <= corner_far => above,
        _ => corner,
    }
}
