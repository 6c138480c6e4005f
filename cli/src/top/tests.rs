//! The state: what keys and answers change, and what they ask for.

use std::time::Duration;

use ratatui::crossterm::event::KeyCode::{
    BackTab, Backspace, Delete, Down, End, Enter, Esc, Home, PageDown, PageUp,
    Tab as TabKey,
};
use relq::operator::JobState::{Dead, Leased, Ready};

use super::{
    asks::{Answer, Effect, Filter, NamesOf, Only, PageOf, Position, Sample},
    changes::Change,
    open_queue::Tab,
    overview::SortBy,
    scene::{Scene, job_id, queue},
    state::Dialog,
};

/// The pages that the effects read.
fn pages(effects: &[Effect]) -> Vec<&PageOf> {
    let reads = effects.iter().filter_map(|effect| match effect {
        Effect::Read(read) => Some(&read.page),
        _ => None,
    });
    reads.collect()
}

fn first(state: relq::operator::JobState) -> PageOf {
    PageOf::Jobs(Position { state, after: None }, Filter::default())
}

/// The id of the job that is selected or open.
fn selected(scene: &Scene) -> String {
    let job = scene.state.queue.as_ref().unwrap().selected_job().unwrap();
    job.id.as_ref().unwrap().to_string()
}

fn tab(scene: &Scene) -> Tab {
    scene.state.queue.as_ref().unwrap().tab
}

#[test]
fn a_tick_asks_once_until_the_answer() {
    let mut scene = Scene::new();
    let asked = scene.tick();
    assert_eq!(asked, [Effect::Sample(NamesOf::LastList)]);
    assert_eq!(scene.tick(), [], "the first question is not answered yet");
    scene.answer(Answer::Sampled(Ok(Sample::default())));
    assert_eq!(scene.tick(), [Effect::Sample(NamesOf::LastList)]);
}

#[test]
fn a_store_that_is_slow_is_waited_for_in_the_status() {
    let mut scene = Scene::new();
    scene.tick();
    assert_eq!(scene.state.waiting(scene.now + Duration::from_secs(1)), None);
    let late = scene.now + Duration::from_secs(4);
    assert_eq!(scene.state.waiting(late), Some(Duration::from_secs(4)));
}

#[test]
fn a_frozen_view_asks_on_demand_only() {
    let mut scene = Scene::new();
    scene.keys(" ");
    assert_eq!(scene.tick(), []);
    assert_eq!(scene.keys("R"), [Effect::Sample(NamesOf::NewList)]);
    scene.answer(Answer::Sampled(Ok(Sample::default())));
    scene.keys(" ");
    assert_eq!(scene.tick(), [Effect::Sample(NamesOf::LastList)]);
}

#[test]
fn an_outage_is_remembered_from_its_begin_and_ends_with_an_answer() {
    let mut scene = Scene::new();
    let began = scene.now;
    scene.answer(Answer::Sampled(Err("down".to_owned())));
    scene.now += Duration::from_secs(7);
    scene.answer(Answer::Sampled(Err("still down".to_owned())));
    assert_eq!(scene.state.outage, Some((began, "still down".to_owned())));
    assert_eq!(scene.state.overview.rows().len(), 3, "the last counts stay");
    scene.answer(Answer::Sampled(Ok(Sample::default())));
    assert_eq!(scene.state.outage, None);
}

#[test]
fn enter_opens_a_queue_a_job_and_escape_goes_back() {
    let mut scene = Scene::new();
    let asked = scene.press(Enter);
    assert_eq!(pages(&asked), [&first(Ready)]);
    scene.serve(&asked);
    scene.press(Down);
    let asked = scene.press(Enter);
    let seen = Position { state: Ready, after: None };
    assert_eq!(pages(&asked), [&PageOf::Job(job_id("Ready-2"), seen)]);
    scene.serve(&asked);
    let open = scene.state.queue.as_ref().unwrap().job.as_ref().unwrap();
    assert_eq!(open.record.followers, [job_id("follower-1")]);
    assert_eq!(scene.press(Enter), [], "there is nothing to open in a job");

    let asked = scene.press(Esc);
    assert_eq!(pages(&asked), [&first(Ready)]);
    assert_eq!(selected(&scene), "Ready-2", "the selection is where it was");
    scene.press(Esc);
    assert!(scene.state.queue.is_none());
    assert_eq!(scene.press(Esc), [], "Escape does not end the program");
    assert_eq!(scene.keys("q"), [Effect::Quit]);
}

#[test]
fn control_c_ends_the_program_everywhere() {
    let mut scene = Scene::new();
    assert_eq!(scene.control('c'), [Effect::Quit]);
    scene.open();
    scene.keys("x");
    assert_eq!(scene.control('c'), [Effect::Quit], "in a question");
    assert_eq!(scene.control('r'), [], "another letter with Ctrl does nothing");
}

#[test]
fn an_answer_to_an_earlier_question_is_not_shown() {
    let mut scene = Scene::new();
    let early = scene.press(Enter);
    let late = scene.keys("4");
    assert_eq!(pages(&late), [&first(Dead)]);
    scene.serve(&early);
    assert!(scene.state.queue.as_ref().unwrap().selected_job().is_none());
    scene.serve(&late);
    assert_eq!(selected(&scene), "Dead-1");
}

