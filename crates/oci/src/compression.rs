//! How the bytes of a layer are packed.

use std::io::{self, BufRead, Read};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use crate::document::LayerCompression;

impl LayerCompression {
    /// What the packed bytes say.
    pub(crate) fn open<'a>(self, packed: impl BufRead + 'a) -> Box<dyn Read + 'a> {
        match self {
            Self::None => Box::new(packed),
            Self::Gzip => Box::new(MultiGzDecoder::new(packed)),
            Self::Zstd => Box::new(ZstdFrames {
                source: packed,
                decoder: FrameDecoder::new(),
                is_inside: false,
            }),
        }
    }
}

/// Frame after frame, as the format allows; layers that can be read in parts have many, and some
/// that hold nothing for us.
struct ZstdFrames<R> {
    source: R,
    decoder: FrameDecoder,
    is_inside: bool,
}

impl<R: BufRead> Read for ZstdFrames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.is_inside && !self.begin()? {
                return Ok(0);
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                let decoded = self.decoder.decode_blocks(&mut self.source, one);
                decoded.map_err(invalid)?;
            }
            let count = self.decoder.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            self.is_inside = false;
        }
    }
}

impl<R: BufRead> ZstdFrames<R> {
    /// Begins the next frame, if there is one.
    fn begin(&mut self) -> io::Result<bool> {
        while !self.source.fill_buf()?.is_empty() {
            match self.decoder.reset(&mut self.source) {
                Ok(()) => {
                    self.is_inside = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => self.skip(u64::from(length))?,
                Err(error) => return Err(invalid(error)),
            }
        }
        Ok(false)
    }

    fn skip(&mut self, length: u64) -> io::Result<()> {
        let mut part = (&mut self.source).take(length);
        if io::copy(&mut part, &mut io::sink())? < length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }
}

fn invalid(error: FrameDecoderError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    fn unpacked(compression: LayerCompression, packed: &[u8]) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        compression.open(packed).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    #[test]
    fn frames_and_members_follow_each_other() {
        let frame = |text: &[u8]| compress_to_vec(text, CompressionLevel::Fastest);
        let skipped = [
            &0x184d_2a50u32.to_le_bytes()[..],
            &3u32.to_le_bytes(),
            b"abc",
        ]
        .concat();
        let packed = [frame(b"one "), skipped, frame(b"two")].concat();
        assert_eq!(
            unpacked(LayerCompression::Zstd, &packed).unwrap(),
            b"one two"
        );
        let member = |text: &[u8]| {
            let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            packer.write_all(text).unwrap();
            packer.finish().unwrap()
        };
        let packed = [member(b"one "), member(b"two")].concat();
        assert_eq!(
            unpacked(LayerCompression::Gzip, &packed).unwrap(),
            b"one two"
        );
        assert_eq!(
            unpacked(LayerCompression::None, b"one two").unwrap(),
            b"one two"
        );
    }

    #[test]
    fn cut_and_strange_bytes_are_errors() {
        let frame = compress_to_vec(
            &b"some text that is long enough"[..],
            CompressionLevel::Fastest,
        );
        assert!(unpacked(LayerCompression::Zstd, &frame[..frame.len() - 4]).is_err());
        assert!(unpacked(LayerCompression::Zstd, b"no frame").is_err());
        let skip = [
            &0x184d_2a50u32.to_le_bytes()[..],
            &9u32.to_le_bytes(),
            b"abc",
        ]
        .concat();
        assert!(unpacked(LayerCompression::Zstd, &skip).is_err());
        assert!(unpacked(LayerCompression::Gzip, b"no member").is_err());
    }
}
