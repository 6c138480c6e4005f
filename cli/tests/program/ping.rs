//! `relq ping` says whether a store can be used.

use serde_json::{Value, json};

use crate::{on_each_store, relq::Store};

on_each_store! {
    fn a_store_that_answers_is_named_with_its_times(store) {
        store.create();
        let text = store.relq("ping -q mail").ok();
        assert!(text.contains("queue mail"), "{text}");
        assert!(text.contains("connected in") && text.contains("round trip"), "{text}");
        let pong = store.relq("ping -o json").json();
        assert_eq!(pong["url"], store.url.as_str());
        assert_eq!(pong["queue"], "default");
        let is_redis = store.url.starts_with("zset");
        assert_eq!(pong["backend"], if is_redis { "zset" } else { "sqlite" });
        let server = &pong["server"];
        assert_eq!(server["name"], if is_redis { "Redis" } else { "SQLite" });
        let version = server["version"].as_str().unwrap();
        assert!(version.split('.').count() >= 3, "{version}");
        let has_file = if is_redis { json!(false) } else { Value::Null };
        assert_eq!(server["append_only_file"], has_file);
        assert!(text.contains(&format!("{} {version}", server["name"].as_str().unwrap())));
        assert!(text.contains("without an append-only file") == is_redis, "{text}");
        assert!(pong["connect_ms"].as_f64().unwrap() > 0.0);
        assert!(pong["round_trip_ms"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn a_store_that_cannot_be_used_is_said_to_be() {
    let mut store = Store::redis();
    store.push("job");
    let url = store.url.replace("zset+", "stream+");
    let error = store.relq_with(&["ping", "--url", &url]).fails(1);
    assert!(error.contains("zset"), "{error}");
    store.server().kill();
    let error = store.relq("ping").fails(1);
    assert!(error.contains("the store is unavailable"), "{error}");
    let error = store.relq("ping --url sqlite:gone.db").fails(1);
    assert!(error.contains("does not exist"), "{error}");
    assert!(!store.file("gone.db").exists());
}

#[test]
fn the_url_is_shown_without_its_passwords() {
    let mut store = Store::redis();
    store.server().command(&[b"CONFIG", b"SET", b"requirepass", b"s3cret"]);
    let url = format!("unix://{}?pass=s3cret", store.server().socket().display());
    let pong = store.relq_with(&["ping", "--json", "--url", &url]).ok();
    assert!(!pong.contains("s3cret"), "{pong}");

    std::fs::write(store.file("password"), "s3cret\n").unwrap();
    store.relq("ping").env("RELQ_PASSWORD_FILE", "password").ok();
}

/// A password of the sentinels comes from a file, too.
#[test]
fn the_password_of_sentinels_is_read_from_its_file() {
    let store = Store::sqlite();
    let ping = |url| {
        let ping = store.relq_with(&["ping", "--url", url]);
        ping.env("RELQ_SENTINEL_PASSWORD_FILE", "no-such-file").fails(1)
    };
    let error = ping("redis-sentinel://127.0.0.1:1/main");
    let words = "the file no-such-file of RELQ_SENTINEL_PASSWORD_FILE cannot be read";
    assert!(error.contains(words), "{error}");
    let error = ping("redis-sentinel://127.0.0.1:1/main?sentinel_password=p");
    assert!(error.contains("the store is unavailable"), "{error}");
}
