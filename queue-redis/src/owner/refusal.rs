//! Why a client must not use a queue, as the text of an error. The text names what the
//! user can do next.

use super::Owner;
use crate::{
    Partition, RedisConfig,
    layout::{self, Layout},
    marker::{FORMAT, Marker},
    partition::{self, Stored},
};

impl Owner {
    /// The reason why this backend must not use a queue with that marker; `None` if it
    /// may.
    pub(crate) fn why_not(
        &self,
        marker: Option<Marker>,
        value: &[u8],
        config: &RedisConfig,
    ) -> Option<String> {
        let (queue, asked) = (self.keys.producer(), self.backend);
        let Some(marker) = marker else { return Some(self.no_marker(value, config)) };
        let newer = |what: String| {
            Some(format!(
                "the queue {queue:?} was written by a newer relq: its marker \
                 \"{marker}\" has {what}; nothing was changed: use a newer relq"
            ))
        };
        if marker.is_newer() {
            return newer(format!(
                "the format {}, and this relq knows {FORMAT}",
                marker.format
            ));
        }
        if marker.backend != asked {
            let (owner, url) = (&marker.backend, config.url_of(&marker));
            return Some(format!(
                "the queue {queue:?} belongs to the backend {owner}, but the backend \
                 {asked} opened it; nothing was changed: open it with {url}"
            ));
        }
        let known = Layout::of(asked).map_or(&[][..], |layout| layout.options);
        let unknown = marker
            .options
            .iter()
            .find(|it| !known.contains(&it.as_str()) && !partition::is_known(it));
        if let Some(option) = unknown {
            return newer(format!("{option}, which is not known here"));
        }
        self.why_not_this_part(&marker, config)
    }

    /// The reason for a queue whose marker cannot be read.
    fn no_marker(&self, value: &[u8], config: &RedisConfig) -> String {
        let (queue, asked) = (self.keys.producer(), self.backend);
        let (key, value) = (self.keys.part(layout::MARKER), value.escape_ascii());
        let set = self.command_to_set(config);
        format!(
            "the key {key:?} holds \"{value}\", which is no marker of a queue: if the \
             backend {asked} wrote the queue {queue:?}, stop its clients and correct the \
             marker with `{set}`"
        )
    }

    /// The reason why a client that opened the queue as this part must not use a queue
    /// with that marker of the same backend.
    fn why_not_this_part(
        &self,
        marker: &Marker,
        config: &RedisConfig,
    ) -> Option<String> {
        let stored = Stored::of(marker);
        if self.partition.admits(stored) {
            return None;
        }
        let queue = self.keys.producer();
        let why = match (self.partition, stored) {
            (Partition::Other { number, .. }, Stored::First(_)) => format!(
                "the queue {queue:?} is a queue of its own and cannot be part {number} \
                 of another; nothing was changed: move its jobs to another name, or \
                 give the partitioned queue another name"
            ),
            (_, Stored::Other(number)) => {
                is_a_part(&queue, number, &config.url_of(marker))
            }
            (Partition::Whole, Stored::First(parts)) => format!(
                "the queue {queue:?} has {parts} parts; nothing was changed: open it \
                 with {}",
                config.url_of(marker)
            ),
            (_, Stored::First(parts)) => format!(
                "the queue {queue:?} has {parts} {}, and was opened with another \
                 number; nothing was changed: open it with {}, or change the number \
                 as docs/scale.md says, of which `{}` is the last step",
                if parts == 1 { "part" } else { "parts" },
                config.url_of(marker),
                self.command_to_set(config)
            ),
        };
        Some(why)
    }

    /// Why this client must not use the queue whose keys have these values, as
    /// [`writing_first`](Self::writing_first) returns them; `None` if it may.
    pub(crate) fn why_not_written(
        &self,
        values: Option<&[Vec<u8>]>,
        config: &RedisConfig,
    ) -> Option<String> {
        let Some(values) = values else { return Some(self.unmarked(config)) };
        let marker = values.first().map(Vec::as_slice).unwrap_or_default();
        self.why_not(Marker::parse(marker), marker, config)
    }

    /// Returns the reason why this queue must not use the database: the database's key
    /// names another queue as the owner.
    pub(crate) fn why_no_database(
        &self,
        value: &[u8],
        config: &RedisConfig,
    ) -> Option<String> {
        if value == self.keys.producer().as_bytes() {
            return None;
        }
        let other = String::from_utf8_lossy(value);
        Some(format!(
            "the database at {config} belongs to the queue {other:?}, and a queue of \
             this pattern needs a database of its own: name another one in the URL, \
             as in redis://host/2"
        ))
    }