#[test]
fn tabs_are_opened_by_their_numbers_and_by_tab() {
    let mut scene = Scene::new();
    assert_eq!(scene.keys("4"), [], "no queue is open");
    scene.open();
    for (key, expected) in ('1'..='6').zip(Tab::ALL) {
        scene.keys(&key.to_string());
        assert_eq!(tab(&scene), expected);
    }
    scene.press(TabKey);
    assert_eq!(tab(&scene), Tab::Jobs(Ready), "after the last one comes the first");
    scene.press(BackTab);
    assert_eq!(tab(&scene), Tab::Workers);
    assert_eq!(scene.keys("7"), []);
}

#[test]
fn jobs_are_shown_page_by_page() {
    let mut scene = Scene::new();
    scene.open();
    for (key, expected) in [
        (End, "Ready-20"),
        (Home, "Ready-1"),
        (PageDown, "Ready-12"),
        (PageDown, "Ready-20"),
        (PageDown, "Ready-21"),
        (Down, "Ready-22"),
        (Home, "Ready-21"),
        (PageUp, "Ready-20"),
        (PageUp, "Ready-9"),
    ] {
        let asked = scene.press(key);
        scene.serve(&asked);
        assert_eq!(selected(&scene), expected, "{key:?}");
    }
    let asked = scene.keys("]");
    scene.serve(&asked);
    assert_eq!(selected(&scene), "Ready-21");
    assert_eq!(scene.keys("]"), [], "it is the last page");
    let asked = scene.keys("[");
    scene.serve(&asked);
    assert_eq!(scene.keys("["), [], "it is the first page");
}

#[test]
fn an_error_and_a_worker_open_their_jobs() {
    let mut scene = Scene::new();
    scene.open();
    let asked = scene.keys("5");
    scene.serve(&asked);
    scene.press(Down);
    let asked = scene.press(Enter);
    scene.serve(&asked);
    assert_eq!(tab(&scene), Tab::Jobs(Dead));
    assert_eq!(selected(&scene), "Dead-3", "the first with this error");
    scene.press(Esc);
    assert_eq!(tab(&scene), Tab::Errors);

    let asked = scene.keys("6");
    scene.serve(&asked);
    let asked = scene.press(Enter);
    let [PageOf::Jobs(at, filter)] = pages(&asked)[..] else { panic!("{asked:?}") };
    assert_eq!(at.state, Leased);
    assert!(matches!(filter.only, Only::Worker(_)));
    scene.press(Esc);
    assert_eq!(tab(&scene), Tab::Workers);
}

#[test]
fn queues_are_filtered_and_sorted() {
    let mut scene = Scene::new();
    let names = |scene: &Scene| -> Vec<_> {
        let rows = scene.state.overview.rows();
        rows.iter().map(|row| row.name.to_string()).collect()
    };
    scene.keys("/portx");
    scene.press(Backspace);
    scene.press(Enter);
    assert_eq!(names(&scene), ["reports"]);
    scene.press(Esc);
    assert_eq!(names(&scene), ["emails", "pictures", "reports"]);
    scene.keys("s");
    assert_eq!(scene.state.overview.sort, SortBy::Ready);
    scene.keys("S");
    assert_eq!(names(&scene), ["pictures", "reports", "emails"]);
    scene.keys("<");
    assert_eq!(scene.state.overview.sort, SortBy::Name);
}

#[test]
fn jobs_are_filtered_by_the_store() {
    let mut scene = Scene::new();
    scene.open();
    scene.keys("/user-7q");
    scene.press(Backspace);
    let asked = scene.press(Enter);
    let text = "user-7".to_owned();
    let filter = Filter { text, ..Filter::default() };
    let at = Position { state: Ready, after: None };
    assert_eq!(pages(&asked), [&PageOf::Jobs(at, filter)]);
    scene.serve(&asked);
    assert_eq!(selected(&scene), "Ready-7");
    let asked = scene.press(Esc);
    assert_eq!(pages(&asked), [&first(Ready)], "Escape shows all again");
    scene.keys("/abc");
    assert_eq!(scene.press(Esc), [], "Escape leaves the filter as it was");
    assert_eq!(scene.state.dialog, None);
}

#[test]
fn a_queue_is_paused_and_resumed_without_a_question() {
    let mut scene = Scene::new();
    assert_eq!(scene.keys("p"), [Effect::Change(queue("emails"), Change::Pause)]);
    scene.keys("G");
    assert_eq!(scene.keys("p"), [Effect::Change(queue("reports"), Change::Resume)]);
    scene.open();
    assert_eq!(scene.keys("p"), [Effect::Change(queue("reports"), Change::Resume)]);
}

