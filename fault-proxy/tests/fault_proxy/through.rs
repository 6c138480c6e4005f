//! Tests that the proxy forwards commands and replies unchanged.

use relq_fault_proxy::proxy::{Fault, FaultProxy, Transport, VirtualClock, When};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpStream, UnixStream},
};

use super::{
    ProxyFixture,
    client::{Client, bulk, command},
};

/// Encodes commands of many kinds, whose replies have many forms.
fn conversation() -> Vec<u8> {
    let commands: [&[&str]; 9] = [
        &["HELLO", "3", "SETNAME", "c"],
        &["set", "key", "with\r\n*1\r\n$4\r\nbytes \u{1f980}"],
        &["GET", "key"],
        &["GET", "missing"],
        &["HSET", "h", "field", ""],
        &["HGETALL", "h"],
        &["INCR", "key"],
        &["NOSUCH", "command"],
        &["ZADD", "z", "1.5", "a"],
    ];
    commands.into_iter().flat_map(command).collect()
}

async fn answers_of_the_server(fixture: &ProxyFixture, asked: &[u8]) -> Vec<u8> {
    let direct =
        UnixStream::connect(fixture.server.socket()).await.expect("it listens");
    let mut direct = Client(direct);
    direct.send(asked).await;
    direct.send(&command(&["QUIT"])).await;
    direct.rest().await
}

/// Removes the connection's id from the reply to HELLO, because it differs from
/// connection to connection.
fn without_id(answer: &[u8]) -> String {
    let text = String::from_utf8_lossy(answer).into_owned();
    let Some((before, after)) = text.split_once("$2\r\nid\r\n:") else { return text };
    format!("{before}{}", after.trim_start_matches(|c: char| c.is_ascii_digit()))
}

#[tokio::test]
async fn coalesced_frames_pass_unchanged() {
    let fixture = ProxyFixture::new();
    let asked = conversation();
    let direct = answers_of_the_server(&fixture, &asked).await;
    fixture.ask("FLUSHALL");

    let mut client = fixture.client().await;
    client.send(&[asked, command(&["QUIT"])].concat()).await;

    assert_eq!(without_id(&client.rest().await), without_id(&direct));
}

#[tokio::test]
async fn frames_split_at_every_byte_pass_unchanged() {
    let fixture = ProxyFixture::new();
    let asked = conversation();
    let direct = answers_of_the_server(&fixture, &asked).await;
    fixture.ask("FLUSHALL");

    let mut client = fixture.client().await;
    for byte in asked.iter().chain(&command(&["QUIT"])) {
        client.send(&[*byte]).await;
        tokio::task::yield_now().await;
    }

    assert_eq!(without_id(&client.rest().await), without_id(&direct));
}

