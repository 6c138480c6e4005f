//! Tests of the web page that `relq serve` serves.

use std::{
    io::{BufRead as _, BufReader, ErrorKind, Read, Write},
    net::TcpStream,
    time::Duration,
};

use rustix::process::Signal;

use crate::{
    on_each_store,
    queues::store_of_many_queues,
    relq::{Running, Store, eventually, wait_until},
};

/// The form of the button that pauses a queue.
const PAUSE: &str = "POST /queue/emails/do/pause HTTP/1.1\r\n\
    content-type: application/x-www-form-urlencoded\r\n\
    sec-fetch-site: same-origin";

/// Starts the page. Returns it with its address.
fn serve(store: &Store, options: &str) -> (Running, String) {
    let line = format!("serve --listen 127.0.0.1:0 {options}");
    let page = store.relq(&line).env("RELQ_LOG", "info").start();
    let address = eventually("the address is printed", || {
        let printed = page.errors();
        let (_, rest) = printed.split_once("the web page is at http://")?;
        rest.contains('\n').then(|| rest.split(['/', '\n']).next().unwrap().to_owned())
    });
    (page, address)
}

fn open(address: &str, host: &str, head: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    write!(stream, "{head}\r\nhost: {host}\r\nconnection: close\r\n\r\n").unwrap();
    stream
}

/// Sends a request without a body. Returns the status and the whole answer.
fn ask(address: &str, head: &str) -> (u16, String) {
    ask_as(address, address, head)
}

/// Sends a request without a body to a host of this name.
fn ask_as(address: &str, host: &str, head: &str) -> (u16, String) {
    let mut answer = String::new();
    open(address, host, head).read_to_string(&mut answer).unwrap();
    (answer.split(' ').nth(1).unwrap().parse().unwrap(), answer)
}

