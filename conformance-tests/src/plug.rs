//! One named test a case, in a backend's own tests.

/// Makes one named test a case, in a module a topic: the only line that a backend's
/// `tests/conformance.rs` needs beside its [`Subject`](crate::Subject).
///
/// ```text
/// conformance_tests::conformance!(MySubject, embedded);
/// ```
///
/// The second word is the [`Profile`](crate::Profile), in lower case. Cases that do
/// not concern it, or that would wait for minutes, are shown as ignored, with the
/// reason; the latter run with `cargo test -- --ignored`.
#[macro_export]
macro_rules! conformance {
    ($subject:ty, $profile:ident) => {
        type SubjectUnderTest = $subject;
        $crate::__with_cases!(__tests![$profile]);
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
macro_rules! __test {
    (redis embedded, $topic:ident $case:ident) => {
        #[test]
        #[ignore = "concerns stores without a clock of their own"]
        fn $case() {
            panic!("this case does not concern Redis");
        }
    };
    (embedded redis, $topic:ident $case:ident) => {
        #[test]
        #[ignore = "concerns Redis: its clock, and its plain producers"]
        fn $case() {
            panic!("this case concerns Redis alone");
        }
    };
    (redis long, $topic:ident $case:ident) => {
        #[test]
        #[ignore = "takes eight minutes: the server's clock is not moved"]
        fn $case() {
            $crate::__run!(Redis, $topic $case);
        }
    };
    (redis $(redis)?, $topic:ident $case:ident) => {
        #[test]
        fn $case() {
            $crate::__run!(Redis, $topic $case);
        }
    };
    (embedded $($scope:ident)?, $topic:ident $case:ident) => {
        #[test]
        fn $case() {
            $crate::__run!(Embedded, $topic $case);
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __run {
    ($profile:ident, $topic:ident $case:ident) => {
        $crate::run::<super::SubjectUnderTest>(
            $crate::Profile::$profile,
            concat!(stringify!($topic), "::", stringify!($case)),
        )
    };
}
