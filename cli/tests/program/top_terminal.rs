//! `relq top` and its terminal: sizes, ends, colours, and what it shows while the store
//! cannot be reached.

use rustix::process::Signal;

use crate::{
    on_each_store,
    relq::Store,
    terminal::Terminal,
    top::{ENTER, fill},
};

on_each_store! {
    fn the_screen_follows_its_size(store) {
        fill(store);
        let top = store.top("");
        top.wait_for("SCHED");
        top.resize(10, 40);
        top.wait_for_no("SCHED");
        top.wait_for("emails");
        top.resize(30, 120);
        top.wait_for("SCHED");
        top.wait_for("quit");
    }

    fn every_end_sets_the_terminal_back(store) {
        store.push("-q emails hello");
        for end in ["q", "\x03"] {
            let mut top = store.top("");
            top.wait_for("emails");
            assert!(top.is_taken());
            top.press(end);
            assert_eq!(top.ends(), Some(0), "{end:?}");
        }
        for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
            let mut top = store.top("");
            top.wait_for("emails");
            top.signal(signal);
            assert_eq!(top.ends(), Some(0), "{signal:?}");
        }
    }
}

/// Neither the screen nor its title shows the password of the store.
#[test]
fn the_password_of_the_store_is_never_on_the_screen() {
    let mut store = Store::redis_with(&["--requirepass", "s3cret"]);
    let server = store.server().url();
    store.url = format!("zset+{server}?pass=s3cret");
    store.push("-q emails hello");
    let mut top = store.top("");
    top.wait_for("emails");
    top.press_for("?", "freeze what is shown");
    top.press("q");
    top.press("q");
    top.ends();
    let written = String::from_utf8_lossy(&top.written()).into_owned();
    assert!(written.contains("unix:"), "the store is named: {written}");
    assert!(!written.contains("s3cret"), "{written}");
}

/// The screen says so, keeps the keys alive, and recovers by itself.
#[test]
fn an_outage_is_shown_and_ends_by_itself() {
    let mut store =
        Store::redis_with(&["--appendonly", "yes", "--appendfsync", "always"]);
    fill(&store);
    let mut top = store.top("");
    top.wait_for("emails");

    store.server().kill();

    top.wait_for("the store cannot be read for");
    assert!(top.line("emails").is_some(), "the last counts stay: {}", top.text());
    top.press_for("?", "freeze what is shown");
    top.press("q");
    top.press_for("p", "the store");
    store.server().restart();
    top.wait_for("1 queue");
    top.press_for(ENTER, "welcome, anna");
    assert_eq!(store.count("emails", "ready"), 2);
    top.press("\x03");
    assert_eq!(top.ends(), Some(0));
}

#[test]
fn a_file_that_is_moved_away_is_an_outage_until_it_is_back() {
    let store = Store::sqlite();
    fill(&store);
    let top = store.top("");
    // The reason fits into one line of a wide screen.
    top.resize(30, 200);
    top.wait_for("emails");
    let (file, elsewhere) = (store.file("test.db"), store.file("elsewhere.db"));

    std::fs::rename(&file, &elsewhere).unwrap();

    top.wait_for("the store cannot be read for");
    top.wait_for("test.db does not exist");
    assert!(top.line("emails").is_some(), "the last counts stay: {}", top.text());
    assert!(!file.exists(), "a store that is missing is not created");
    std::fs::rename(&elsewhere, &file).unwrap();
    top.wait_for("1 queue");
    top.press_for(ENTER, "welcome, anna");
}

/// The keys do not wait for the store, and the screen says what it waits for.
#[test]
fn a_store_that_is_slow_holds_up_no_key() {
    let mut store = Store::redis();
    // The screen says what it waits for until the call fails.
    store.url.push_str("?response_timeout=30s");
    fill(&store);
    let top = store.top("");
    top.wait_for("emails");

    store.server().command(&[b"CLIENT", b"PAUSE", b"15000", b"ALL"]);

    top.press_for("?", "freeze what is shown");
    top.press("q");
    top.press_for("++", "every 500ms");
    top.wait_for("waiting for the store for");
    // The pause is over.
    top.wait_for("1 queue");
    top.press_for(ENTER, "welcome, anna");
}

