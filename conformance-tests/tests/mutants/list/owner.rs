//! Mutants that do not check which backend owns a queue (R25).

use crate::mutant::{CaughtBy::Case, Mutant, NARROW, patch};

pub(super) const OWNER: &[Mutant] = &[
    Mutant {
        name: "a marker that no connection reads",
        patches: &[patch(
            "see_marker",
            "return {redis.call('EXISTS', unpack(KEYS, count + 1)), values,",
            "return {0, {},",
        )],
        caught_by: &[
            Case(
                "owner::a_queue_of_another_backend_is_refused",
                "opening the queue must fail",
            ),
            Case("owner::a_reconnect_looks_again", "refused: ()"),
            Case("owner::another_handle_looks_too", "the queue is another's"),
        ],
        ..NARROW
    },
    Mutant {
        name: "keys without a marker are taken for one's own",
        patches: &[patch(
            "see_marker",
            "redis.call('EXISTS', unpack(KEYS, count + 1))",
            "0",
        )],
        caught_by: &[Case(
            "owner::keys_without_a_marker_are_refused",
            "opening the queue must fail",
        )],
        ..NARROW
    },
    Mutant {
        name: "a look that writes the marker",
        patches: &[patch(
            "see_marker",
            "local values = {}",
            "local values = {}\nredis.call('SETNX', KEYS[1], 'relq 4 zset')",
        )],
        caught_by: &[
            // The backend sends this script by EVAL_RO, in which the server refuses
            // every write.
            Case("owner::the_first_write_marks_the_queue", "Write commands are not"),
            Case("owner::plain_pushes_need_no_marker", "Write commands are not"),
        ],
        ..NARROW
    },
    Mutant {
        name: "a marker that recovery and first writers do not compare",
        patches: &[patch(
            "write_marker",
            "if not is_own then return values end",
            "if not is_own then return {ARGV[2]} end",
        )],
        caught_by: &[
            Case("owner::recovery_looks_before_it_touches", "the queue is another's"),
            Case(
                "owner::the_second_of_two_first_writers_is_refused",
                "the queue is another backend's",
            ),
        ],
        ..NARROW
    },
    Mutant {
        name: "a marker that is not written again",
        patches: &[patch("write_marker", "word == 'first' and ", "")],
        caught_by: &[Case("owner::a_flush_stops_no_running_client", "marker set")],
        ..NARROW
    },
];
