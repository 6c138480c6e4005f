//! Tests how a connection starts: its name, the scripts that it loads, and the order of
//! the first calls.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::LazyLock;

use relq_conformance::server::Server;
use relq_core::{Error, QueueName, error::Operation};
use relq_redis::{Cmd, Conn, Owner, RedisConfig, Reply, Script};

const LIST: &str = "{q}:list";

static APPEND: LazyLock<Script> = LazyLock::new(|| {
    Script::new("append", "return redis.call('RPUSH', KEYS[1], ARGV[1])")
});
static COUNT: LazyLock<Script> =
    LazyLock::new(|| Script::new("count", "return redis.call('LLEN', KEYS[1])"));

async fn open(url: &str, queue: &str) -> Conn {
    let owner = Owner::new("zset", QueueName::new(queue).unwrap());
    let config = RedisConfig::new(url).unwrap();
    Conn::open_queue(owner, config, [&*APPEND, &*COUNT]).await.unwrap()
}

async fn append(conn: &Conn, element: &str) -> Result<Reply, Error> {
    APPEND.keys(&[LIST]).arg(element).run(conn, Operation::Stats).await
}

async fn count(conn: &Conn) -> u64 {
    let count = COUNT.keys(&[LIST]).run(conn, Operation::Stats).await;
    count.unwrap().count().unwrap()
}

async fn append_plain(conn: &Conn, element: &str) {
    let mut cmd = Cmd::new();
    cmd.arg("RPUSH").arg(LIST).arg(element);
    conn.call(Operation::Stats, &cmd).await.unwrap();
}

fn say(server: &Server, words: &str) -> String {
    say_words(server, &words.split(' ').collect::<Vec<_>>())
}

fn say_words(server: &Server, words: &[&str]) -> String {
    let words: Vec<_> = words.iter().map(|word| word.as_bytes()).collect();
    String::from_utf8(server.command(&words)).unwrap()
}

/// The elements of the test's list, read with LRANGE.
fn elements(server: &Server) -> Vec<String> {
    let reply = say(server, &format!("LRANGE {LIST} 0 -1"));
    let mut lines = reply.lines().skip(1);
    let mut elements = Vec::new();
    while let (Some(_length), Some(element)) = (lines.next(), lines.next()) {
        elements.push(element.to_owned());
    }
    elements
}

fn calls(server: &Server, command: &str) -> u64 {
    let text = say(server, "INFO commandstats");
    let prefix = format!("cmdstat_{command}:calls=");
    let count =
        text.lines().find_map(|line| line.strip_prefix(&prefix)?.split(',').next());
    count.map_or(0, |count| count.parse().unwrap())
}

/// R13: calls that are sent together run in their order on a server that has none of
/// their scripts. A script that is sent again after its call was refused would run
/// behind the second call.
#[tokio::test]
async fn calls_sent_together_keep_their_order_on_a_server_without_their_scripts() {
    let server = Server::start();
    let conn = open(&server.url(), "q").await;

    let (first, second) = (append(&conn, "a"), append_plain(&conn, "b"));
    let (appended, (), counted) = tokio::join!(biased; first, second, count(&conn));

    assert_eq!(appended.unwrap().count().unwrap(), 1);
    assert_eq!((elements(&server), counted), (["a", "b"].map(str::to_owned).into(), 2));
    assert_eq!(calls(&server, "eval"), 0, "no script is sent a second time");
}

/// A connection loads only the scripts that are called and that the server does not
/// have.
#[tokio::test]
async fn only_a_missing_script_that_is_called_is_loaded() {
    let server = Server::start();
    let first = open(&server.url(), "q").await;
    assert_eq!(calls(&server, "script|load"), 0);

    append(&first, "a").await.unwrap();
    append(&first, "b").await.unwrap();
    assert_eq!(calls(&server, "script|load"), 1);

    let second = open(&server.url(), "q").await;
    append(&second, "c").await.unwrap();
    assert_eq!(calls(&server, "script|load"), 1);
    assert_eq!(count(&second).await, 3);
    assert_eq!(calls(&server, "script|load"), 2);
    assert_eq!(calls(&server, "eval"), 0);
}

/// R21: a server that loses its scripts while a connection is open gets them again.
#[tokio::test]
async fn a_flushed_script_is_sent_again() {
    let server = Server::start();
    let conn = open(&server.url(), "q").await;
    append(&conn, "a").await.unwrap();
    say(&server, "SCRIPT FLUSH");

    append(&conn, "b").await.unwrap();
    let (appended, ()) = tokio::join!(append(&conn, "c"), append_plain(&conn, "d"));

    appended.unwrap();
    assert_eq!(elements(&server), ["a", "b", "c", "d"]);
}

/// `CLIENT LIST` shows the queue of each connection, whatever characters the queue's
/// name has.
#[tokio::test]
async fn a_connection_has_a_name() {
    let server = Server::start();
    let _plain = open(&server.url(), "emails").await;
    let _strange = open(&server.url(), "two words").await;
    let config = RedisConfig::new(&server.url()).unwrap();
    let _operator = Conn::open("test", config).await.unwrap();

    let clients = say(&server, "CLIENT LIST");

    for name in ["relq:client:emails", "relq:client:two%20words", "relq:operator"] {
        assert!(clients.contains(&format!(" name={name} ")), "{name}: {clients}");
    }
}

/// An ACL user with the rights that an earlier version needed may not name a connection
/// or ask for scripts. The calls of this user succeed nevertheless.
#[tokio::test]
async fn a_user_of_an_earlier_version_connects() {
    let server = Server::start();
    let rights =
        "~q ~{q}:* +eval +eval_ro +evalsha +info +exists +get +set +time +llen +rpush";
    for (user, more) in [("old", "+script|load"), ("least", "-script|load")] {
        say(&server, &format!("ACL SETUSER {user} on >secret {rights} {more}"));
        say(&server, "SCRIPT FLUSH");
        let url = format!("{}?user={user}&pass=secret", server.url());
        let conn = open(&url, "q").await;

        append(&conn, user).await.unwrap();
        append(&conn, user).await.unwrap();

        let another = open(&url, "q").await;
        append(&another, user).await.unwrap();
    }
    assert_eq!(elements(&server), ["old", "old", "old", "least", "least", "least"]);
    assert!(!say(&server, "CLIENT LIST").contains("name=relq"));
}

/// R25: a client that must not use another queue changes nothing of it, although its marker
/// has an earlier format. A client that may use it raises the format.
#[tokio::test]
async fn a_refused_client_raises_no_format() {
    let server = Server::start();
    let conn = open(&server.url(), "q").await;
    let other = || QueueName::new("other").unwrap();
    let mut markers = Vec::new();
    for options in [" part=2", " tenants=2", " partitions=3"] {
        say_words(
            &server,
            &["SET", "{other}:marker", &format!("relq 2 zset{options}")],
        );

        let opened = conn.for_queue(Operation::Recover, other()).await;

        let is_refused = matches!(opened, Err(Error::Unusable { .. }));
        markers.push((is_refused, say(&server, "GET {other}:marker")));
    }
    let marker = |text: &str| format!("${}\r\n{text}\r\n", text.len());
    assert_eq!(
        markers,
        [
            (true, marker("relq 2 zset part=2")),
            (true, marker("relq 2 zset tenants=2")),
            (false, marker("relq 4 zset partitions=3")),
        ]
    );
}
