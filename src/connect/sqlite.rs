//! Opens URLs of the form `sqlite:PATH`, and the URL `sqlite::memory:`.

use std::sync::Arc;

use relq_core::QueueName;
use relq_sqlite::{Durability, MissingFile, SqliteConfig, SqliteQueue};

use super::{
    ConnectError,
    opening::{Opening, Options, bad_url},
};

const MEMORY: &str = ":memory:";

pub(super) fn open(url: &str, queue: QueueName, options: Options) -> Opening<'_> {
    Box::pin(async move {
        let missing_file = match options.missing_file {
            super::opening::MissingFile::Create => MissingFile::Create,
            super::opening::MissingFile::Refuse => MissingFile::Refuse,
        };
        let config = config(url)?.environment(options.environment);
        let config = config.missing_file(missing_file);
        let queue = SqliteQueue::open(config, queue).await?;
        Ok(Arc::new(queue) as _)
    })
}

/// Reads the settings from a SQLite URL. The path ends at the first `?` and is taken as
/// it is. Two slashes before it (`sqlite://PATH`) are skipped, because the URLs of
/// other programs have them.
pub(super) fn config(url: &str) -> Result<SqliteConfig, ConnectError> {
    let rest = url.split_once(':').map_or(url, |(_scheme, rest)| rest);
    let (path, options) = rest.split_once('?').unwrap_or((rest, ""));
    let config = match path.strip_prefix("//").unwrap_or(path) {
        "" => return Err(bad_url(url, "it names no file, as sqlite:jobs.db does")),
        MEMORY => SqliteConfig::memory(),
        file => SqliteConfig::file(file),
    };
    let options = options.split('&').filter(|option| !option.is_empty());
    options.into_iter().try_fold(config, |config, option| {
        set(config, option).map_err(|reason| bad_url(url, reason))
    })
}

fn set(config: SqliteConfig, option: &str) -> Result<SqliteConfig, String> {
    match option.split_once('=').unwrap_or((option, "")) {
        ("synchronous", "full") => Ok(config.durability(Durability::Full)),
        ("synchronous", "normal") => Ok(config.durability(Durability::Normal)),
        ("synchronous", other) => {
            Err(format!("synchronous is full or normal, not {other:?}"))
        }
        (name, _) => Err(format!("it has no option {name:?}, only synchronous")),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use relq_sqlite::Location;

    use super::*;

    #[test]
    fn a_path_is_taken_as_it_stands() {
        let location = |url| config(url).unwrap().location;
        let file = |path| Location::File(PathBuf::from(path));
        assert_eq!(location("sqlite::memory:"), Location::Memory);
        assert_eq!(location("sqlite:jobs.db"), file("jobs.db"));
        assert_eq!(location("sqlite:/a b/c%20d.db"), file("/a b/c%20d.db"));
        assert_eq!(location("sqlite:///var/jobs.db"), file("/var/jobs.db"));
        assert_eq!(location("sqlite:a.db?synchronous=normal"), file("a.db"));
    }

    #[test]
    fn options_are_read_or_refused() {
        let durability = |url| config(url).unwrap().durability;
        assert_eq!(durability("sqlite:a.db"), Durability::Full);
        assert_eq!(durability("sqlite:a.db?synchronous=normal"), Durability::Normal);
        for (url, why) in [
            ("sqlite:", "names no file"),
            ("sqlite:?synchronous=full", "names no file"),
            ("sqlite:a.db?synchronous=off", "full or normal"),
            ("sqlite:a.db?sync=full", "no option"),
        ] {
            let error = config(url).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
