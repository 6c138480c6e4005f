//! Mutants of relq-stream, also of its batches. Each has a bug that the pattern makes
//! easy.

use std::sync::Arc;

use relq_conformance::{
    async_trait,
    overrides::{Override, Right},
};
use relq_core::{
    Error, Headers, NewJob, PushToken, QueueName,
    batch::{Added, BatchId},
    environment::Environment,
};
use relq_stream::{StreamConfig, StreamQueue};

use crate::mutant::{self, CaughtBy::Case, Mutant, Opening, patch};

const HEALTHY: Mutant = Mutant { open, ..mutant::HEALTHY };

fn open(endpoint: &str, queue: &QueueName, environment: &Environment) -> Opening {
    let config = StreamConfig::new(endpoint).expect("the suite gives a URL");
    let (config, queue) = (config.environment(environment.clone()), queue.clone());
    let connect = async move { StreamQueue::connect(config, queue).await };
    Box::pin(async move { Ok(Arc::new(connect.await?) as _) })
}

pub(crate) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "an acknowledgement that asks for no lease",
        patches: &[patch(
            "finish",
            "if end_ms and stream and not taken[lease] then",
            "if stream and not taken[lease] then",
        )],
        caught_by: &[Case(
            "one_holder::late_ack_changes_nothing",
            "seen: Applied\nexpected: LeaseLost",
        )],
        ..HEALTHY
    },
    Mutant {
        name: "done is acknowledged and stays in the stream",
        patches: &[patch("finish", "  redis.call('XDEL', stream, unpack(sids))\n", "")],
        caught_by: &[Case(
            "one_holder::a_finished_job_stays_gone",
            "was read and is not pending",
        )],
        ..HEALTHY
    },
    Mutant {
        name: "a push trims the stream",
        patches: &[patch(
            "append",
            "redis.call('XADD', stream, '*', PAYLOAD, entry)",
            "redis.call('XADD', stream, 'MAXLEN', 5, '*', PAYLOAD, entry)",
        )],
        caught_by: &[Case("order::a_batch_keeps_its_order", "missing")],
        ..HEALTHY
    },
    Mutant {
        name: "a delivery that was lost is counted twice",
        patches: &[patch(
            "recover",
            "'RETRYCOUNT', deliveries + 1,",
            "'RETRYCOUNT', deliveries + 2,",
        )],
        caught_by: &[Case("recovery::attempts_are_counted", "seen: [1, 3, 4")],
        ..HEALTHY
    },
    Mutant {
        name: "a claim reads what is new before what came back",
        patches: &[patch(
            "claim",
            "  local back = in_group('XPENDING', stream, GROUP, '-', '+', page, READY)\n",
            "  local back = in_group('XPENDING', stream, GROUP, '-', '+', page, READY)\n  local new = redis.call('XINFO', 'STREAM', stream)\n  if new[8] ~= redis.call('XINFO', 'GROUPS', stream)[1][8] then back = {} end\n",
        )],
        caught_by: &[Case("order::a_given_back_job_is_next", "is served before")],
        ..HEALTHY
    },
    Mutant {
        name: "what has no room in a claim is counted as delivered",
        patches: &[patch(
            "claim",
            "    return_entry(stream, sid, deliveries - 1)\n",
            "    return_entry(stream, sid, deliveries)\n",
        )],
        caught_by: &[
            Case("leases::a_claim_is_bounded_by_bytes", "each is its first"),
            Case("leases::a_job_beyond_the_bytes_is_not_counted", "seen: (1, 1, 2)"),
        ],
        ..HEALTHY
    },
    Mutant {
        name: "slots are all that was ever claimed",
        patches: &[patch(
            "claim",
            "if consumer[1] == LEASED then return tonumber(consumer[2]) end",
            "if consumer[1] then return tonumber(pending[1]) end",
        )],
        caught_by: &[
            Case("batches::a_dead_workers_slot_comes_back", "seen: 0\nexpected: 2"),
            Case("batches::released_slots_come_back", "seen: 0\nexpected: 2"),
        ],
        ..HEALTHY
    },
    Mutant {
        name: "a batch completes while it is open",
        patches: &[patch(
            "finish_with_side_records",
            "if state ~= 'sealed' and state ~= 'cancelling' then return end",
            "if state == 'done' then return end",
        )],
        caught_by: &[Case(
            "batches::an_open_batch_does_not_complete",
            "seen: 1\nexpected: 0",
        )],
        ..HEALTHY
    },
    Mutant {
        name: "a piece is counted at each acknowledgement",
        patches: &[patch(
            "finish_with_side_records",
            "    lost[#lost + 1] = handled\n",
            "    lost[#lost + 1] = handled\n    local _, _, _, batch = place_of(keys, lease)\n    redis.call('HINCRBY', batch_key(keys, 'record', batch), 'done', 1)\n",
        )],
        caught_by: &[Case("batches::a_second_ack_counts_nothing", "B2")],
        ..HEALTHY
    },
    Mutant {
        name: "a slot that becomes free tells nobody",
        patches: &[patch(
            "finish_with_side_records",
            "    end_piece(keys, id, job_id, outcome)\n  end\n  refresh(keys, id)\n",
            "    end_piece(keys, id, job_id, outcome)\n  end\n",
        )],
        caught_by: &[Case(
            "batches::a_free_slot_wakes",
            "the call waits for more than",
        )],
        ..HEALTHY
    },
    Mutant {
        name: "a cancelled batch takes back what is given back",
        patches: &[patch(
            "give_back",
            "if batch and state_of(keys, batch) == 'cancelling' then",
            "if false then",
        )],
        caught_by: &[Case(
            "batches::nothing_comes_back_to_a_cancelled_batch",
            "seen: None\nexpected: Some(Cancelled)",
        )],
        ..HEALTHY
    },
    Mutant {
        name: "nothing is recorded of a completion job that keeps its result",
        patches: &[patch(
            "seal",
            "  if job.keep_ms then begin_results(keys, {job.id, UNFINISHED}) end\n",
            "",
        )],
        caught_by: &[Case("results::a_completion_job_keeps_its_result", "R29: job")],
        ..HEALTHY
    },
    Mutant {
        name: "completions of two queues to a third one have one id",
        patches: &[patch(
            "create",
            "string.format('batch-%s-%.0f', id, now_ms) .. id_end",
            "string.format('batch-%s-%.0f', id, now_ms)",
        )],
        caught_by: &[
            Case(
                "batches::completions_of_two_queues_are_two_jobs",
                "B5: of two queues",
            ),
            Case("batches::a_completion_goes_to_another_queue", "batch-b-"),
        ],
        ..HEALTHY
    },
    Mutant {
        name: "a completion job does not expire",
        patches: &[patch(
            "seal",
            "  if expires_ms > 0 then entry = with_expiry(entry, job.id, now_ms + expires_ms) end\n",
            "",
        )],
        caught_by: &[Case(
            "batches::a_completion_is_stored_as_a_push_stores_a_job",
            "expires_at: None",
        )],
        ..HEALTHY
    },
    Mutant {
        name: "a completion job ignores its delay",
        patches: &[patch(
            "seal",
            "  if delay_ms > 0 then\n    keep",
            "  if false then\n    keep",
        )],
        caught_by: &[Case(
            "batches::a_completion_is_stored_as_a_push_stores_a_job",
            "Scheduled {",
        )],
        ..HEALTHY
    },
    Mutant {
        name: "a completion job in another queue ignores its delay and its expiry",
        patches: &[patch(
            "read_outbox",
            "'completion', 'completion_delay_ms', 'completion_expires_ms')",
            "'completion', 'no field', 'no field')",
        )],
        caught_by: &[Case(
            "batches::a_completion_elsewhere_is_stored_as_a_push_stores_a_job",
            "Scheduled {",
        )],
        ..HEALTHY
    },
    Mutant {
        name: "a piece loses its headers",
        overrides: Some(|| Arc::new(PiecesWithoutHeaders)),
        caught_by: &[Case(
            "batches::a_piece_is_stored_as_a_push_stores_a_job",
            "Headers([",
        )],
        ..HEALTHY
    },
];

/// Stores pieces without their headers.
struct PiecesWithoutHeaders;

#[async_trait]
impl Override for PiecesWithoutHeaders {
    async fn add(
        &self,
        right: &Right,
        batch: &BatchId,
        pieces: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Added, Error> {
        let mut pieces = pieces.to_vec();
        for piece in &mut pieces {
            piece.headers = Headers::default();
        }
        right.batches().add(batch, &pieces, token).await
    }
}
