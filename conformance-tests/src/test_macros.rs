//! One named test per case, in a backend's own tests.

/// Makes one named test per case, in one module per topic. A backend's
/// `tests/conformance.rs` needs only this line and its [`Subject`](crate::Subject).
///
/// ```text
/// relq_conformance::conformance!(MySubject, redis);
/// ```
///
/// The second argument is `redis` or `embedded`. Cases that do not apply to it are
/// shown as ignored, with the reason. A backend on Redis also gets one test for each
/// act of [depth 1](crate::steps), in the module `steps`, and some cases a second time
/// in real time, in the module `bare`. Every backend is compared with the reference
/// [model](crate::model), in the module `model`.
#[macro_export]
macro_rules! conformance {
    ($subject:ty, redis) => {
        type SubjectUnderTest = $subject;
        $crate::__with_cases!(__tests![Redis]);
        mod bare {
            type SubjectUnderTest = super::SubjectUnderTest;
            $crate::__with_bare_cases!(__bare_tests!);
        }
        mod steps {
            $crate::__with_scenarios!(__step_tests!);
        }
        $crate::__model_test!(Redis);
    };
    ($subject:ty, embedded) => {
        type SubjectUnderTest = $subject;
        $crate::__with_cases!(__tests![Embedded]);
        $crate::__model_test!(Embedded);
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __tests {
    ([$profile:ident] $($topic:ident { $($case:ident: $($rule:ident)+
        $(=> $($need:ident)+)? $(@ $scope:ident)?;)* })*) => {
        $(mod $topic { $(
            $crate::__test!($profile $($scope)?, $topic $case);
        )* })*
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __bare_tests {
    ($($topic:ident { $($case:ident)* })*) => {
        $(mod $topic { $(
            $crate::__test!(Bare, $topic $case);
        )* })*
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __step_tests {
    ($($scenario:ident)*) => {
        #[test]
        fn every_script_is_reached() {
            $crate::steps::reach::<super::SubjectUnderTest>();
        }
        $(
        #[test]
        fn $scenario() {
            $crate::steps::run::<super::SubjectUnderTest>(stringify!($scenario));
        }
    )* };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __model_test {
    ($profile:ident) => {
        mod model {
            #[test]
            fn every_sequence_goes_by_the_rules() {
                $crate::model::run::<super::SubjectUnderTest>(
                    $crate::Profile::$profile,
                );
            }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __test {
    (Redis embedded, $topic:ident $case:ident) => {
        #[test]
        #[ignore = "concerns stores without a clock of their own"]
        fn $case() {
            panic!("this case does not concern Redis");
        }
    };
    (Embedded redis, $topic:ident $case:ident) => {
        #[test]
        #[ignore = "concerns Redis: its clock, and its plain producers"]
        fn $case() {
            panic!("this case concerns Redis alone");
        }
    };
    ($profile:ident $($scope:ident)?, $topic:ident $case:ident) => {
        #[test]
        fn $case() {
            $crate::run::<super::SubjectUnderTest>(
                $crate::Profile::$profile,
                concat!(stringify!($topic), "::", stringify!($case)),
            );
        }
    };
}
