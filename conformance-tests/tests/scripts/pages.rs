//! The pages, and the tests of each.

use relq_conformance::own::{Stream, Zset};

use crate::{change::Scope, page::Page, survivors};

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
        backend_of_case: || Box::new(Zset),
        has_batches: false,
        scope: Scope::All,
        enough: 3,
        survivors: Some(survivors::SURVIVORS),
        lists_cases: true,
        other_cases: survivors::OTHERS,
    }
);

page!(
    stream,
    Page {
        backend: "stream",
        backend_of_case: || Box::new(Stream),
        has_batches: true,
        scope: Scope::Own,
        enough: 1,
        survivors: None,
        lists_cases: false,
        other_cases: &[],
    }
);