/// Starts a change of a queue whose server makes no writes, and leaves the view.
fn leave_during_a_change(store: &mut Store) -> Terminal {
    store.url.push_str("?response_timeout=30s");
    fill(store);
    let top = store.top("");
    top.wait_for("emails");
    store.server().command(&[b"CLIENT", b"PAUSE", b"600000", b"WRITE"]);
    top.press_for("pq", "a change is under way");
    top
}

/// A change that a key has started is made, although the view was left meanwhile.
#[test]
fn a_change_under_way_is_made_before_the_end() {
    let mut store = Store::redis();
    let mut top = leave_during_a_change(&mut store);

    store.server().command(&[b"CLIENT", b"UNPAUSE"]);

    assert_eq!(top.ends(), Some(0));
    assert_eq!(store.relq("stats --json -q emails").json()["paused"], true);
}

/// The key was pressed, so the user relies on the change unless the program says otherwise.
#[test]
fn a_change_that_fails_after_the_end_is_an_error() {
    let mut store = Store::redis();
    let mut top = leave_during_a_change(&mut store);

    store.server().kill();

    assert_eq!(top.ends(), Some(1));
    let told = top.text();
    assert!(told.contains("the reply was lost"), "{told}");
    assert!(!told.contains("a change had no answer yet"), "{told}");
}

#[test]
fn a_second_q_leaves_a_change_without_its_answer() {
    let mut store = Store::redis();
    let mut top = leave_during_a_change(&mut store);

    top.press("q");

    assert_eq!(top.ends(), Some(1));
    assert!(top.text().contains("a change had no answer yet"), "{}", top.text());
}

#[test]
fn no_color_turns_the_colours_off() {
    let store = Store::sqlite();
    fill(&store);
    // ESC [ 3 0-7 and ESC [ 4 0-7 set a colour, and 38 and 48, too.
    let is_colour = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let mut sequences = text.split("\x1b[").filter_map(|it| it.split_once('m'));
        sequences.any(|(numbers, _)| {
            let mut numbers = numbers.split(';');
            numbers.any(|it| {
                it.len() == 2
                    && ['3', '4'].contains(&it.as_bytes()[0].into())
                    && it != "39"
                    && it != "49"
            })
        })
    };
    for (no_color, has_colours) in [("", true), ("1", false)] {
        let top = store.in_terminal("top", &[("NO_COLOR", no_color)]);
        top.wait_for("emails");
        top.press_for(ENTER, "welcome, anna");
        assert_eq!(is_colour(&top.written()), has_colours, "NO_COLOR={no_color}");
        // The selected row is told by its colours or, without them, by turning them round.
        let is_reversed = String::from_utf8_lossy(&top.written()).contains("\x1b[7m");
        assert_eq!(is_reversed, !has_colours, "NO_COLOR={no_color}");
    }
}

#[test]
fn an_output_that_is_no_terminal_is_refused() {
    let store = Store::sqlite();
    store.create();
    let said = store.relq("top").fails(2);
    assert!(said.contains("standard output is not a terminal"), "{said}");
    assert!(said.contains("`relq queues`"), "{said}");
}

#[test]
fn a_store_that_is_missing_is_not_created() {
    let store = Store::sqlite();
    let mut top = store.in_terminal("top", &[]);
    assert_eq!(top.ends(), Some(1));
    assert!(top.text().contains("test.db"), "{}", top.text());
    assert!(!store.file("test.db").exists());
}

/// Opening a queue on such a server warns, which would be drawn over the screen.
#[test]
fn a_warning_does_not_disturb_the_screen() {
    let store = Store::redis_with(&["--maxmemory-policy", "allkeys-lru"]);
    fill(&store);
    let mut top = store.top("");
    top.wait_for("emails");
    top.press_for(ENTER, "welcome, anna");
    top.press("\x03");
    assert_eq!(top.ends(), Some(0));
    let written = String::from_utf8_lossy(&top.written()).into_owned();
    assert!(!written.contains("WARN") && !written.contains("allkeys"), "{written}");
}
