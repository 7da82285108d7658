//! A writer that goes forwards through a file and may leave room.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

const BUFFER_BYTES: usize = 256 << 10;

#[derive(Debug)]
pub(super) struct Sink<'a> {
    file: &'a File,
    /// Where the buffer begins in the file.
    place: u64,
    buffer: Vec<u8>,
}

impl<'a> Sink<'a> {
    pub(super) fn new(file: &'a File, place: u64) -> Self {
        Self {
            file,
            place,
            buffer: Vec::with_capacity(BUFFER_BYTES),
        }
    }

    /// Goes on at a place that is not before what was written. Room on the way reads as zeros.
    pub(super) fn go_to(&mut self, place: u64) -> io::Result<()> {
        let here = self.place + self.buffer.len() as u64;
        let room = place.checked_sub(here);
        match room.and_then(|room| usize::try_from(room).ok()) {
            Some(room) if room < BUFFER_BYTES => {
                self.buffer.resize(self.buffer.len() + room, 0);
            }
            Some(_) | None => {
                self.flush()?;
                self.place = place;
            }
        }
        Ok(())
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BUFFER_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.file.write_all_at(&self.buffer, self.place)?;
        self.place += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}
