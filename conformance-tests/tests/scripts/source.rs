//! Parses as much of Lua and SQL as is needed to change scripts and statements.

/// Whether a byte of the source is code, text in quotes, or a comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Code,
    Text,
    Comment,
}

/// The source of a Lua script or a SQL statement, with the kind of each byte: code, quoted
/// text or comment.
pub(crate) struct Source<'a> {
    source: &'a str,
    parts: Vec<Part>,
}

impl<'a> Source<'a> {
    /// Parses a source in which strings and comments end with their line. Lua's long
    /// strings and comments are not supported.
    pub(crate) fn read(source: &'a str) -> Self {
        let (mut parts, mut quote, mut is_comment) = (Vec::new(), None, false);
        let bytes = source.as_bytes();
        for (at, byte) in bytes.iter().enumerate() {
            if *byte == b'\n' {
                (quote, is_comment) = (None, false);
            } else if quote.is_none() && bytes[at..].starts_with(b"--") {
                is_comment = true;
            }
            parts.push(match quote {
                _ if is_comment => Part::Comment,
                Some(_) => Part::Text,
                None if matches!(byte, b'\'' | b'"') => Part::Text,
                None => Part::Code,
            });
            if is_comment {
                continue;
            }
            match quote {
                Some(open) if open == *byte && bytes[at - 1] != b'\\' => quote = None,
                None if matches!(byte, b'\'' | b'"') => quote = Some(*byte),
                _ => {}
            }
        }
        Self { source, parts }
    }

    /// Returns the offsets at which `words` occurs in code. Quoted text and comments do
    /// not count.
    pub(crate) fn find(&self, words: &str) -> Vec<usize> {
        let found = self.source.match_indices(words).map(|(at, _)| at);
        found.filter(|at| self.parts[*at] == Part::Code).collect()
    }

    /// Whether the byte at this offset is code.
    pub(crate) fn is_code(&self, at: usize) -> bool {
        self.parts[at] == Part::Code
    }

    /// Returns the offset behind the closing bracket of the Lua call whose name
    /// begins at `start`.
    pub(crate) fn end_of_call(&self, start: usize) -> Option<usize> {
        let mut depth = 0;
        for at in start..self.source.len() {
            if self.parts[at] != Part::Code {
                continue;
            }
            match self.source.as_bytes()[at] {
                b'(' => depth += 1,
                b')' if depth == 1 => return Some(at + 1),
                b')' => depth -= 1,
                _ => {}
            }
        }
        None
    }

    /// Whether the text from `start` to `end` is a whole statement of Lua.
    pub(crate) fn is_statement(&self, start: usize, end: usize) -> bool {
        let before = self.source[..start].trim_end_matches(' ');
        let begins = ["\n", "then", "do", "else", "", ")"];
        let starts_line = before.is_empty() || before.ends_with('\n');
        let is_after_word = begins[1..4].iter().any(|word| before.ends_with(word));
        let behind = self.source[end..].trim_start_matches(' ');
        let ends = behind.is_empty()
            || ["\n", "end", "else", "--"].iter().any(|it| behind.starts_with(it));
        // The call is only a part of a statement if the next line continues the same
        // expression.
        let goes_on = behind.trim_start().starts_with([',', ')', '+', '=', '~']);
        (starts_line && !self.is_inside(start) || is_after_word) && ends && !goes_on
    }

    /// Whether the offset is inside brackets.
    fn is_inside(&self, at: usize) -> bool {
        let line = self.source[..at].rfind("\n\n").unwrap_or(0);
        let mut depth = 0;
        for (at, byte) in self.source.bytes().enumerate().take(at).skip(line) {
            if self.parts[at] == Part::Code {
                depth += i32::from(matches!(byte, b'(' | b'{'));
                depth -= i32::from(matches!(byte, b')' | b'}'));
            }
        }
        depth > 0
    }

    /// The offsets of calls of a Lua script's own functions that are whole statements.
    pub(crate) fn calls(&self) -> Vec<usize> {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let bytes = self.source.as_bytes();
        let starts = (0..bytes.len()).filter(|at| {
            let begins = *at == 0 || !is_name(bytes[at - 1]) && bytes[at - 1] != b'.';
            self.parts[*at] == Part::Code && bytes[*at].is_ascii_lowercase() && begins
        });
        let is_call = |at: &usize| {
            let name: usize =
                bytes[*at..].iter().take_while(|byte| is_name(**byte)).count();
            bytes.get(at + name) == Some(&b'(')
        };
        starts.filter(is_call).collect()
    }
}
