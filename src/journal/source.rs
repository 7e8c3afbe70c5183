//! Bytes that are read by their offset, and the part of them that is held in memory. It knows
//! nothing of lines.

use std::{fs::File, io, os::unix::fs::FileExt};

use rustix::fs::SeekFrom;

/// The least that is read at once.
pub const CHUNK: usize = 64 << 10;

/// Bytes by their offset.
pub trait Source {
    /// How many there are.
    fn length(&self) -> io::Result<u64>;
    /// Reads some of them; none only at the end.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// The first place from `offset` on that is not known to hold NULs alone; or the end.
    fn next_data(&self, offset: u64) -> io::Result<u64>;
}

impl Source for File {
    fn length(&self) -> io::Result<u64> {
        self.metadata().map(|metadata| metadata.len())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, buffer, offset)
    }

    fn next_data(&self, offset: u64) -> io::Result<u64> {
        match rustix::fs::seek(self, SeekFrom::Data(offset)) {
            Ok(data) => Ok(data.max(offset)),
            Err(rustix::io::Errno::NXIO) => self.length(),
            // A file system that knows no holes has none.
            Err(_) => Ok(offset),
        }
    }
}

impl Source for Vec<u8> {
    fn length(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.get(offset..));
        io::Read::read(&mut rest.unwrap_or_default(), buffer)
    }

    fn next_data(&self, offset: u64) -> io::Result<u64> {
        Ok(offset)
    }
}

/// A part of the source that is held in memory.
#[derive(Default)]
pub struct Window {
    start: u64,
    bytes: Vec<u8>,
}

impl Window {
    /// How much memory it takes.
    #[cfg(test)]
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// What is held from `at` on; `None` where that is nothing.
    pub fn from(&self, at: u64) -> Option<&[u8]> {
        let skipped = usize::try_from(at.checked_sub(self.start)?).ok()?;
        self.bytes.get(skipped..).filter(|held| !held.is_empty())
    }

    /// Holds `length` bytes from `from` on and as many again behind, so that a long line is not
    /// loaded anew for each of its objects; nothing from `end` on.
    pub fn fill(
        &mut self,
        source: &impl Source,
        from: u64,
        length: usize,
        end: u64,
    ) -> io::Result<()> {
        self.start = from;
        let wanted = (length + length.max(CHUNK)) as u64;
        let wanted = wanted.min(end.saturating_sub(from));
        self.bytes.resize(usize::try_from(wanted).map_err(|_| io::ErrorKind::OutOfMemory)?, 0);
        let mut filled = 0;
        while let Some(rest) = self.bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match source.read_at(rest, self.start + filled as u64) {
                // The source was cut while this look went on; the next look notices.
                Ok(0) => {
                    self.bytes.truncate(filled);
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                Ok(more) => filled += more,
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(why) => {
                    self.bytes.clear();
                    return Err(why);
                }
            }
        }
        Ok(())
    }
}