on_each_store! {
    fn the_queues_of_the_store_are_served(store) {
        store.push("-q emails hello");
        store.push("-q pictures hello");
        let (mut page, address) = serve(store, "");

        let (status, overview) = ask(&address, "GET / HTTP/1.1");
        assert_eq!(status, 200, "{overview}");
        for queue in ["/queue/emails", "/queue/pictures"] {
            assert!(overview.contains(queue), "{queue} in {overview}");
        }
        let (status, jobs) = ask(&address, "GET /queue/emails/jobs/ready HTTP/1.1");
        assert!(status == 200 && jobs.contains(">hello</td>"), "{jobs}");
        assert_eq!(ask(&address, "GET /queue/invoices HTTP/1.1").0, 404);

        assert_eq!(ask(&address, PAUSE).0, 303);
        assert!(store.relq("stats --json -q emails").json()["paused"].as_bool().unwrap());
        page.wait_for_error("action=\"pause\"");
        page.wait_for_error("peer=\"127.0.0.1:");

        page.signal(Signal::TERM);
        assert_eq!(page.end().code, Some(0));
    }

    fn a_token_is_needed_if_there_is_one(store) {
        store.create();
        std::fs::write(store.file("token"), "0123456789abcdef\n").unwrap();
        let (_page, address) = serve(store, "--token-file token");

        assert_eq!(ask(&address, "GET / HTTP/1.1").0, 401);
        let signed = "GET / HTTP/1.1\r\nauthorization: Bearer 0123456789abcdef";
        assert_eq!(ask(&address, signed).0, 200);
    }

    /// The name and the password of a header `Authorization: Basic` are `anna` and
    /// `correct: horse`.
    fn a_password_is_needed_if_there_is_one(store) {
        store.create();
        std::fs::write(store.file("password"), "correct: horse\n").unwrap();
        let (_page, address) = serve(store, "--user anna --password-file password");

        let sign_in = |pair: &str| {
            let head = format!("GET / HTTP/1.1\r\nauthorization: Basic {pair}");
            ask(&address, &head).0
        };
        assert_eq!(ask(&address, "GET / HTTP/1.1").0, 401);
        assert_eq!(sign_in("YW5uYTpjb3JyZWN0OiBob3JzZQ=="), 200, "anna:correct: horse");
        assert_eq!(sign_in("YW5uYTpjb3JyZWN0OiBob3JzZXM="), 401, "anna:correct: horses");
        assert_eq!(sign_in("YmVydDpjb3JyZWN0OiBob3JzZQ=="), 401, "bert:correct: horse");
    }

    fn only_the_named_hosts_are_served(store) {
        store.push("-q emails hello");
        std::fs::write(store.file("token"), "0123456789abcdef\n").unwrap();
        let options = "--token-file token --host queues.example.org --host q.example.org";
        let (_page, address) = serve(store, options);

        for (host, status) in
            [("queues.example.org", 401), ("q.example.org:80", 401), ("127.0.0.1", 421)]
        {
            let head = "GET / HTTP/1.1";
            assert_eq!(ask_as(&address, host, head).0, status, "the host {host}");
        }
    }

    fn what_the_rules_name_is_not_served(store) {
        store.relq("push -q emails -f - --header tenant=secret-1")
            .input(r#"{"user":{"email":"secret-2","name":"anna"}}"#)
            .ok();
        let (_page, address) = serve(store, "--redact /user/email --redact header:tenant");

        let (_, list) = ask(&address, "GET /queue/emails/jobs/ready HTTP/1.1");

        assert!(list.contains("anna") && !list.contains("secret-"), "{list}");
        let link = list.split("href=\"").find(|link| link.starts_with("/queue/emails/job?id="));
        let link = link.unwrap().split('"').next().unwrap().replace("&amp;", "&");
        let (status, job) = ask(&address, &format!("GET {link} HTTP/1.1"));
        assert!(status == 200 && job.contains("Header tenant"), "{job}");
        assert!(job.contains("anna") && !job.contains("secret-"), "{job}");
    }

    fn only_the_named_queues_are_served(store) {
        store.push("-q emails hello");
        store.push("-q pictures hello");
        let (_page, address) = serve(store, "--only emails --read-only");

        assert_eq!(ask(&address, "GET /queue/emails HTTP/1.1").0, 200);
        assert_eq!(ask(&address, "GET /queue/pictures HTTP/1.1").0, 404);
        assert_eq!(ask(&address, PAUSE).0, 403);
    }

    fn a_proxy_may_pass_the_base_path_on_or_remove_it(store) {
        store.push("-q emails hello");
        let (_page, address) = serve(store, "--base /jobs");

        for path in ["/jobs/queue/emails", "/queue/emails"] {
            let (status, page) = ask(&address, &format!("GET {path} HTTP/1.1"));
            assert_eq!(status, 200, "{path}: {page}");
            assert!(page.contains("href=\"/jobs/queue/emails/dead\""), "{page}");
            assert!(!page.contains("href=\"/queue"), "{page}");
        }
        let (status, redirect) = ask(&address, "GET /jobs/ HTTP/1.1");
        assert!(status == 308 && redirect.contains("location: /jobs\r\n"), "{redirect}");
    }

    /// A stream of live counts does not hold up the end.
    fn a_signal_ends_the_page_with_its_streams(store) {
        store.push("-q emails hello");
        let (mut page, address) = serve(store, "");
        let mut lines = BufReader::new(open(&address, &address, "GET /live HTTP/1.1")).lines();
        wait_until("counts arrive", || lines.next().unwrap().unwrap().contains("emails"));

        page.signal(Signal::INT);

        assert_eq!(page.end().code, Some(0));
    }
}

/// The store lists its queues by several calls.
#[test]
fn a_queue_behind_many_others_is_served() {
    let store = store_of_many_queues();
    let (_page, address) = serve(&store, "");

    let (status, overview) = ask(&address, "GET /?after=q-119 HTTP/1.1");
    let (of_queue, page) = ask(&address, "GET /queue/q-129 HTTP/1.1");

    assert!(status == 200 && overview.contains("\"/queue/q-129\""), "{overview}");
    assert_eq!(of_queue, 200, "{page}");
    assert!(page.contains("data-queue=\"q-129\" data-count=\"ready\">130<"), "{page}");
}

/// Each connection takes one of the files that the page may open, also that of a visitor
/// who has not signed in.
#[test]
fn silent_visitors_keep_no_other_waiting() {
    let store = Store::sqlite();
    store.create();
    let (_page, address) = serve(&store, "");
    let half_a_request = |_| {
        let mut stream = TcpStream::connect(&address).unwrap();
        write!(stream, "GET / HTTP/1.1\r\nhost: {address}\r\nx-half: ").unwrap();
        stream
    };

    let silent: Vec<_> = (0..300).map(half_a_request).collect();

    assert_eq!(ask(&address, "GET / HTTP/1.1").0, 200);
    let mut first = &silent[0];
    first.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let closed = first.read(&mut [0]).map_err(|error| error.kind());
    assert!(matches!(closed, Ok(0) | Err(ErrorKind::ConnectionReset)), "{closed:?}");
}

/// A request of which the rest never comes does not hold up the end for long.
#[test]
fn a_signal_ends_the_page_beside_half_a_request() {
    let store = Store::sqlite();
    store.create();
    let (mut page, address) = serve(&store, "");
    let mut half = TcpStream::connect(&address).unwrap();
    write!(
        half,
        "POST / HTTP/1.1\r\nhost: {address}\r\ncontent-length: 100\r\n\r\nhalf"
    )
    .unwrap();
    assert_eq!(ask(&address, "GET / HTTP/1.1").0, 200);

    page.signal(Signal::TERM);

    assert_eq!(page.end().code, Some(0));
}

#[test]
fn a_network_needs_a_secret() {
    let store = Store::sqlite();
    store.create();
    for options in ["--listen 0.0.0.0:0", "--host queues.example.org"] {
        let said = store.relq(&format!("serve {options}")).fails(2);
        assert!(said.contains("the page needs --token-file FILE"), "{said}");
    }
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let store = Store::sqlite();
    store.create();
    std::fs::write(store.file("short"), "0123").unwrap();
    for (options, words) in [
        ("--listen 8080", "an IP address and a port"),
        ("--token-file short", "the secret has 4 bytes, and must have 16 or more"),
        ("--base jobs/", "the base path"),
        ("--redact a/b", "the rule \"a/b\" is not header:NAME"),
        ("--user anna", "--password-file"),
    ] {
        let said = store.relq(&format!("serve {options}")).fails(2);
        assert!(said.contains(words), "{options}: {said}");
    }
    let said = store.relq("serve --token-file missing").fails(1);
    assert!(said.contains("cannot read the file missing: "), "{said}");
}

#[test]
fn a_store_that_is_missing_is_not_created() {
    let store = Store::sqlite();

    store.relq("serve --listen 127.0.0.1:0").fails(1);

    assert!(!store.file("test.db").exists());
}
