//! Server-sent events out of bytes, however they are cut.

/// The longest line and the most data of one event in bytes: more is no event of a model.
const MOST: usize = 32 << 20;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// What it is called; empty where the stream gives no name.
    pub name: String,
    /// Its data, the lines joined by newlines.
    pub data: String,
}

/// A line or an event is longer than any event of a model.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream is longer than {} MiB", MOST >> 20)]
pub struct EventTooLong;

/// Puts lines together to events.
#[derive(Debug, Default)]
pub struct Events {
    line: Vec<u8>,
    /// The last line ended with CR: an LF behind it belongs to the same end.
    after_cr: bool,
    begun: bool,
    name: String,
    data: Option<String>,
}

impl Events {
    /// Takes the next bytes and gives the events that they complete.
    pub fn take(&mut self, bytes: &[u8]) -> Result<Vec<Event>, EventTooLong> {
        let mut found = Vec::new();
        let mut rest = bytes;
        while let Some(at) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (piece, behind) = rest.split_at(at);
            let is_lf = behind.first() == Some(&b'\n');
            rest = behind.get(1..).unwrap_or_default();
            let second_half = is_lf && self.after_cr && piece.is_empty();
            self.after_cr = !is_lf;
            if !second_half {
                self.line.extend_from_slice(piece);
                found.extend(self.end_line()?);
            }
        }
        if !rest.is_empty() {
            self.after_cr = false;
            self.line.extend_from_slice(rest);
        }
        if self.line.len() > MOST { Err(EventTooLong) } else { Ok(found) }
    }

    /// The event that a stream leaves unended when its last blank line is missing.
    pub fn finish(mut self) -> Option<Event> {
        let ended = self.end_line();
        ended.ok().flatten().or_else(|| self.end_event())
    }

    fn end_line(&mut self) -> Result<Option<Event>, EventTooLong> {
        let bytes = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&bytes);
        let line = if self.begun { &*text } else { text.trim_start_matches('\u{feff}') };
        self.begun = true;
        if line.is_empty() {
            return Ok(self.end_event());
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.name),
            "data" => self.add(value)?,
            // A comment, an id, or what a later version of the format may add.
            _ => {}
        }
        Ok(None)
    }

    fn add(&mut self, value: &str) -> Result<(), EventTooLong> {
        match &mut self.data {
            Some(data) => {
                data.push('\n');
                data.push_str(value);
            }
            None => self.data = Some(value.to_owned()),
        }
        let length = self.data.as_ref().map_or(0, String::len);
        if length > MOST { Err(EventTooLong) } else { Ok(()) }
    }

    fn end_event(&mut self) -> Option<Event> {
        let name = std::mem::take(&mut self.name);
        self.data.take().map(|data| Event { name, data })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn whole(bytes: &[u8]) -> Vec<Event> {
        cut(bytes, &[])
    }

    fn cut(bytes: &[u8], places: &[usize]) -> Vec<Event> {
        let (mut events, mut found, mut from) = (Events::default(), Vec::new(), 0);
        let mut places: Vec<usize> = places.iter().map(|it| it % (bytes.len() + 1)).collect();
        places.sort_unstable();
        places.push(bytes.len());
        for place in places {
            found.extend(events.take(&bytes[from..place]).unwrap());
            from = place;
        }
        found.extend(events.finish());
        found
    }

    fn event(name: &str, data: &str) -> Event {
        Event { name: name.to_owned(), data: data.to_owned() }
    }

    #[test]
    fn events_are_read_in_all_spellings() {
        let text = "\u{feff}: hello\n\nevent: a\r\ndata: 1\r\n\r\ndata:2\ndata\ndata:  3\nid: 7\n\n\
                    retry\n\nevent: lost\n\ndata: x\r\rdata: [DONE]";
        let expected = [event("a", "1"), event("", "2\n\n 3"), event("", "x"), event("", "[DONE]")];
        assert_eq!(whole(text.as_bytes()), expected);
        assert_eq!(whole(b"data: \xff\n\n"), [event("", "\u{fffd}")]);
        assert_eq!(whole(b""), []);
    }

    #[test]
    fn a_line_without_end_is_no_event() {
        let mut events = Events::default();
        let piece = vec![b'x'; 1 << 20];
        let taken = (0..40).map(|_| events.take(&piece)).find(Result::is_err);
        assert_eq!(taken, Some(Err(EventTooLong)));
        let mut events = Events::default();
        let line = [b"data: ".as_slice(), &piece, b"\n"].concat();
        let taken = (0..40).map(|_| events.take(&line)).find(Result::is_err);
        assert_eq!(taken, Some(Err(EventTooLong)));
    }

    proptest! {
        #[test]
        fn the_same_events_however_cut(
            pieces in prop::collection::vec(
                prop::sample::select(vec![
                    "data: one", "data:", "event: e", ": c", "\n", "\r\n", "\r", "\n\n", "ü", "x:",
                ]),
                0..40,
            ),
            places in prop::collection::vec(any::<usize>(), 0..12),
        ) {
            let bytes = pieces.concat().into_bytes();
            prop_assert_eq!(whole(&bytes), cut(&bytes, &places));
        }

        #[test]
        fn no_bytes_are_too_odd(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            places in prop::collection::vec(any::<usize>(), 0..6),
        ) {
            prop_assert_eq!(whole(&bytes), cut(&bytes, &places));
        }
    }
}
