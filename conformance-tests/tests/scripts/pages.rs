//! The pages, and the tests of each.

use relq_conformance::own::{
    Circular, CircularLrem, Keyspace, ProcessingList, ProcessingListShared, Stream,
    Zset,
};

use crate::{change::Scope, code::Code, page::Page, survivors};

macro_rules! page {
    ($backend:ident, $page:expr) => {
        mod $backend {
            use super::*;

            const PAGE: Page = $page;

            #[test]
            #[ignore = "takes some twenty minutes"]
            fn the_page_is_made() {
                PAGE.make();
            }

            #[test]
            fn the_page_has_every_change() {
                PAGE.check_changes();
            }

            #[test]
            fn the_page_has_every_case() {
                PAGE.check_cases();
            }

            #[test]
            fn all_that_is_not_caught_has_a_reason() {
                PAGE.check_reasons();
            }

            #[test]
            fn a_case_that_catches_no_change_catches_a_mutant() {
                PAGE.check_idle_cases();
            }
        }
    };
}

page!(
    zset,
    Page {
        backend: "zset",
        code: Code::Lua {
            backend: "zset",
            settings: &[|| Box::new(Zset)],
            changes: Scope::All,
        },
        has_batches: false,
        enough: 3,
        survivors: survivors::zset::SURVIVORS,
        lists_cases: true,
        other_cases: survivors::zset::IDLE_CASES,
    }
);

page!(
    stream,
    Page {
        backend: "stream",
        code: Code::Lua {
            backend: "stream",
            settings: &[|| Box::new(Stream)],
            changes: Scope::OwnAndUnnoticed,
        },
        has_batches: true,
        enough: 1,
        survivors: survivors::stream::SURVIVORS,
        lists_cases: false,
        other_cases: &[],
    }
);

page!(
    keyspace,
    Page {
        backend: "keyspace",
        code: Code::Lua {
            backend: "keyspace",
            settings: &[|| Box::<Keyspace>::default()],
            changes: Scope::Own,
        },
        has_batches: false,
        enough: 1,
        survivors: survivors::keyspace::SURVIVORS,
        lists_cases: false,
        other_cases: &[],
    }
);

page!(
    circular,
    Page {
        backend: "circular",
        code: Code::Lua {
            backend: "circular",
            settings: &[|| Box::new(Circular), || Box::new(CircularLrem)],
            changes: Scope::Own,
        },
        has_batches: false,
        enough: 1,
        survivors: survivors::circular::SURVIVORS,
        lists_cases: false,
        other_cases: &[],
    }
);

page!(
    processing_list,
    Page {
        backend: "processing-list",
        code: Code::Lua {
            backend: "processing-list",
            settings: &[|| Box::new(ProcessingList), || Box::new(ProcessingListShared)],
            changes: Scope::Own,
        },
        has_batches: false,
        enough: 1,
        survivors: survivors::processing_list::SURVIVORS,
        lists_cases: false,
        other_cases: &[],
    }
);

page!(
    sqlite,
    Page {
        backend: "sqlite",
        code: Code::Sql,
        has_batches: true,
        enough: 1,
        survivors: survivors::sqlite::SURVIVORS,
        lists_cases: false,
        other_cases: &[],
    }
);
