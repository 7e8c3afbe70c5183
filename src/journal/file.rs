//! A journal in a file that anybody may append to, cut, replace or delete at any moment.
//!
//! It never shortens or rewrites what others wrote, except in `replace`, and never follows a link.

use std::{fs::File, io, path::PathBuf};

use parking_lot::{Mutex, MutexGuard};

use super::{
    AppendError, Batch, Journal, Position, ReadError, Subscription, Tick, Wakes,
    append::{Failure, append, objection},
    generation::{Before, Generation},
    scan::{Hints, Reader},
    source::Source,
    tail::{Due, Extent, Tail, due},
};
use crate::base::{FileError, Folder, Moment, Wake, broken};

/// One journal; the file is made by the first append.
pub struct FileJournal {
    place: Place,
    state: Mutex<State>,
    wakes: Wakes,
}

/// Where the file is.
#[derive(Debug, Clone)]
pub struct Place {
    /// The folder that is there.
    pub root: Folder,
    /// The folders on the way, which need not be there.
    pub folders: Vec<String>,
    /// The file's name.
    pub name: String,
}

#[derive(Default)]
struct State {
    folder: Option<Folder>,
    file: Option<File>,
    /// The file's length at the last look.
    seen: u64,
    generation: Generation,
    hints: Hints,
    /// Behind the last line that was appended here.
    own_end: Option<u64>,
    tail: Option<Tail>,
    /// The generation and length that wakes were told of.
    told: Option<(u64, u64)>,
    /// Whether the folders are known to hold the file after a power cut.
    is_entered: bool,
}

impl Place {
    fn path(&self) -> PathBuf {
        let mut path = self.root.path().to_path_buf();
        path.extend(&self.folders);
        path.join(&self.name)
    }

    /// The folder, made where it is missing.
    fn make_folder(&self) -> Result<Folder, FileError> {
        self.folders.iter().try_fold(self.root.clone(), |folder, name| folder.inside(name))
    }

    /// The folder; `None` where there is none, so that reading makes nothing.
    fn find_folder(&self) -> Result<Option<Folder>, FileError> {
        let is_there = self.path().parent().is_some_and(std::path::Path::is_dir);
        if is_there { self.make_folder().map(Some) } else { Ok(None) }
    }

    fn failed(&self, doing: &'static str) -> impl Fn(io::Error) -> FileError {
        let path = self.path();
        move |why| FileError::Io { doing, path: path.clone(), why }
    }
}

impl FileJournal {
    /// The journal at `place`, which is not touched yet.
    pub fn new(place: Place) -> Self {
        Self { place, state: Mutex::default(), wakes: Wakes::default() }
    }

    /// Tells all who wait for a change.
    pub fn notify(&self) {
        self.wakes.notify();
    }

    /// Completes a tail that has rested, and says when to look again. With [`Tick::All`] it also
    /// tells of changes that no event told of.
    pub fn tend(&self, now: Moment, what: Tick) -> Result<Option<Moment>, ReadError> {
        let (is_changed, next) = {
            let mut state = self.look()?;
            let (is_completed, next) = self.tend_tail(&mut state, now)?;
            let seen = Some((state.generation.number(), state.seen));
            let is_untold = what == Tick::All && state.told != seen;
            if is_untold || is_completed {
                state.told = seen;
            }
            (is_untold || is_completed, next)
        };
        if is_changed {
            self.wakes.notify();
        }
        Ok(next)
    }

    fn tend_tail(
        &self,
        state: &mut State,
        now: Moment,
    ) -> Result<(bool, Option<Moment>), FileError> {
        let State { file: Some(file), generation, hints, tail, .. } = state else {
            state.tail = None;
            return Ok((false, None));
        };
        let failed = self.place.failed("read");
        let generation = generation.number();
        let mut reader = Reader::new(&*file, hints, generation).map_err(&failed)?;
        let start = reader.line_end().map_err(&failed)?;
        let extent = Extent { generation, start, end: reader.length() };
        match due(tail, extent, now, || reader.is_whole_from(start)).map_err(&failed)? {
            Due::Nothing => Ok((false, None)),
            Due::At(moment) => Ok((false, Some(moment))),
            Due::Now => {
                // Others may have written meanwhile: then it is a blank line, or it comes between
                // two parts of one that took its writer half a minute.
                io::Write::write(file, b"\n").map_err(self.place.failed("write"))?;
                state.tail = None;
                state.seen = file.length().map_err(failed)?;
                Ok((true, None))
            }
        }
    }

