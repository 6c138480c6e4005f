//! The pages, and the tests of each.

use relq_conformance::own::{Stream, Zset};

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
        survivors: survivors::SURVIVORS,
        has_all_reasons: true,
        lists_cases: true,
        other_cases: survivors::OTHERS,
    }
);

page!(
    stream,
    Page {
        backend: "stream",
        code: Code::Lua {
            backend: "stream",
            settings: &[|| Box::new(Stream)],
            changes: Scope::Own,
        },
        has_batches: true,
        enough: 1,
        survivors: survivors::ON_STREAM,
        has_all_reasons: false,
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
        survivors: survivors::ON_SQLITE,
        has_all_reasons: false,
        lists_cases: false,
        other_cases: &[],
    }
);
