//! Tests which store a relq call inside the command of `relq work` uses. The call
//! pushes to the queue of the command's own job. It gets the store's password only if
//! the user asked for that.

use crate::relq::{Relq, Store, children_of, wait_until};

/// The path of the program, for commands that call it.
const RELQ: &str = env!("CARGO_BIN_EXE_relq");

const PASSWORD: &str = "s3cret";

/// A call of `relq work` that runs `script` on each job of the queue `letters`, until
/// the queue is empty. Only the option `--url` names the store.
fn work(store: &Store, url: &str, flags: &[&str], script: &str) -> Relq {
    let mut line = vec!["work", "--url", url, "-q", "letters", "--until-empty"];
    line.extend(flags);
    line.extend(["--exec", "sh", "-c", script]);
    store.relq_with(&line).no_env("RELQ_URL").env("RELQ", RELQ)
}

/// A Redis server that requires a password, over TCP or a Unix socket.
struct Guarded {
    store: Store,
    /// The server's URL, without the password (`bare`) and with it (`full`).
    bare: String,
    full: String,
}

impl Guarded {
    fn on_tcp() -> Self {
        let store = Store::redis_on_tcp();
        let full = store.url.replace("://", &format!("://:{PASSWORD}@"));
        Self::new(store, full)
    }

    fn on_socket() -> Self {
        let store = Store::redis();
        let full = format!("{}?pass={PASSWORD}&db=0", store.url);
        Self::new(store, full)
    }

    /// A socket may also be named without the slashes before its path.
    fn on_socket_by_its_path() -> Self {
        let store = Store::redis();
        let short = store.url.replace(":///", ":/");
        Self::new(store, format!("{short}?pass={PASSWORD}&db=0"))
    }

    fn new(mut store: Store, full: String) -> Self {
        let set = [&b"CONFIG"[..], b"SET", b"requirepass", PASSWORD.as_bytes()];
        assert_eq!(store.server().command(&set), b"+OK\r\n");
        let bare = std::mem::replace(&mut store.url, full.clone());
        store.push("-q letters job --max-attempts 1");
        Self { store, bare, full }
    }

    /// Writes the password to a file of the store's folder.
    fn write(&self, file: &str) {
        std::fs::write(self.store.file(file), format!("{PASSWORD}\n")).unwrap();
    }

    /// Reads the environment that a command has written to the file `seen`.
    fn seen(&self) -> String {
        std::fs::read_to_string(self.store.file("seen")).unwrap()
    }
}

/// A command that writes its environment to a file, and pushes a job from another
/// folder. The job is due in an hour, so that the worker ends whether or not it is pushed.
const SEE_AND_PUSH: &str = "env >seen; cd /; \"$RELQ\" push nested --delay 1h";

/// The last error of the only job in `letters`, which is dead.
fn last_error(store: &Store) -> String {
    let dead = store.relq("dead list -q letters --json").json();
    dead[0]["last_error"].as_str().unwrap().to_owned()
}

/// The command gets a URL with an absolute path, so that it names the same file from
/// any folder.
#[test]
fn a_push_inside_a_command_goes_to_the_store_and_queue_of_its_job() {
    let store = Store::sqlite();
    let url = "sqlite:jobs.db";
    store.relq_with(&["push", "--url", url, "-q", "letters", "first"]).ok();
    let script = "mkdir sub && cd sub && \
        if [ \"$(cat)\" = first ]; then \"$RELQ\" push second; fi";

    let ended = work(&store, url, &[], script).run();
    assert_eq!(ended.code, Some(4), "{}", ended.err);

    let line = ["stats", "--url", url, "-q", "letters", "--json"];
    let stats = store.relq_with(&line).json();
    assert_eq!(stats["finished"], 1, "{}", ended.err);
    assert_eq!(stats["scheduled"], 1, "the second found its folder there: {stats}");
    assert!(!store.file("sub/jobs.db").exists() && !store.file("sub/relq.db").exists());
}

#[test]
fn the_default_store_is_the_one_of_the_folder_of_the_worker() {
    let store = Store::sqlite();
    store.relq("push -q letters job").no_env("RELQ_URL").ok();
    let script = "cd / && echo $RELQ_URL";
    let line = ["work", "-q", "letters", "--until-empty", "--exec", "sh", "-c", script];
    let out = store.relq_with(&line).no_env("RELQ_URL").ok();
    let folder = store.folder.path().canonicalize().unwrap();
    assert_eq!(out.trim(), format!("sqlite:{}", folder.join("relq.db").display()));
}

/// A `?` begins the options of a URL, so no URL names a file in such a folder.
#[test]
fn a_folder_that_no_url_can_name_is_refused() {
    let store = Store::sqlite();
    let script = "mkdir 'a?b' && cd 'a?b' && \"$0\" push job >/dev/null && \
        \"$0\" work --until-empty -- true";

    let error = store.shell(script).fails(2);

    assert!(error.contains("start relq in another folder"), "{error}");
}

#[test]
fn the_queue_is_read_from_the_environment() {
    let store = Store::sqlite();
    store.relq("push a").env("RELQ_QUEUE", "letters").ok();
    assert_eq!(store.count("letters", "ready"), 1);
    store.relq("push -q others a").env("RELQ_QUEUE", "letters").ok();
    assert_eq!(store.count("others", "ready"), 1);
    store.relq("push a").env("RELQ_QUEUE", "").ok();
    assert_eq!(store.count("default", "ready"), 1);
}