    /// The reason for a queue with keys of relq's and without a marker.
    pub(super) fn unmarked(&self, config: &RedisConfig) -> String {
        let (queue, asked, set) =
            (self.keys.producer(), self.backend, self.command_to_set(config));
        format!(
            "the queue {queue:?} has keys of relq's and no marker that says which \
             backend wrote them; nothing was changed: if it was {asked}, stop its \
             clients and write the marker with `{set}`"
        )
    }

    /// The reason for a new queue whose number of parts this client does not know.
    pub(super) fn of_unknown_parts(&self) -> String {
        format!(
            "the queue {:?} has no marker yet, and a client that has opened one part \
             alone does not know how many parts that queue must have; nothing was \
             changed: run `relq recover` with the URL of the whole queue, or write the \
             marker with `relq marker set`",
            self.keys.producer()
        )
    }

    /// The shell command that marks the queue for this backend, to show in an error.
    fn command_to_set(&self, config: &RedisConfig) -> String {
        let queue = quoted(&self.keys.producer());
        let url = quoted(&config.url_of(&self.marker()));
        format!("relq marker set -q {queue} --url {url}")
    }
}

/// A word in the quotes that a shell needs, if it needs any.
fn quoted(word: &str) -> String {
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:+@,=".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Says that the queue is a part of another one, and what to open in its place. `alone` is
/// the URL that opens this part alone.
fn is_a_part(queue: &str, number: u16, alone: &str) -> String {
    let whole = queue.strip_suffix(&format!(":{number}")).unwrap_or(queue);
    format!(
        "the queue {queue:?} is part {number} of the queue {whole:?}; nothing was changed: \
         open {whole:?}, whose URL `relq marker show -q {}` prints, or this part alone with \
         {alone}",
        quoted(whole)
    )
}

#[cfg(test)]
mod tests {
    use relq_core::QueueName;

    use super::*;

    fn why_not(asked: &'static str, marker: &str) -> Option<String> {
        let config = RedisConfig::new("redis://me:s3cret@host:7000/3").unwrap();
        let queue = QueueName::new("emails").unwrap();
        let value = marker.as_bytes();
        let why =
            Owner::new(asked, queue).why_not(Marker::parse(value), value, &config);
        assert!(!why.as_ref().is_some_and(|why| why.contains("s3cret")), "{why:?}");
        why
    }

    #[test]
    fn the_owner_and_its_options_are_let_in() {
        for (asked, marker) in [
            ("zset", "relq 4 zset"),
            ("processing-list", "relq 4 processing-list"),
            ("processing-list", "relq 4 processing-list mode=shared"),
            ("circular", "relq 4 circular finish=lrem"),
        ] {
            assert_eq!(why_not(asked, marker), None);
        }
    }

    #[test]
    fn another_backend_is_refused_with_the_owner_and_its_url() {
        for (marker, url) in [
            ("relq 4 stream", "stream+redis://host:7000/3"),
            (
                "relq 4 processing-list mode=shared",
                "processing-list+redis://host:7000/3?mode=shared",
            ),
        ] {
            let why = why_not("zset", marker).unwrap();

            assert!(why.contains(url) && why.contains("backend zset"), "{why}");
        }
    }

    #[test]
    fn a_newer_format_or_option_is_named() {
        for (marker, named) in [
            ("relq 5 zset", "format 5"),
            ("relq 4 zset tenants=4", "tenants=4"),
            ("relq 4 zset partitions=many", "partitions=many"),
            ("relq 4 processing-list mode=other", "mode=other"),
        ] {
            let asked =
                if marker.contains("list") { "processing-list" } else { "zset" };
            let why = why_not(asked, marker).unwrap();

            assert!(why.contains("newer relq") && why.contains(named), "{why}");
        }
    }

    #[test]
    fn another_number_of_parts_is_refused_with_the_right_url() {
        for (marker, words) in [
            (
                "relq 4 zset partitions=3",
                "open it with zset+redis://host:7000/3?partitions=3",
            ),
            ("relq 4 zset part=2", "relq marker show -q emails"),
        ] {
            let why = why_not("zset", marker).unwrap();

            assert!(
                why.contains(words) && why.contains("nothing was changed"),
                "{why}"
            );
        }
    }

    #[test]
    fn a_damaged_marker_is_refused_with_the_command_that_repairs_it() {
        let why = why_not("zset", "nonsense\n").unwrap();

        let command = "relq marker set -q emails --url zset+redis://host:7000/3";
        assert!(why.contains(command) && why.contains(r"nonsense\n"), "{why}");
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(quoted("a+b://c:1/2"), "a+b://c:1/2");
        assert_eq!(quoted("a?b=c"), "'a?b=c'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
