//! Opens URLs of the form `processing-list+redis://…[?mode=shared]`, and the same with
//! `rediss` and `unix`.

use relq_processing_list::{Mode, ProcessingListConfig};

use super::{ConnectError, opening::bad_url, own_option};

const PREFIX: &str = "processing-list+";

on_redis!(relq_processing_list::connect, ProcessingListConfig::partition);

fn config(url: &str) -> Result<ProcessingListConfig, ConnectError> {
    let address = url.strip_prefix(PREFIX).unwrap_or(url);
    own_option::check(url, address, &["mode"])?;
    let (address, mode) = own_option::split(address, "mode");
    let mode = match mode.as_slice() {
        [] | ["worker"] => Mode::PerWorker,
        ["shared"] => Mode::Shared,
        _ => return Err(bad_url(url, "the option mode must be worker or shared")),
    };
    let config = ProcessingListConfig::new(&address);
    let config = config.map_err(|error| bad_url(url, error.to_string()))?;
    Ok(config.mode(mode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_says_where_jobs_are_worked_on() {
        let set = |url| format!("{:?}", config(url).unwrap());
        for url in
            ["processing-list+redis://h/1", "processing-list+redis://h?mode=worker"]
        {
            assert!(set(url).contains("PerWorker"), "{url}");
        }
        let url = "processing-list+unix:///r.sock?db=1&mode=shared";
        assert!(set(url).contains("Shared") && set(url).contains("/1"), "{}", set(url));
    }

    #[test]
    fn an_invalid_url_is_refused_without_showing_its_password() {
        for (url, why) in [
            ("processing-list+redis://:s3cret@h?mode=both", "worker or shared"),
            (
                "processing-list+redis://:s3cret@h?mode=shared&mode=worker",
                "worker or shared",
            ),
            ("processing-list+redis://:s3cret@h/zero", "not usable"),
        ] {
            let error = config(url).unwrap_err();
            let error = format!("{error} {error:?}");
            assert!(error.contains(why) && !error.contains("s3cret"), "{error}");
        }
    }
}
