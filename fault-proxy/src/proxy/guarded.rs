//! A server that requires encryption, a password or a database number.
//!
//! The proxy fulfils these requirements at the start of each of its connections, so
//! actors need not know them.

use std::{
    fmt, io,
    net::{TcpStream, ToSocketAddrs},
    path::Path,
    sync::Arc,
    time::Duration,
};

use super::{
    stream::{Address, Stream},
    tls::Tls,
};

/// The port of a server whose URL names none.
const PORT: u16 = 6379;

/// How long a connection to each address of a host may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// The address of a server that requires encryption, a password or a database number,
/// and what it requires. Clones share both.
#[derive(Clone)]
pub struct Guarded(Arc<Guard>);

struct Guard {
    url: String,
    place: Address,
    tls: Option<Tls>,
    greeting: Vec<Vec<String>>,
}

impl Guarded {
    /// Parses `HOST:PORT`, `redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE]`, the same
    /// with `rediss://` for TLS, or `unix:///PATH[?db=…&user=…&pass=…]`. The authority
    /// in the PEM file `ca` must have signed the server's certificate. Without a file,
    /// a publicly trusted authority must have signed it.
    ///
    /// # Errors
    /// When the text has none of these forms, the host is unknown, or the file is not a
    /// valid PEM file.
    pub fn parse(text: &str, ca: Option<&Path>) -> io::Result<Self> {
        let guard = match text.split_once("://") {
            None => tcp(text),
            Some(("redis", rest)) => tcp(rest),
            Some(("rediss", rest)) => in_tls(rest, ca),
            Some(("unix", rest)) => unix(rest),
            Some((scheme, _)) => Err(invalid(&format!("{scheme}:// is not for Redis"))),
        }?;
        Ok(Self(Arc::new(Guard { url: with_scheme(text), ..guard })))
    }

    /// The server's URL, including its secrets.
    pub fn url(&self) -> &str {
        &self.0.url
    }

    pub(crate) async fn connect(&self) -> io::Result<Stream> {
        let stream = Box::pin(Stream::connect(&self.0.place)).await?;
        match &self.0.tls {
            Some(tls) => tls.over(stream).await,
            None => Ok(stream),
        }
    }

    /// The commands that the proxy sends first on each connection: login and database.
    pub(crate) fn greeting(&self) -> &[Vec<String>] {
        &self.0.greeting
    }
}

impl Guard {
    fn new(place: Address, greeting: Vec<Vec<String>>) -> Self {
        Self { url: String::new(), place, tls: None, greeting }
    }
}

impl PartialEq for Guarded {
    fn eq(&self, other: &Self) -> bool {
        self.url() == other.url()
    }
}

impl Eq for Guarded {}

impl fmt::Debug for Guarded {
    /// Prints the address without the password and without the user.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Guarded({:?})", self.0.place)
    }
}

fn with_scheme(text: &str) -> String {
    if text.contains("://") { text.to_owned() } else { format!("redis://{text}") }
}

fn in_tls(rest: &str, ca: Option<&Path>) -> io::Result<Guard> {
    let (place, _) = rest.split_once('/').unwrap_or((rest, ""));
    let host = place.rsplit_once('@').map_or(place, |(_, place)| place);
    let tls = Tls::new(host_and_port(host).0, ca)?;
    Ok(Guard { tls: Some(tls), ..tcp(rest)? })
}

fn host_and_port(place: &str) -> (&str, u16) {
    let found = place.rsplit_once(':');
    let found = found.and_then(|(host, port)| Some((host, port.parse().ok()?)));
    found.unwrap_or((place, PORT))
}

fn tcp(rest: &str) -> io::Result<Guard> {
    let (place, database) = rest.split_once('/').unwrap_or((rest, ""));
    let (user, place) = place.rsplit_once('@').unwrap_or(("", place));
    let (name, password) = user.split_once(':').unwrap_or((user, ""));
    let (host, port) = host_and_port(place);
    let addresses: Vec<_> =
        (host.trim_matches(['[', ']']), port).to_socket_addrs()?.collect();
    // A host may have several addresses, and its server may listen on only one.
    let is_open = |address: &&_| TcpStream::connect_timeout(address, PATIENCE).is_ok();
    let address = addresses.iter().find(is_open).or(addresses.first());
    let address = *address.ok_or_else(|| invalid("the host has no address"))?;
    let greeting = greeting(&decoded(name)?, &decoded(password)?, database)?;
    Ok(Guard::new(Address::Tcp(address), greeting))
}

fn unix(rest: &str) -> io::Result<Guard> {
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let value = |name: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        decoded(pairs.find(|(known, _)| *known == name).map_or("", |(_, value)| value))
    };
    let greeting = greeting(&value("user")?, &value("pass")?, &value("db")?)?;
    Ok(Guard::new(Address::Unix(decoded(path)?.into()), greeting))
}

fn greeting(
    name: &str,
    password: &str,
    database: &str,
) -> io::Result<Vec<Vec<String>>> {
    let words = |words: &[&str]| words.iter().map(ToString::to_string).collect();
    let mut greeting = Vec::new();
    if !password.is_empty() {
        let name = if name.is_empty() { "default" } else { name };
        greeting.push(words(&["AUTH", name, password]));
    }
    if !database.is_empty() {
        let number: Result<u32, _> = database.parse();
        number.map_err(|_| invalid(&format!("{database} is not a number")))?;
        greeting.push(words(&["SELECT", database]));
    }
    Ok(greeting)
}

/// Decodes percent-encoded text such as `%40`.
fn decoded(text: &str) -> io::Result<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (code, behind) = behind.split_at_checked(2).unwrap_or((&[], behind));
        let code = std::str::from_utf8(code).ok();
        let byte = code.and_then(|code| u8::from_str_radix(code, 16).ok());
        bytes.push(byte.ok_or_else(|| invalid("a % without two hex digits"))?);
        rest = behind;
    }
    String::from_utf8(bytes).map_err(|_| invalid("the decoded text is not UTF-8"))
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (String, Vec<Vec<String>>) {
        let guarded = Guarded::parse(text, None).expect("it is a URL");
        (format!("{guarded:?}"), guarded.greeting().to_vec())
    }

    #[test]
    fn a_url_says_all() {
        let (place, greeting) = read("redis://me:a%40b@127.0.0.1:7000/3");

        assert_eq!(place, "Guarded(Tcp(127.0.0.1:7000))", "no password is shown");
        assert_eq!(greeting, [vec!["AUTH", "me", "a@b"], vec!["SELECT", "3"]]);
    }

    #[test]
    fn missing_parts_of_a_url_have_defaults() {
        let place = "Guarded(Tcp(127.0.0.1:6379))".to_owned();
        assert_eq!(read("redis://127.0.0.1"), (place.clone(), vec![]));
        assert_eq!(read("127.0.0.1:6379"), (place, vec![]));
        let greeting = read("redis://:secret@127.0.0.1/").1;
        assert_eq!(greeting, [vec!["AUTH", "default", "secret"]]);
    }

    #[test]
    fn a_socket_has_a_path() {
        let (place, greeting) = read("unix:///run/redis.sock?db=2&pass=secret");

        assert_eq!(place, "Guarded(Unix(\"/run/redis.sock\"))");
        assert_eq!(greeting, [vec!["AUTH", "default", "secret"], vec!["SELECT", "2"]]);
    }

    #[test]
    fn an_invalid_url_is_refused() {
        for text in ["http://127.0.0.1", "redis://127.0.0.1/x", "unix:///a%4"] {
            assert!(Guarded::parse(text, None).is_err(), "{text}");
        }
    }
}
