//! Access to the page: the visitors, hosts and origins that may use it.

use std::net::SocketAddr;

use axum::{extract::ConnectInfo, middleware::map_request};
use relq::NewJob;
use relq_web::{Access, Actor, FixedQueues, WebPage};
use tokio::task::JoinSet;

use crate::{
    client::Request,
    html, log,
    site::{Site, serve},
};

const TOKEN: &str = "0123456789abcdef";

/// The pages and files that a visitor may see before the sign-in.
const PUBLIC: [&str; 4] =
    ["/sign-in", "/static/relq.css", "/static/live.js", "/static/icon.svg"];

fn pause() -> Request {
    Request::post("/queue/emails/do/pause", "")
}

async fn is_paused(site: &Site) -> bool {
    site.queue.stats().await.unwrap().paused
}

#[tokio::test]
async fn a_foreign_host_name_is_refused() {
    let site = Site::sqlite().await;
    for host in ["evil.example", "localhost.evil.example", "127.0.0.2"] {
        for path in PUBLIC.into_iter().chain(["/", "/live"]) {
            let answer = site.send(&Request::get(path).with("host", host)).await;
            assert_eq!(answer.status, 421, "{host}{path}");
        }
        let answer = site.send(&pause().with("host", host)).await;
        assert_eq!(answer.status, 421, "{host}");
    }
    for host in ["localhost", "LOCALHOST:1234", "127.0.0.1", "[::1]:80"] {
        assert_eq!(site.send(&Request::get("/").with("host", host)).await.status, 200);
    }
    assert!(!is_paused(&site).await);
}

#[tokio::test]
async fn the_named_hosts_replace_those_of_the_machine() {
    let site = Site::with(|page| page.hosts(["queues.example.org"])).await;
    let named = Request::get("/").with("host", "queues.example.org");

    assert_eq!(site.send(&named).await.status, 200);
    assert_eq!(site.get("/").await.status, 421);
}

#[tokio::test]
async fn a_form_of_another_site_is_refused() {
    let site = Site::sqlite().await;
    for foreign in [
        pause().with("origin", "http://evil.example"),
        pause().with("origin", "http://localhost:81"),
        pause().with("origin", "null"),
        pause().without("origin"),
        pause().with("sec-fetch-site", "cross-site"),
        pause().with("sec-fetch-site", "same-site"),
    ] {
        let answer = site.send(&foreign).await;
        assert_eq!(answer.status, 403, "{:?}", foreign.headers);
        assert!(!is_paused(&site).await, "{:?}", foreign.headers);
    }
    let own = pause().without("origin").with("sec-fetch-site", "same-origin");

    assert_eq!(site.send(&own).await.status, 303);
    assert!(is_paused(&site).await);
}

#[tokio::test]
async fn nothing_is_shown_without_the_token() {
    let site = Site::guarded(Access::token(TOKEN).unwrap()).await;
    site.push("a", NewJob::new("confidential")).await;
    let bearer = |token: &str| format!("Bearer {token}");
    let (cookie, _) = sign_in(&site, "/", &format!("secret={TOKEN}")).await;
    let (cookie, _) = cookie.split_once('=').unwrap();
    for path in ["/", "/queue/emails", "/queue/emails/jobs/ready", "/live", "/nothing"]
    {
        for request in [
            Request::get(path),
            Request::get(path).with("authorization", bearer("wrong-wrong-wrong")),
            Request::get(path).with("authorization", bearer("")),
            Request::get(path).with("cookie", format!("{cookie}=0123")),
        ] {
            let answer = site.send(&request).await;
            assert_eq!(answer.status, 401, "{path}");
            assert!(!answer.body.contains("emails</h1>"), "{}", answer.body);
            assert!(!answer.body.contains("confidential"), "{}", answer.body);
        }
    }
    for path in PUBLIC {
        assert_ne!(site.get(path).await.status, 404, "{path}");
    }
    assert_eq!(site.send(&pause()).await.status, 401);
    assert!(!is_paused(&site).await);
}

#[tokio::test]
async fn a_program_signs_in_by_a_header() {
    let site = Site::guarded(Access::token(TOKEN).unwrap()).await;
    let signed =
        pause().without("origin").with("authorization", format!("Bearer {TOKEN}"));

    assert_eq!(site.send(&signed).await.status, 303);
    assert!(is_paused(&site).await);
}