    /// Takes the state after making sure that its file is the one in place.
    fn look(&self) -> Result<MutexGuard<'_, State>, FileError> {
        let mut state = self.state.lock();
        if state.folder.is_none() {
            state.folder = self.place.find_folder()?;
        }
        let Some(folder) = state.folder.clone() else { return Ok(state) };
        let name = &self.place.name;
        let length_of = |file: &File| file.length().map_err(self.place.failed("look at"));
        if let Some(file) = &state.file {
            let length = length_of(file)?;
            if !folder.is_still(name, file) {
                let fresh = folder.open_file(name);
                let how = if matches!(fresh, Ok(None)) { "deleted" } else { "replaced" };
                state.turn(how, length);
                state.file = None;
                state.file = fresh?;
            } else if length < state.seen {
                let seen = state.seen;
                state.turn("truncated", seen);
            }
        } else {
            state.file = folder.open_file(name)?;
        }
        state.seen = state.file.as_ref().map_or(Ok(0), length_of)?;
        Ok(state)
    }

    /// Takes the state after letting a reader go on at `position`.
    fn look_from(&self, position: Position) -> Result<MutexGuard<'_, State>, ReadError> {
        let mut state = self.look()?;
        let before = state.before(position).map_err(self.place.failed("read"))?;
        let (number, seen) = (state.generation.number(), state.seen);
        let verdict = state.generation.judge(position, before, seen);
        if state.generation.number() != number {
            state.forget();
        }
        verdict.map(|()| state)
    }

    fn try_read(&self, after: Position, at_most: usize) -> Result<io::Result<Batch>, ReadError> {
        let mut state = self.look_from(after)?;
        let State { file: Some(file), hints, generation, .. } = &mut *state else {
            return Ok(Ok(Batch { lines: Vec::new(), next: after, nuls: 0 }));
        };
        let reader = Reader::new(&*file, hints, generation.number());
        Ok(reader.and_then(|mut reader| reader.batch(after, at_most)))
    }

    /// Appends to the file in place, which is made where it is missing.
    fn append_here(&self, line: &str) -> Result<Position, AppendError> {
        let mut state = self.look().map_err(AppendError::NotAppended)?;
        state.make_file(&self.place).map_err(AppendError::NotAppended)?;
        let State { folder: Some(folder), file: Some(file), hints, generation, own_end, .. } =
            &mut *state
        else {
            broken("an append has made its file")
        };
        let failed = self.place.failed("append to");
        let place = append(&mut &*file, line, *own_end).map_err(|failure| match failure {
            Failure::Absent(why) => AppendError::NotAppended(failed(why)),
            Failure::Unknown(why) => AppendError::Unknown(failed(why)),
        })?;
        *own_end = Some(place);
        if !folder.is_still(&self.place.name, file) {
            let why =
                "it was replaced while a line was written to it; leave it in place".to_owned();
            return Err(AppendError::Unknown(FileError::Refused { path: self.place.path(), why }));
        }
        let reader = Reader::new(&*file, hints, generation.number());
        let position = reader.and_then(|mut reader| reader.position(place));
        state.seen = state.seen.max(place);
        position.map_err(|why| AppendError::Unknown(failed(why)))
    }
}

impl State {
    fn turn(&mut self, how: &'static str, length: u64) {
        self.generation.turn(how, length);
        self.forget();
    }

    /// Drops what was known of the generation before.
    fn forget(&mut self) {
        self.hints = Hints::default();
        self.own_end = None;
        self.is_entered = false;
    }

    fn before(&mut self, position: Position) -> io::Result<Before> {
        let Some(file) = &self.file else {
            let is_start = position.offset == 0;
            return Ok(if is_start { Before::Same } else { Before::Other("deleted") });
        };
        let mut reader = Reader::new(file, &mut self.hints, position.generation)?;
        if position.offset > reader.length() {
            return Ok(Before::Other("truncated"));
        }
        let is_same = reader.check(position.offset)? == position.check;
        Ok(if is_same { Before::Same } else { Before::Other("replaced") })
    }