#[test]
fn a_password_stays_out_of_the_environment_of_a_command() {
    for guarded in
        [Guarded::on_tcp(), Guarded::on_socket(), Guarded::on_socket_by_its_path()]
    {
        let Guarded { store, full, .. } = &guarded;
        let ended = work(store, full, &[], SEE_AND_PUSH).run();

        let seen = guarded.seen();
        assert!(!seen.contains(PASSWORD), "the command sees the password: {seen}");
        assert!(seen.contains("RELQ_URL=zset+"), "{seen}");
        assert_eq!(ended.code, Some(3), "{}", ended.err);
        let error = last_error(store);
        assert!(error.contains("password of its URL was left out"), "{error}");
        assert!(error.contains("--pass-credentials"), "{error}");
        assert!(error.contains("RELQ_PASSWORD_FILE"), "{error}");
        assert!(!error.contains(PASSWORD), "{error}");
        assert_eq!(store.count("letters", "scheduled"), 0);
    }
}

#[test]
fn a_password_is_passed_on_when_that_is_asked_for() {
    for guarded in [Guarded::on_tcp(), Guarded::on_socket()] {
        let Guarded { store, full, .. } = &guarded;
        let ended = work(store, full, &["--pass-credentials"], SEE_AND_PUSH).run();
        assert_eq!(ended.code, Some(4), "{}", ended.err);

        assert!(guarded.seen().contains(PASSWORD));
        assert_eq!(store.count("letters", "scheduled"), 1, "{}", ended.err);
        assert_eq!(store.count("letters", "finished"), 1, "{}", ended.err);
    }
}

/// The command inherits RELQ_PASSWORD_FILE, the name of the file, and not the password.
#[test]
fn a_password_is_read_from_its_file_by_the_worker_and_by_its_command() {
    for guarded in [Guarded::on_tcp(), Guarded::on_socket()] {
        let Guarded { store, bare, .. } = &guarded;
        guarded.write("secret");
        let worker = work(store, bare, &[], SEE_AND_PUSH);
        let ended = worker.env("RELQ_PASSWORD_FILE", "secret").run();
        assert_eq!(ended.code, Some(4), "{}", ended.err);

        let file = store.folder.path().canonicalize().unwrap().join("secret");
        let named = format!("RELQ_PASSWORD_FILE={}\n", file.display());
        let seen = guarded.seen();
        assert!(seen.contains(&named) && !seen.contains(PASSWORD), "{seen}");
        assert_eq!(store.count("letters", "scheduled"), 1, "{}", ended.err);
        assert_eq!(store.count("letters", "finished"), 1, "{}", ended.err);
    }
}

#[test]
fn the_password_of_a_url_comes_before_that_of_the_file() {
    let guarded = Guarded::on_tcp();
    let file = guarded.store.file("wrong");
    std::fs::write(&file, "wr0ng").unwrap();
    let stats = |url| guarded.store.relq_with(&["stats", "--url", url]);
    let in_file = |url| stats(url).env("RELQ_PASSWORD_FILE", file.to_str().unwrap());
    in_file(&guarded.full).ok();
    let error = in_file(&guarded.bare).fails(1);
    assert!(error.contains("denied") && !error.contains("wr0ng"), "{error}");
}

#[test]
fn a_password_file_that_cannot_be_used_says_so() {
    let guarded = Guarded::on_tcp();
    std::fs::write(guarded.store.file("empty"), "\n").unwrap();
    std::fs::write(guarded.store.file("binary"), b"\xff").unwrap();
    for (file, words) in [
        ("missing", "cannot be read"),
        ("empty", "holds no password"),
        ("binary", "is not UTF-8"),
    ] {
        let stats = guarded.store.relq_with(&["stats", "--url", &guarded.bare]);
        let error = stats.env("RELQ_PASSWORD_FILE", file).fails(1);
        assert!(error.contains("RELQ_PASSWORD_FILE"), "{error}");
        assert!(error.contains(file) && error.contains(words), "{error}");
    }
    // If the store needs no password, the file is not read, so it may be missing.
    let sqlite = guarded.store.relq("push a --url sqlite:own.db");
    sqlite.env("RELQ_PASSWORD_FILE", "missing").ok();
}

/// The password is not in the arguments of a process, which all users of the machine
/// can read.
#[cfg(target_os = "linux")]
#[test]
fn no_process_of_a_worker_shows_the_url_but_the_worker_itself() {
    let guarded = Guarded::on_tcp();
    let line =
        ["work", "-q", "letters", "--exec", "sh", "-c", "echo >runs; sleep 1000"];
    let mut worker = guarded.store.relq_with(&line).start();
    wait_until("the command runs", || guarded.store.file("runs").exists());

    let pid = worker.child.id();
    let children = children_of(pid);
    assert!(!children.is_empty());
    for child in children {
        for of_it in ["cmdline", "environ"] {
            let text = std::fs::read(format!("/proc/{child}/{of_it}")).unwrap();
            let text = String::from_utf8_lossy(&text);
            assert!(!text.contains(PASSWORD), "{of_it}: {text}");
        }
    }
    let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap();
    assert!(!String::from_utf8_lossy(&arguments).contains(PASSWORD));
    worker.stop_hard();
}
