//! `relq list --search TEXT` and `--newest`.

use relq_conformance::server::Server;

use crate::{on_each_store, relq::Store};

fn payloads(store: &Store, line: &str) -> Vec<String> {
    let list = store.relq(&format!("list --json {line}")).json();
    let jobs = list.as_array().unwrap().iter();
    jobs.map(|job| job["payload"].as_str().unwrap().to_owned()).collect()
}

on_each_store! {
    fn a_text_is_found_in_payloads_headers_and_errors(store) {
        store.push("--header tenant=acme first");
        store.push("second-acme third ACME");
        store.push("--delay 1h --header tenant=acme later");

        assert_eq!(payloads(store, "--search acme"), ["first", "second-acme"]);
        assert_eq!(payloads(store, "--search acme --newest"), ["second-acme", "first"]);
        assert_eq!(payloads(store, "--search acme --state scheduled"), ["later"]);
        assert!(payloads(store, "--search ac.e").is_empty(), "the text is no pattern");

        store.relq_with(&["work", "--until-empty", "--retry", "1h..1h", "--", "sh", "-c", "echo oops >&2; exit 1"])
            .fails(4);
        assert_eq!(payloads(store, "--search oops --state scheduled").len(), 4);
    }

    fn jobs_of_every_state_are_listed_newest_first(store) {
        store.push("a b c");
        assert_eq!(payloads(store, "--newest"), ["c", "b", "a"]);
        assert_eq!(payloads(store, "--newest -n 2"), ["c", "b"]);
        store.push("--delay 1h soon");
        store.push("--delay 2h late");
        assert_eq!(payloads(store, "--newest --state scheduled"), ["late", "soon"]);
        store.relq("pause").ok();
        store.relq("resume").ok();
        store.relq("purge --yes").ok();
        for payload in ["x", "y"] {
            store.push(&format!("--max-attempts 1 {payload}"));
            store.relq("work --until-empty -- false").fails(3);
        }
        assert_eq!(payloads(store, "--newest --state dead"), ["y", "x"]);
        let dead = store.relq("dead list --newest --json").json();
        assert_eq!(dead[0]["payload"], "y");
    }

    fn the_newest_jobs_of_many_pages_are_listed_in_order(store) {
        let numbers: Vec<_> = (0..250).map(|number| number.to_string()).collect();
        store.relq("push --quiet --file -").input(numbers.join("\n")).ok();
        let newest: Vec<_> = numbers.iter().rev().cloned().collect();

        assert_eq!(payloads(store, "--newest -n 999"), newest);
        assert_eq!(payloads(store, "--newest -n 150"), newest[..150]);
        let with_nine: Vec<_> = newest.into_iter().filter(|it| it.contains('9')).collect();
        assert_eq!(payloads(store, "--newest -n 999 --search 9"), with_nine);
    }
}

#[test]
fn a_backend_that_lists_in_one_order_says_so() {
    let store = Store::on("circular", Server::start());
    store.push("a");
    let error = store.relq("list --newest").fails(1);
    assert!(error.contains("circular") && error.contains("newest"), "{error}");
    assert_eq!(payloads(&store, "--search a"), ["a"]);
}