    fn make_file(&mut self, place: &Place) -> Result<(), FileError> {
        if self.file.is_none() {
            let folder = place.make_folder()?;
            self.file = Some(folder.make_file(&place.name)?);
            self.folder = Some(folder);
        }
        Ok(())
    }
}

impl Journal for FileJournal {
    fn append(&self, line: &str) -> Result<Position, AppendError> {
        if let Some(why) = objection(line) {
            return Err(AppendError::Invalid(why));
        }
        let appended = self.append_here(line);
        self.wakes.notify();
        appended
    }

    fn read(&self, after: Position, at_most: usize) -> Result<Batch, ReadError> {
        let first = self.try_read(after, at_most)?;
        let batch = match first {
            // The file was cut during the read; the second look tells how.
            Err(why) if why.kind() == io::ErrorKind::UnexpectedEof => {
                self.try_read(after, at_most)?
            }
            batch => batch,
        };
        batch.map_err(self.place.failed("read")).map_err(ReadError::from)
    }

    fn start(&self) -> Result<Position, ReadError> {
        Ok(self.look()?.generation.start())
    }

    fn end(&self) -> Result<Position, ReadError> {
        let mut state = self.look()?;
        let State { file: Some(file), hints, generation, .. } = &mut *state else {
            return Ok(state.generation.start());
        };
        let end = Reader::new(&*file, hints, generation.number()).and_then(|mut reader| {
            let end = reader.line_end()?;
            reader.position(end)
        });
        end.map_err(self.place.failed("read")).map_err(ReadError::from)
    }

    fn anchor(&self, kept: Position) -> Result<(), ReadError> {
        match self.look_from(kept) {
            Ok(_) | Err(ReadError::Lost { .. }) => Ok(()),
            Err(failed @ ReadError::Failed(_)) => Err(failed),
        }
    }

    fn subscribe(&self, wake: &Wake) -> Subscription {
        self.wakes.add(wake)
    }

    fn sync(&self) -> Result<(), FileError> {
        let mut state = self.look()?;
        let Some(file) = &state.file else { return Ok(()) };
        file.sync_data().map_err(self.place.failed("sync"))?;
        if !state.is_entered {
            let mut path = self.place.path();
            for _ in 0..=self.place.folders.len() {
                path.pop();
                let folder = File::open(&path).and_then(|folder| folder.sync_all());
                folder.map_err(|why| FileError::Io { doing: "sync", path: path.clone(), why })?;
            }
            state.is_entered = true;
        }
        Ok(())
    }

    fn back(&self, place: Position, bytes: u64) -> Result<Position, ReadError> {
        let mut state = self.look_from(place)?;
        let State { file: Some(file), hints, generation, .. } = &mut *state else {
            return Ok(place);
        };
        let found = Reader::new(&*file, hints, generation.number()).and_then(|mut reader| {
            let start = reader.line_start(place.offset.saturating_sub(bytes), place.offset)?;
            reader.position(start)
        });
        found.map_err(self.place.failed("read")).map_err(ReadError::from)
    }

    fn close_tail(&self) -> Result<(), ReadError> {
        let mut state = self.look()?;
        let State { file: Some(file), hints, generation, .. } = &mut *state else { return Ok(()) };
        let failed = self.place.failed("read");
        let mut reader = Reader::new(&*file, hints, generation.number()).map_err(&failed)?;
        if reader.line_end().map_err(&failed)? < reader.length() {
            io::Write::write(file, b"\n").map_err(self.place.failed("write"))?;
        }
        Ok(())
    }

    fn replace(&self, line: &str) -> Result<(), AppendError> {
        if let Some(why) = objection(line) {
            return Err(AppendError::Invalid(why));
        }
        let replaced = {
            let mut state = self.look().map_err(AppendError::NotAppended)?;
            let folder = self.place.make_folder().map_err(AppendError::NotAppended)?;
            let replaced = folder.replace(&self.place.name, format!("{line}\n").as_bytes());
            let length = state.seen;
            state.folder = Some(folder);
            if state.file.take().is_some() {
                state.turn("replaced", length);
            }
            state.seen = 0;
            replaced
        };
        self.wakes.notify();
        // Where there was no room nothing was renamed; else it may have happened.
        replaced.map_err(|why| {
            if why.is_passing() { AppendError::NotAppended(why) } else { AppendError::Unknown(why) }
        })
    }
}

#[cfg(test)]
mod tests;
