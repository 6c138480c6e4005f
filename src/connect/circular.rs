//! Opens URLs of the form `circular+redis://…[?finish=lrem]`, and the same with
//! `rediss` and `unix`.

use relq_circular::{CircularConfig, FinishBy};

use super::{ConnectError, opening::bad_url, own_option};

const PREFIX: &str = "circular+";

on_redis!(relq_circular::connect, CircularConfig::partition);

fn config(url: &str) -> Result<CircularConfig, ConnectError> {
    let address = url.strip_prefix(PREFIX).unwrap_or(url);
    own_option::check(url, address, &["finish"])?;
    let (address, finish) = own_option::split(address, "finish");
    let finish = match finish.as_slice() {
        [] | ["mark"] => FinishBy::Mark,
        ["lrem"] => FinishBy::Lrem,
        _ => return Err(bad_url(url, "the option finish must be mark or lrem")),
    };
    let config = CircularConfig::new(&address);
    let config = config.map_err(|error| bad_url(url, error.to_string()))?;
    Ok(config.finish(finish))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_says_how_jobs_leave_the_ring() {
        let set = |url| format!("{:?}", config(url).unwrap());
        for url in ["circular+redis://h/2", "circular+unix:///s?db=1&finish=mark"] {
            assert!(set(url).contains("Mark"), "{url}");
        }
        let url = "circular+unix:///r.sock?finish=lrem&db=1";
        assert!(set(url).contains("Lrem") && set(url).contains("/1"), "{}", set(url));
    }

    #[test]
    fn an_invalid_url_is_refused_without_showing_its_password() {
        for (url, why) in [
            ("circular+redis://:s3cret@h?finish=never", "mark or lrem"),
            ("circular+redis://:s3cret@h?finish=mark&finish=lrem", "mark or lrem"),
            (
                "circular+redis://:s3cret@h?finsh=lrem",
                "only finish, partitions, claim_from, part, response",
            ),
            ("circular+redis://:s3cret@h?mode=shared", "no option \"mode\""),
            ("circular+redis://:s3cret@h/zero", "not usable"),
        ] {
            let error = config(url).unwrap_err();
            let error = format!("{error} {error:?}");
            assert!(error.contains(why) && !error.contains("s3cret"), "{error}");
        }
    }
}
