use relq_core::environment::OsRandomness;

use super::*;

const NOW: Timestamp = Timestamp::from_unix_ms(1_800_000_000_123);

fn full_job() -> NewJob {
    NewJob::new(vec![0, 255, b'\n'])
        .id(JobId::new("mine").unwrap())
        .priority(Priority::HIGHEST)
        .unique(UniqueKey::new("ü").unwrap())
        .expires_in(Duration::from_secs(1))
        .lease(Duration::from_millis(1500))
        .after(JobId::new("leader").unwrap())
        .header("traceparent", "00-1")
        .header("empty", "")
}

#[test]
fn a_job_with_every_option_reads_as_it_was_written() {
    let (job, id) = (full_job(), JobId::new("mine").unwrap());
    let element = Bytes::from(encode(&job, &id, Some(NOW)));

    let entry = Entry::decode(&element).unwrap();

    assert_eq!(entry.id.as_str(), "mine");
    assert_eq!(entry.priority, Priority::HIGHEST);
    assert_eq!(entry.unique.unwrap().as_str(), "ü");
    assert_eq!(entry.lease, Some(Duration::from_millis(1500)));
    assert_eq!(entry.leader.unwrap().as_str(), "leader");
    assert_eq!(entry.headers, job.headers);
    assert_eq!(entry.payload, job.payload);
    assert_eq!((entry.attempt, entry.expires_at), (0, None));
    assert_eq!(entry.enqueued_at, Some(NOW));
    assert!(entry.is_indexed && !entry.is_bare);
}

#[test]
fn a_time_of_readiness_is_not_part_of_the_payload() {
    let id = JobId::new("mine").unwrap();
    for (now, times) in [(Some(NOW), ENQUEUE_TIME | READY_TIME), (None, READY_TIME)] {
        let mut element = encode(&full_job(), &id, now);
        element[5] = Priority::HIGHEST.level() | times;
        put_short_time(&mut element, NOW.plus(Duration::from_secs(1)));

        let entry = Entry::decode(&element.into()).unwrap();

        assert_eq!((entry.enqueued_at, entry.payload), (now, full_job().payload));
    }
}

#[test]
fn a_piece_names_its_batch_and_a_job_names_none() {
    let (id, batch) = (JobId::new("mine").unwrap(), BatchId::new("b").unwrap());

    let piece = Entry::decode(&encode_piece(&full_job(), &id, &batch).into());
    let job = Entry::decode(&encode(&full_job(), &id, Some(SET_BY_SCRIPT)).into());

    let (piece, job) = (piece.unwrap(), job.unwrap());
    assert_eq!((&piece.batch, &job.batch), (&Some(batch), &None));
    assert_eq!(Entry { batch: None, ..piece }, job);
}

/// R3: a header that is not UTF-8 cannot be read, and is in the entry all the same.
#[test]
fn a_bare_payload_has_its_headers() {
    let read = |value: &'static [u8]| {
        let headers: [(&[u8], &[u8]); 2] = [(b"b", b"2"), (b"a", value)];
        Entry::decode(&encode_bare("1-0", &headers, b"payload").into())
    };

    let entry = read(b"1").unwrap();

    assert_eq!(entry.id.as_str(), "1-0");
    assert_eq!(entry.headers.iter().collect::<Vec<_>>(), [("b", "2"), ("a", "1")]);
    assert_eq!(entry.payload, "payload");
    assert!(entry.is_bare && entry.attempt == 0);
    assert_eq!(read(b"\xff").unwrap_err().reason(), "a text is not UTF-8");
}

#[test]
fn a_cut_entry_is_malformed_and_never_a_panic() {
    let id = JobId::new("mine").unwrap();
    let element = Bytes::from(encode(&full_job(), &id, Some(NOW)));
    let header = element.len() - full_job().payload.len();

    for length in 0..header {
        assert!(Entry::decode(&element.slice(..length)).is_err(), "{length}");
    }
}

#[test]
fn a_plain_job_costs_little_more_than_its_payload() {
    let id = timed_id::token(NOW, &OsRandomness).job_id(0);

    let element = encode(&NewJob::new(vec![b'x'; 256]), &id, None);

    assert_eq!(Entry::decode(&element.clone().into()).unwrap().enqueued_at, Some(NOW));
    assert!(element.len() <= 256 + 30, "{}", element.len());
}