#[tokio::test]
async fn twenty_mebibytes_pass_both_ways() {
    let fixture = ProxyFixture::new();
    let mut client = fixture.client().await;
    let payload: Vec<u8> = (0..20 * 1024 * 1024_u32).map(|n| (n % 251) as u8).collect();
    let header = format!("${}\r\n", payload.len());
    let asked =
        [b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n", header.as_bytes(), &payload, b"\r\n"]
            .concat();

    client.send(&asked).await;
    client.expect(b"+OK\r\n").await;
    client.send(&command(&["GET", "k"])).await;

    client.expect(&[header.as_bytes(), &payload, b"\r\n"].concat()).await;
}

#[tokio::test]
async fn a_transaction_is_one_step() {
    let fixture = ProxyFixture::new();
    let mut client = fixture.client().await;

    client.ask(&["MULTI"], "+OK\r\n").await;
    client.ask(&["SET", "a", "1"], "+QUEUED\r\n").await;
    client.ask(&["INCR", "a"], "+QUEUED\r\n").await;
    client.ask(&["EXEC"], "*2\r\n+OK\r\n:2\r\n").await;

    let steps = fixture.proxy.steps();
    assert_eq!(steps.len(), 1);
    assert_eq!(steps[0].label(), "EXEC(SET INCR)");
}

#[tokio::test]
async fn a_command_without_a_key_is_no_step() {
    let fixture = ProxyFixture::new();
    let mut client = fixture.client().await;

    client.ask(&["PING"], "+PONG\r\n").await;
    client.ask(&["SELECT", "3"], "+OK\r\n").await;
    client.ask(&["CLIENT", "SETNAME", "c"], "+OK\r\n").await;
    client.ask(&["MULTI"], "+OK\r\n").await;
    client.ask(&["DISCARD"], "+OK\r\n").await;
    client.ask(&["SET", "a", "1"], "+OK\r\n").await;

    let steps: Vec<_> = fixture.proxy.steps().iter().map(ToString::to_string).collect();
    assert_eq!(steps, ["worker#1 (1) SET"]);
}

#[tokio::test]
async fn subscriptions_of_resp2_are_confirmed_and_served() {
    let fixture = ProxyFixture::new();
    let mut listener = fixture.client().await;
    let confirmed = "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n\
                     *3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:2\r\n";
    listener.ask(&["SUBSCRIBE", "a", "b"], confirmed).await;

    assert_eq!(fixture.ask("PUBLISH a hello"), ":1\r\n");
    listener.expect(b"*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$5\r\nhello\r\n").await;

    let ended = "*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:1\r\n\
                 *3\r\n$11\r\nunsubscribe\r\n$1\r\nb\r\n:0\r\n";
    listener.send(&command(&["UNSUBSCRIBE"])).await;
    let mut got = vec![0; ended.len()];
    listener.0.read_exact(&mut got).await.unwrap();
    assert!(got.ends_with(b":0\r\n"));
    // The proxy replies to TIME itself. The reply must still arrive in the order of the
    // commands.
    listener.ask(&["TIME"], "*2\r\n$10\r\n4102444800\r\n$1\r\n0\r\n").await;
}

#[tokio::test]
async fn pushes_of_resp3_pass_between_replies() {
    let fixture = ProxyFixture::new();
    let mut client = fixture.client().await;
    client.hello("3").await;

    client.ask(&["CLIENT", "TRACKING", "ON"], "+OK\r\n").await;
    client.ask(&["GET", "watched"], "_\r\n").await;
    fixture.ask("SET watched 1");
    client.expect(b">2\r\n$10\r\ninvalidate\r\n*1\r\n$7\r\nwatched\r\n").await;
    client.ask(&["SUBSCRIBE", "a"], ">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n").await;
    fixture.ask("PUBLISH a hello");
    client.expect(b">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$5\r\nhello\r\n").await;
    client.ask(&["GET", "watched"], &bulk("1")).await;
    client.ask(&["TIME"], "*2\r\n$10\r\n4102444800\r\n$1\r\n0\r\n").await;
}

#[tokio::test]
async fn malformed_input_closes_that_connection_only() {
    let fixture = ProxyFixture::new();
    let mut other = fixture.client().await;
    other.ask(&["PING"], "+PONG\r\n").await;
    let malformed: [&[u8]; 7] = [
        b"PING\r\n",
        b"*1\r\n:3\r\n",
        b"*x\r\n",
        b"*2000000\r\n",
        b"*1\r\n$3\r\nPINGS\r\n",
        b"*1\r\n$-1\r\n",
        b"*99999999999999999999999999999999999999999999999999999999999999999999999",
    ];
    for bytes in malformed {
        let mut client = fixture.client().await;
        client.send(bytes).await;

        assert!(client.rest().await.starts_with(b"-ERR Protocol error: "));
    }

    other.ask(&["PING"], "+PONG\r\n").await;
    fixture.client().await.ask(&["PING"], "+PONG\r\n").await;
    assert_eq!(fixture.proxy.troubles(), [""; 0]);
}

#[tokio::test]
async fn commands_that_the_proxy_cannot_forward_are_refused() {
    let fixture = ProxyFixture::new();
    let mut client = fixture.client().await;

    for words in ["MONITOR", "CLIENT REPLY OFF", "FUNCTION LOAD x"] {
        let words: Vec<_> = words.split(' ').collect();
        assert!(client.line(&words).await.starts_with("-ERR the proxy "));
    }
}

#[tokio::test]
async fn a_client_that_closes_its_writing_side_gets_the_replies() {
    let fixture = ProxyFixture::new();
    let mut client = fixture.client().await;

    client.send(&command(&["INCR", "a"])).await;
    client.0.shutdown().await.unwrap();

    assert_eq!(client.rest().await, b":1\r\n");
}

#[tokio::test]
async fn many_pipelined_commands_are_answered_in_order() {
    let fixture = ProxyFixture::new();
    let mut client = fixture.client().await;
    let (mut asked, mut answers) = (Vec::new(), String::new());
    for n in 1..=5_000 {
        asked.extend(command(&["INCR", "n"]));
        asked.extend(command(&["TIME"]));
        answers += &format!(":{n}\r\n*2\r\n$10\r\n4102444800\r\n$1\r\n0\r\n");
    }

    let (mut reader, mut writer) = client.0.split();
    let send = writer.write_all(&asked);
    let mut got = vec![0; answers.len()];
    let get = reader.read_exact(&mut got);
    tokio::try_join!(send, async { get.await.map(drop) }).unwrap();

    assert!(got == answers.as_bytes());
}

#[tokio::test]
async fn tcp_is_carried_too() {
    let server = relq_fault_proxy::server::Server::start_on_tcp();
    let address = server.url();
    let address = address.trim_start_matches("redis://").trim_end_matches("/0");
    let address: std::net::SocketAddr = address.parse().unwrap();
    let proxy = FaultProxy::start(address, VirtualClock::new()).unwrap();
    let actor = proxy.actor_on("worker", Transport::Tcp).unwrap();

    let url = actor.url().strip_prefix("redis://").unwrap();
    let mut stream = TcpStream::connect(url).await.unwrap();
    let asked = command(&["ECHO", "hello"]);
    stream.write_all(&asked).await.unwrap();
    let mut got = [0; 11];
    stream.read_exact(&mut got).await.unwrap();

    assert_eq!(&got, b"$5\r\nhello\r\n");
}

#[tokio::test]
async fn a_cut_on_tcp_is_a_reset() {
    let fixture = ProxyFixture::new();
    let remote = fixture.proxy.actor_on("remote", Transport::Tcp).unwrap();
    fixture.proxy.plan("remote", 1, Fault::Cut(When::Before));
    let address = remote.url().strip_prefix("redis://").unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(&command(&["INCR", "a"])).await.unwrap();

    let cut = stream.read(&mut [0; 16]).await.unwrap_err();

    assert_eq!(cut.kind(), std::io::ErrorKind::ConnectionReset);
    assert_eq!(fixture.ask("EXISTS a"), ":0\r\n");
}
