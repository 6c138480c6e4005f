//! Tests of the answers of `relq work --health` to probes.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

use rustix::process::Signal;

use crate::{
    on_each_store,
    relq::{Relq, Running, Store, eventually, wait_until},
};

/// A worker that answers probes.
fn worker(store: &Store, command: &[&str]) -> Relq {
    let mut line = vec!["work", "--health", "127.0.0.1:0", "--lease", "2s", "--"];
    line.extend(command);
    store.relq_with(&line)
}

/// Starts a worker. Returns it with the address of its probes, which it prints.
fn start(worker: Relq) -> (Running, String) {
    let worker = worker.start();
    let address = eventually("the address is printed", || {
        let printed = worker.errors();
        let line = printed.lines().find(|line| line.contains("/live"))?;
        let address = line.split("http://").nth(1)?.split('/').next()?;
        Some(address.to_owned())
    });
    (worker, address)
}

/// Asks for a path. Returns the status and the text of the answer.
fn ask(address: &str, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, body.to_owned())
}

fn wait_for_ready(address: &str, status: u16, body: &str) {
    wait_until(body, || ask(address, "/ready") == (status, format!("{body}\n")));
}

on_each_store! {
    fn a_worker_is_ready_until_it_is_stopped(store) {
        store.push("job");
        let script = "echo $$ > ids; while ! test -e go; do sleep 0.05; done";
        let (mut worker, address) = start(worker(store, &["sh", "-c", script]));
        wait_for_ready(&address, 200, "running");
        assert_eq!(ask(&address, "/live"), (200, "running\n".to_owned()));
        assert_eq!(ask(&address, "/").0, 404);
        wait_until("the command runs", || store.file("ids").exists());

        worker.signal(Signal::TERM);
        wait_for_ready(&address, 503, "stopping");
        assert_eq!(ask(&address, "/live"), (200, "stopping\n".to_owned()));

        std::fs::write(store.file("go"), "").unwrap();
        assert_eq!(worker.end().code, Some(0));
    }

    /// Connections and commands share the files that the worker may open. The shell limits
    /// it to fewer files than there are connections.
    fn silent_connections_keep_neither_a_probe_nor_a_job_waiting(store) {
        store.create();
        let (_worker, address) = start(worker(store, &["true"]).with_files(64));
        wait_for_ready(&address, 200, "running");

        let connect = |_| TcpStream::connect(&address).unwrap();
        let silent: Vec<_> = (0..100).map(connect).collect();

        assert_eq!(ask(&address, "/live"), (200, "running\n".to_owned()));
        store.push("job");
        wait_until("the job is done", || store.count("default", "finished") == 1);
        let mut first = &silent[0];
        first.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        assert_eq!(first.read(&mut [0]).unwrap(), 0, "it is closed");
    }
}

#[test]
fn a_worker_without_its_store_is_alive_and_not_ready() {
    let mut store = Store::redis();
    store.create();
    let (worker, address) = start(worker(&store, &["true"]));
    wait_for_ready(&address, 200, "running");

    store.server().kill();
    wait_for_ready(&address, 503, "disconnected");
    assert_eq!(ask(&address, "/live"), (200, "disconnected\n".to_owned()));
    store.server().restart();
    wait_for_ready(&address, 200, "running");
    drop(worker);
}

#[test]
fn an_address_that_cannot_be_used_is_said_at_once() {
    let store = Store::sqlite();
    let said = store.relq("work --health 8080 -- true").fails(2);
    assert!(
        said.contains("an IP address and a port, such as 127.0.0.1:8080"),
        "{said}"
    );
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let said = store.relq(&format!("work --health {address} -- true")).fails(1);
    assert!(
        said.contains(&format!("cannot listen for probes on {address}: ")),
        "{said}"
    );
}
