//! Divides the output of a command into whole lines.

/// The longest line that is kept in memory until its end. A longer one is cut into
/// pieces of this length, each on a line of its own.
pub(super) const LONGEST_LINE: usize = 64 << 10;

/// Collects output until its line is complete.
#[derive(Debug)]
pub(super) struct WholeLines {
    /// The text that is put before each line; may be empty.
    tag: Vec<u8>,
    unfinished: Vec<u8>,
}

impl WholeLines {
    pub(super) fn new(tag: Vec<u8>) -> Self {
        Self { tag, unfinished: Vec::new() }
    }

    /// Adds output. Returns the lines that are complete now.
    pub(super) fn add(&mut self, output: &[u8]) -> Vec<u8> {
        let mut lines = Vec::new();
        for part in output.split_inclusive(|byte| *byte == b'\n') {
            let (text, has_ended) = match part.strip_suffix(b"\n") {
                Some(text) => (text, true),
                None => (part, false),
            };
            self.add_text(text, &mut lines);
            if has_ended {
                self.end_line(&mut lines);
            }
        }
        lines
    }

    /// Called at the end of the output. If the last line has no newline, returns it
    /// with one added.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        let mut lines = Vec::new();
        if !self.unfinished.is_empty() {
            self.end_line(&mut lines);
        }
        lines
    }

    fn add_text(&mut self, mut text: &[u8], lines: &mut Vec<u8>) {
        while self.unfinished.len() + text.len() > LONGEST_LINE {
            let (fits, rest) = text.split_at(LONGEST_LINE - self.unfinished.len());
            self.unfinished.extend(fits);
            self.end_line(lines);
            text = rest;
        }
        self.unfinished.extend(text);
    }

    fn end_line(&mut self, lines: &mut Vec<u8>) {
        lines.extend(&self.tag);
        lines.append(&mut self.unfinished);
        lines.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_lines_come_out() {
        let mut lines = WholeLines::new(Vec::new());
        assert_eq!(lines.add(b"a"), b"");
        assert_eq!(lines.add(b"b\n\nc"), b"ab\n\n");
        assert_eq!(lines.finish(), b"c\n");
        assert_eq!(lines.finish(), b"");
    }

    #[test]
    fn each_line_begins_with_the_tag() {
        let mut lines = WholeLines::new(b"id\t".to_vec());
        assert_eq!(lines.add(b"a\n\nb"), b"id\ta\nid\t\n");
        assert_eq!(lines.finish(), b"id\tb\n");
    }

    #[test]
    fn a_long_line_is_cut_and_never_kept_whole() {
        let mut lines = WholeLines::new(Vec::new());
        let mut out = Vec::new();
        for _ in 0..5 {
            out.extend(lines.add(&[b'x'; LONGEST_LINE / 2]));
            assert!(lines.unfinished.len() <= LONGEST_LINE);
        }
        out.extend(lines.add(b"\n"));
        let lengths: Vec<_> =
            out.split(|byte| *byte == b'\n').map(<[u8]>::len).collect();
        assert_eq!(lengths, [LONGEST_LINE, LONGEST_LINE, LONGEST_LINE / 2, 0]);
    }

    #[test]
    fn a_line_of_exactly_the_longest_length_stays_one() {
        let mut lines = WholeLines::new(Vec::new());
        let text = [b'x'; LONGEST_LINE];
        assert_eq!(lines.add(&text), b"");
        assert_eq!(lines.add(b"\n").len(), LONGEST_LINE + 1);
    }
}