#[test]
fn a_change_that_cannot_be_undone_asks_first() {
    for (keys, change) in [
        ("1x", Change::Cancel(job_id("Ready-1"))),
        ("2x", Change::Cancel(job_id("Leased-1"))),
        ("3r", Change::RunNow(job_id("Scheduled-1"))),
        ("4r", Change::Retry(job_id("Dead-1"))),
        ("4x", Change::Purge(job_id("Dead-1"))),
    ] {
        for answer in [Enter, Esc, Delete, TabKey] {
            let (mut scene, emails) = (Scene::new(), queue("emails"));
            scene.open();
            let (tab, key) = keys.split_at(1);
            let asked = scene.keys(tab);
            scene.serve(&asked);
            assert_eq!(scene.keys(key), [], "{keys}");
            let question = Dialog::Confirm(emails.clone(), change.clone());
            assert_eq!(scene.state.dialog, Some(question.clone()));
            assert_eq!(scene.press(answer), [], "{keys} {answer:?}");
            assert_eq!(scene.state.dialog, None);
            scene.keys(key);
            assert_eq!(scene.keys("n"), []);
            scene.keys(key);
            let made = scene.keys("y");
            assert_eq!(made, [Effect::Change(emails, change.clone())], "{keys}");
        }
    }
}

#[test]
fn the_jobs_of_an_error_are_retried_or_deleted_together() {
    let mut scene = Scene::new();
    scene.open();
    let asked = scene.keys("5");
    scene.serve(&asked);
    scene.keys("r");
    let made = scene.keys("Y");
    let [Effect::Change(_, Change::RetryGroup(group))] = &made[..] else {
        panic!("{made:?}")
    };
    assert_eq!(group.jobs.len(), 14);
    scene.control('d');
    assert!(matches!(
        scene.state.dialog,
        Some(Dialog::Confirm(_, Change::PurgeGroup(_)))
    ));
}

#[test]
fn keys_that_do_not_fit_the_row_change_nothing() {
    let mut scene = Scene::new();
    assert_eq!(scene.keys("r"), [], "no queue is open");
    scene.open();
    assert_eq!(scene.keys("r"), [], "a ready job is not run again");
    assert_eq!(scene.state.dialog, None);
    assert!(scene.state.notice.as_ref().unwrap().is_bad);
}

#[test]
fn nothing_is_changed_in_a_view_that_is_read_only() {
    let mut scene = Scene::new();
    scene.state.settings.is_read_only = true;
    assert_eq!(scene.keys("p"), []);
    scene.open();
    for keys in ["1x", "4r", "4x", "5r", "5x"] {
        let (tab, key) = keys.split_at(1);
        let asked = scene.keys(tab);
        scene.serve(&asked);
        assert_eq!(scene.keys(key), [], "{keys}");
        assert_eq!(scene.state.dialog, None, "{keys}");
        assert!(scene.state.notice.as_ref().unwrap().text.contains("--read-only"));
    }
}

#[test]
fn a_change_is_shown_at_once() {
    let mut scene = Scene::new();
    scene.open();
    scene.keys(" ");
    let asked = scene.answer(Answer::Changed(Ok("1 deleted".to_owned())));
    assert_eq!(pages(&asked), [&first(Ready)], "also while the view is frozen");
    assert_eq!(scene.state.notice.as_ref().unwrap().text, "1 deleted");
    scene.answer(Answer::Changed(Err("denied".to_owned())));
    assert!(scene.state.notice.as_ref().unwrap().is_bad);
}

#[test]
fn a_sentence_leaves_the_status_after_some_seconds() {
    let mut scene = Scene::new();
    scene.answer(Answer::Changed(Err("denied".to_owned())));
    scene.now += Duration::from_secs(5);
    scene.tick();
    assert!(scene.state.notice.is_some());
    scene.now += Duration::from_secs(5);
    scene.tick();
    assert_eq!(scene.state.notice, None);
}

#[test]
fn the_interval_has_ends() {
    let mut scene = Scene::new();
    scene.keys("++");
    assert_eq!(scene.state.interval, Duration::from_secs(10));
    scene.keys("+++++");
    assert_eq!(scene.state.interval, Duration::from_secs(60));
    scene.keys("---------");
    assert_eq!(scene.state.interval, Duration::from_millis(250));
    scene.state.interval = Duration::from_millis(1500);
    scene.keys("-");
    assert_eq!(scene.state.interval, Duration::from_secs(1));
}

#[test]
fn a_long_record_is_scrolled_to_its_end_and_no_further() {
    let mut scene = Scene::new();
    scene.state.size = (40, 10);
    scene.open();
    scene.open();
    let scroll = |scene: &Scene| {
        scene.state.queue.as_ref().unwrap().job.as_ref().unwrap().scroll
    };
    scene.press(End);
    let end = scroll(&scene);
    assert!(end > 0, "the record is longer than the screen");
    scene.press(PageDown);
    assert_eq!(scroll(&scene), end);
    scene.press(Home);
    assert_eq!(scroll(&scene), 0);
}

#[test]
fn any_key_closes_the_help() {
    let mut scene = Scene::new();
    scene.keys("?");
    assert_eq!(scene.state.dialog, Some(Dialog::Help));
    assert_eq!(scene.keys("q"), [], "q closes the help");
    assert_eq!(scene.state.dialog, None);
}