/// A password may have a colon, which ends the name in the header.
#[tokio::test]
async fn a_program_signs_in_by_a_name_and_a_password() {
    let access = Access::password("anna", "correct: horse").unwrap();
    let site = Site::guarded(access).await;
    let signed = |pair: &str| {
        pause().without("origin").with("authorization", format!("Basic {pair}"))
    };
    for (pair, what) in [
        ("YW5uYTpjb3JyZWN0OiBob3JzZXM=", "another password"),
        ("YmVydDpjb3JyZWN0OiBob3JzZQ==", "another name"),
        ("YW5uYTo=", "no password"),
        ("YW5uYQ==", "no colon"),
        ("?", "no base64"),
    ] {
        let answer = site.send(&signed(pair)).await;
        // It came from no page, and is nobody's.
        assert_eq!(answer.status, 403, "{what}");
        assert!(!is_paused(&site).await, "{what}");
    }

    let answer = site.send(&signed("YW5uYTpjb3JyZWN0OiBob3JzZQ==")).await;

    assert_eq!(answer.status, 303, "{}", answer.body);
    assert!(is_paused(&site).await);
}

/// Browsers send a cookie to all ports of a host, so a visitor of two pages sends both.
#[tokio::test]
async fn two_pages_on_one_host_have_sessions_of_their_own() {
    let mut sessions = Vec::new();
    let sites = [
        Site::guarded(Access::token(TOKEN).unwrap()).await,
        Site::guarded(Access::token(TOKEN).unwrap()).await,
    ];
    for site in &sites {
        let (cookie, _) = sign_in(site, "/", &format!("secret={TOKEN}")).await;
        let (name, value) = cookie.split(';').next().unwrap().split_once('=').unwrap();
        sessions.retain(|(other, _)| other != name);
        sessions.push((name.to_owned(), value.to_owned()));
    }
    let jar: Vec<_> =
        sessions.iter().map(|(name, value)| format!("{name}={value}")).collect();

    for site in &sites {
        let answer = site.send(&Request::get("/").with("cookie", jar.join("; "))).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
}

/// Signs in by the form that a page shows instead of itself. Returns the cookie and where
/// the sign-in leads.
async fn sign_in(site: &Site, asked: &str, extra: &str) -> (String, String) {
    let page = site.get(asked).await;
    assert_eq!(page.status, 401);
    let form = html::form(&page.body, "Sign in").unwrap();
    let next = form.fields.split('&').find(|it| it.starts_with("next=")).unwrap();
    let request = Request::post(&*form.action, format!("{next}&{extra}"));
    let answer = site.send(&request).await;
    assert_eq!(answer.status, 303, "{}", answer.body);
    let cookie = answer.header("set-cookie").unwrap().to_owned();
    (cookie, answer.header("location").unwrap().to_owned())
}

#[tokio::test]
async fn a_session_begins_and_ends() {
    let access = Access::password("anna", "correct horse").unwrap();
    let site = Site::guarded(access).await;
    let asked = "/queue/emails/jobs/ready?text=a%20b";

    let (cookie, next) = sign_in(&site, asked, "user=anna&secret=correct+horse").await;

    assert_eq!(next, asked);
    for part in ["HttpOnly", "SameSite=Strict", "Path=/;"] {
        assert!(cookie.contains(part), "{part} in {cookie}");
    }
    let session = cookie.split(';').next().unwrap();
    let with = |request: Request| request.with("cookie", session);
    let page = site.send(&with(Request::get("/"))).await.page();
    assert!(page.contains("anna"), "{page}");

    // The cookie alone does not let another site change anything.
    let foreign = with(pause()).with("origin", "http://evil.example");
    assert_eq!(site.send(&foreign).await.status, 403);
    assert!(!is_paused(&site).await);
    assert_eq!(site.send(&with(pause())).await.status, 303);

    assert_eq!(site.send(&with(Request::post("/sign-out", ""))).await.status, 303);
    assert_eq!(site.send(&with(Request::get("/"))).await.status, 401);
}

#[tokio::test]
async fn a_wrong_password_begins_no_session() {
    let access = Access::password("anna", "correct horse").unwrap();
    let site = Site::guarded(access).await;
    for fields in ["user=anna&secret=wrong", "user=bert&secret=correct+horse", ""] {
        let answer = site.send(&Request::post("/sign-in", fields)).await;

        assert_eq!(answer.status, 401, "{fields}");
        assert_eq!(answer.header("set-cookie"), None, "{fields}");
    }
}

/// Takes the address of the visitor from a header, as if the connection came from there.
async fn from_peer(mut request: axum::extract::Request) -> axum::extract::Request {
    let peer: SocketAddr = request.headers()["peer"].to_str().unwrap().parse().unwrap();
    request.extensions_mut().insert(ConnectInfo(peer));
    request
}

/// The two ways to sign in from an address: by a header, and by the form.
fn attempts(peer: &str, token: &str) -> [Request; 2] {
    let by_header = Request::get("/").with("authorization", format!("Bearer {token}"));
    let by_form = Request::post("/sign-in", format!("secret={token}"));
    [by_header, by_form].map(|attempt| attempt.with("peer", peer))
}

/// Everybody can guess, and must not keep those out who know the token. When the first
/// guess was refused, the others still wait behind it, and each waits 250 ms.
#[tokio::test]
async fn guesses_from_one_address_do_not_delay_another() {
    let page = WebPage::new(FixedQueues::new([]), Access::token(TOKEN).unwrap());
    let (address, serving) = serve(page.router().layer(map_request(from_peer))).await;
    let mut guesses = JoinSet::new();
    for guess in (0..10).flat_map(|_| attempts("192.0.2.1:1", "wrong")) {
        guesses.spawn(async move { guess.send(address).await.status });
    }
    assert_eq!(guesses.join_next().await.unwrap().unwrap(), 401);

    for (attempt, status) in attempts("192.0.2.2:1", TOKEN).iter().zip([200, 303]) {
        assert_eq!(attempt.send(address).await.status, status, "{}", attempt.path);
    }

    while guesses.try_join_next().is_some() {}
    assert!(guesses.len() > 5, "only {} guesses still wait", guesses.len());
    serving.abort();
}

#[tokio::test]
async fn a_sign_in_does_not_lead_to_another_site() {
    let site = Site::guarded(Access::token(TOKEN).unwrap()).await;
    let fields = format!("next=//evil.example&secret={TOKEN}");

    let answer = site.send(&Request::post("/sign-in", fields)).await;

    assert_eq!(answer.header("location"), Some("/"));
}

#[tokio::test]
async fn behind_https_the_cookie_is_secure() {
    let site = Site::guarded(Access::token(TOKEN).unwrap()).await;
    let request = Request::post("/sign-in", format!("secret={TOKEN}"));

    let plain = site.send(&request).await;
    let proxied = site.send(&request.with("x-forwarded-proto", "https")).await;

    assert!(!plain.header("set-cookie").unwrap().contains("Secure"));
    assert!(proxied.header("set-cookie").unwrap().ends_with("; Secure"));
}

#[test]
fn a_secret_that_can_be_guessed_is_refused() {
    Access::token("0123456789abcde").unwrap_err();
    Access::password("anna", "seven77").unwrap_err();
    Access::password("", "correct horse").unwrap_err();
    Access::password("a:b", "correct horse").unwrap_err();
}

#[tokio::test]
async fn a_read_only_page_refuses_each_change() {
    let site = Site::with(relq_web::WebPage::read_only).await;
    site.bury("a", "broken").await;
    for word in ["pause", "retry", "purge", "retry-all", "purge-all", "cancel"] {
        let path = format!("/queue/emails/do/{word}");
        let answer = site.send(&Request::post(path, "id=a&confirmed=yes")).await;
        assert_eq!(answer.status, 403, "{word}");
    }
    for path in ["", "/dead", "/job?id=a"] {
        let page = site.page(&format!("/queue/emails{path}")).await;
        assert!(!page.contains("/do/") && !page.contains("/confirm/"), "{page}");
    }
    assert_eq!(site.get("/queue/emails/confirm/purge-all").await.status, 403);
    assert_eq!(site.counts().await, [0, 0, 0, 1]);
    assert!(!is_paused(&site).await);
}

/// No page can be framed, run foreign or inline code, be guessed to be another type, or be
/// kept by a cache.
#[tokio::test]
async fn every_answer_has_the_headers_of_security() {
    let site = Site::sqlite().await;
    let foreign = Request::get("/").with("host", "evil.example");
    for answer in [
        site.get("/").await,
        site.get("/queue/emails/dead").await,
        site.get("/static/live.js").await,
        site.get("/nothing").await,
        site.get("/queue/emails/do/pause").await,
        site.send(&foreign).await,
    ] {
        let policy = answer.header("content-security-policy").unwrap();
        for part in
            ["default-src 'none'", "frame-ancestors 'none'", "script-src 'self'"]
        {
            assert!(policy.contains(part), "{part} in {policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        assert!(!answer.body.contains("style=") && !answer.body.contains("<style"));
    }
}

/// The application may name the visitor.
#[tokio::test]
async fn the_page_is_mounted_below_a_path() {
    let site = Site::sqlite().await;
    site.bury("a b", "broken").await;
    let queues = relq_web::FixedQueues::new([(
        relq::QueueName::new("e/mails").unwrap(),
        site.queue.clone(),
    )]);
    let page = relq_web::WebPage::new(queues, Access::token(TOKEN).unwrap());
    let router = page.base_path("/admin/queues").unwrap().router();
    let app = axum::Router::new()
        .nest("/admin/queues", router)
        .layer(axum::Extension(Actor("ignored, because there is a token".to_owned())));
    let (address, serving) = serve(app).await;
    let send = async |path: &str| {
        let signed = format!("Bearer {TOKEN}");
        Request::get(path).with("authorization", signed).send(address).await
    };

    for path in
        ["", "/queue/e%2Fmails", "/queue/e%2Fmails/dead", "/queue/e%2Fmails/job?id=a+b"]
    {
        let page = send(&format!("/admin/queues{path}")).await.page();
        for link in html::addresses(&page).iter().filter(|link| *link != "#content") {
            assert!(link.starts_with("/admin/queues"), "{link} in {path}");
        }
    }
    assert_eq!(send("/admin/queues/static/relq.css").await.status, 200);
    assert_eq!(send("/").await.status, 404);
    let request =
        Request::post("/admin/queues/sign-in", format!("next=/&secret={TOKEN}"));
    let answer = request.send(address).await;
    assert_eq!(answer.header("location"), Some("/admin/queues"));
    assert!(answer.header("set-cookie").unwrap().contains("Path=/admin/queues;"));
    serving.abort();
}

/// The application may name the visitor, for the log.
#[tokio::test]
async fn the_log_says_which_visitor_changed_what() {
    log::keep();
    let site = Site::sqlite().await;
    site.push("a", NewJob::new("x")).await;
    let name = relq::QueueName::new("emails").unwrap();
    let queues = relq_web::FixedQueues::new([(name, site.queue.clone())]);
    let page = relq_web::WebPage::new(queues, Access::checked_by_caller());
    let app = page.router().layer(axum::Extension(Actor("anna".to_owned())));
    let (address, serving) = serve(app).await;

    let cancel = Request::post("/queue/emails/do/cancel", "id=a&confirmed=yes");
    assert_eq!(cancel.send(address).await.status, 303);

    let line = log::line_with("a visitor of the web page changed a queue");
    let line = line.expect("the change is logged");
    for part in
        ["actor=\"anna\"", "queue=\"emails\"", "action=\"cancel\"", "subject=\"a\""]
    {
        assert!(line.contains(part), "{part} in {line}");
    }
    assert!(line.contains("The job a was removed. It was ready."), "{line}");
    serving.abort();
}

#[test]
fn a_base_path_is_a_path() {
    let page = || {
        relq_web::WebPage::new(
            relq_web::FixedQueues::new([]),
            Access::checked_by_caller(),
        )
    };
    for path in ["/", "a", "/a/", "//a", "/a/../b", "/a\"b", "/a?b", "/é"] {
        assert!(page().base_path(path).is_err(), "{path}");
    }
    for path in ["", "/a", "/a/b-c_d.e"] {
        assert!(page().base_path(path).is_ok(), "{path}");
    }
}
