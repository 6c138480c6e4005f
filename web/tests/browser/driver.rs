//! A browser, by the protocol WebDriver, as far as the tests need it.
//! <https://www.w3.org/TR/webdriver2/>

use std::{
    io::{BufRead as _, BufReader},
    net::SocketAddr,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::Request;

/// How long a test waits for a condition.
const LIMIT: Duration = Duration::from_secs(60);

/// A driver with one window. It ends with this value.
pub(crate) struct Browser {
    driver: Child,
    address: SocketAddr,
    session: String,
    _profile: TempDir,
}

impl Browser {
    /// Starts a browser without a screen.
    ///
    /// # Panics
    /// If chromedriver or chromium is missing.
    pub(crate) async fn start() -> Self {
        let (driver, port) = driver();
        let profile = tempfile::tempdir().unwrap();
        let folder = format!("--user-data-dir={}", profile.path().display());
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let options = json!({
            "args": ["--headless=new", "--no-sandbox", "--disable-gpu",
                "--disable-dev-shm-usage", "--disable-background-networking", folder],
        });
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL"},
        }}});
        let started = call(address, "POST", "/session", &wanted).await;
        let session = started["sessionId"].as_str().unwrap().to_owned();
        Self { driver, address, session, _profile: profile }
    }

    async fn call(&self, method: &'static str, path: &str, body: Value) -> Value {
        let path = format!("/session/{}{path}", self.session);
        call(self.address, method, &path, &body).await
    }

    pub(crate) async fn go(&self, address: &str) {
        self.call("POST", "/url", json!({"url": address})).await;
    }

    pub(crate) async fn run(&self, script: &str, arguments: Value) -> Value {
        let body = json!({"script": script, "args": arguments});
        self.call("POST", "/execute/sync", body).await
    }

    /// The text of the page, as a visitor sees it.
    pub(crate) async fn text(&self) -> String {
        let text = self.run("return document.body.innerText", json!([])).await;
        text.as_str().unwrap().to_owned()
    }

    /// Clicks the button or link with exactly this text.
    pub(crate) async fn click(&self, label: &str) {
        let path = format!("//*[self::a or self::button][normalize-space()='{label}']");
        let wanted = json!({"using": "xpath", "value": path});
        let found = self.call("POST", "/element", wanted).await;
        let id =
            found.as_object().and_then(|it| it.values().next()).and_then(Value::as_str);
        let id = id.unwrap_or_else(|| panic!("no {label}: {found}")).to_owned();
        self.call("POST", &format!("/element/{id}/click"), json!({})).await;
    }

    /// Presses and releases a key.
    ///
    /// # Panics
    /// If it is neither Tab nor Enter.
    pub(crate) async fn press(&self, key: &str) {
        // <https://www.w3.org/TR/webdriver2/#keyboard-actions>
        let code = match key {
            "Tab" => "\u{E004}",
            "Enter" => "\u{E007}",
            other => panic!("no code for the key {other}"),
        };
        let actions =
            ["keyDown", "keyUp"].map(|kind| json!({"type": kind, "value": code}));
        let keyboard = json!({"type": "key", "id": "keyboard", "actions": actions});
        self.call("POST", "/actions", json!({"actions": [keyboard]})).await;
    }

    /// Presses Tab until the button with this text has the focus.
    pub(crate) async fn tab_to(&self, label: &str) {
        let focused = "return document.activeElement.innerText";
        for _ in 0..200 {
            self.press("Tab").await;
            if self.run(focused, json!([])).await == json!(label) {
                return;
            }
        }
        panic!("Tab does not reach {label}");
    }

    /// Waits until the text of the page has these words.
    pub(crate) async fn wait_for(&self, words: &str) {
        let began = Instant::now();
        loop {
            let text = self.text().await;
            if text.contains(words) {
                return;
            }
            assert!(began.elapsed() < LIMIT, "no {words:?} in {text}");
            tokio::task::yield_now().await;
        }
    }

    /// The messages of the console, such as violations of the policy.
    pub(crate) async fn console(&self) -> Vec<String> {
        let log = self.call("POST", "/se/log", json!({"type": "browser"})).await;
        let entries = log.as_array().into_iter().flatten();
        entries.map(|entry| entry["message"].to_string()).collect()
    }

    /// Runs a command of the protocol of the developer tools.
    pub(crate) async fn tools(&self, command: &str, parameters: Value) -> Value {
        let body = json!({"cmd": command, "params": parameters});
        self.call("POST", "/goog/cdp/execute", body).await
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The driver ends the browser when it is asked to end itself.
        let path = format!("http://{}/shutdown", self.address);
        drop(std::net::TcpStream::connect(self.address).map(|mut stream| {
            use std::io::{Read as _, Write as _};
            let head = "GET /shutdown HTTP/1.1\r\nhost: localhost\r\n\r\n";
            stream.write_all(head.as_bytes()).unwrap_or_else(|error| {
                eprintln!("{path}: {error}");
            });
            // The connection is closed when the driver has ended the browser.
            let _ = stream.set_read_timeout(Some(Duration::from_secs(10)));
            let _ = stream.read_to_end(&mut Vec::new());
        }));
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// Starts a driver, and returns it with its port. A driver takes the same free port for IPv4
/// and IPv6, and ends if another program has taken one of them meanwhile. Then another driver
/// is started.
fn driver() -> (Child, u16) {
    const ATTEMPTS: usize = 5;
    let mut printed = Vec::new();
    for _ in 0..ATTEMPTS {
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("install chromium and chromium-driver (chromedriver)");
        let lines = BufReader::new(driver.stdout.take().unwrap()).lines();
        for line in lines.map_while(Result::ok) {
            if let Some(port) = port(&line) {
                return (driver, port);
            }
            printed.push(line);
        }
        driver.wait().unwrap();
    }
    panic!("the driver does not start: {printed:#?}");
}

/// The port of a driver, in the line that tells it.
fn port(line: &str) -> Option<u16> {
    let (_, rest) = line.split_once("started successfully on port ")?;
    rest.trim_end_matches('.').parse().ok()
}

async fn call(
    address: SocketAddr,
    method: &'static str,
    path: &str,
    body: &Value,
) -> Value {
    let request = Request {
        method,
        path: path.to_owned(),
        headers: vec![
            ("host", address.to_string()),
            ("content-type", "application/json".to_owned()),
        ],
        body: body.to_string(),
    };
    let answer = request.send(address).await;
    assert_eq!(answer.status, 200, "{method} {path}: {}", answer.body);
    let parsed: Value = serde_json::from_str(&answer.body).unwrap();
    parsed["value"].clone()
}
