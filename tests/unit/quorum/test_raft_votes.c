/* The general rules, with three voters of whom this node is one and the test plays the others: who
 * grants what in which state, elections, timers, the high watermark, restarts. */
#include "raft_bench.h"
#include "wire/api_key.h"
#include "wire/error.h"

/* ------------------------------------------------------------------ three voters */

static struct raft *hand_made(void)
{
    machine_new(9);
    CU_ASSERT_EQUAL_FATAL(format_disk(), ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(start(), ERR_NONE);
    struct raft *r = b.raft;
    struct voter_set set = r->voters; /* two others join by hand */
    set.n = 3;
    set.v[1] = (struct voter){.id = 2, .directory_id = {{2}}, .host = "b", .port = 1};
    set.v[2] = (struct voter){.id = 3, .directory_id = {{3}}, .host = "c", .port = 1};
    CU_ASSERT_EQUAL_FATAL(voter_history_add(&r->history, raft_end_offset(r), 1, &set), ERR_NONE);
    raft_voters_changed(r);
    return r;
}

static void end(void)
{
    settle();
    stop();
    machine_free();
}

static struct uuid directory_of(int32_t id)
{
    return id == 1 ? OWN_DIRECTORY : (struct uuid){{(uint8_t)id}};
}

static void to_state(struct raft *r, enum raft_state s, int32_t epoch)
{
    if (r->state == RAFT_LEADER)
        raft_become_resigned(r);
    raft_become_unattached(r, epoch, -1);
    settle();
    switch (s) {
    case RAFT_UNATTACHED:
        break;
    case RAFT_PROSPECTIVE:
        raft_become_prospective(r);
        break;
    case RAFT_CANDIDATE:
        raft_become_prospective(r);
        raft_become_candidate(r);
        break;
    case RAFT_FOLLOWER:
        raft_become_follower(r, epoch, 3);
        break;
    case RAFT_LEADER:
        raft_become_prospective(r);
        raft_become_candidate(r);
        settle();
        raft_become_leader(r);
        break;
    case RAFT_RESIGNED:
        raft_become_resigned(r);
        break;
    }
    settle();
}

/* A Vote request of voter `from` with a log that ends at (last_epoch, end). */
struct asked {
    struct vote_request_partition_data part;
    struct vote_request_topic_data topic;
    struct vote_request req;
};

static void make_request(struct asked *q, int32_t from, bool pre, int32_t epoch, int32_t last_epoch,
                         int64_t log_end)
{
    q->part = (struct vote_request_partition_data){
        .replica_epoch = epoch,
        .replica_id = from,
        .replica_directory_id = directory_of(from),
        .voter_directory_id = OWN_DIRECTORY,
        .last_offset_epoch = last_epoch,
        .last_offset = log_end,
        .pre_vote = pre,
    };
    q->topic = (struct vote_request_topic_data){.topic_name = STR_LIT("__cluster_metadata")};
    q->topic.partitions.v = &q->part;
    q->topic.partitions.n = 1;
    q->req = (struct vote_request){.cluster_id = STR_LIT("cluster"), .voter_id = 1};
    q->req.topics.v = &q->topic;
    q->req.topics.n = 1;
}

static int16_t send_request(struct raft *r, const struct asked *q,
                            struct vote_response_partition_data *out)
{
    struct vote_response resp;
    struct arena a;
    struct raft_op op = {.arena = &a, .listener = STR_NULL};
    arena_init(&a, NULL);
    raft_vote(r, &op, &q->req, &resp, b.now);
    CU_ASSERT_EQUAL(op.err, ERR_NONE);
    list_remove(&op.link); /* nobody waits for when it may leave */
    CU_ASSERT_EQUAL(resp.topics.n, resp.error_code == K_NONE ? 1 : 0);
    if (resp.topics.n == 1)
        *out = resp.topics.v[0].partitions.v[0];
    arena_close(&a);
    return resp.error_code;
}

static struct vote_response_partition_data
ask_from(struct raft *r, int32_t from, bool pre, int32_t epoch, int32_t last_epoch, int64_t log_end)
{
    struct asked q;
    struct vote_response_partition_data out = {0};
    make_request(&q, from, pre, epoch, last_epoch, log_end);
    CU_ASSERT_EQUAL(send_request(r, &q, &out), K_NONE);
    return out;
}

static struct vote_response_partition_data ask(struct raft *r, bool pre, int32_t epoch,
                                               int32_t last_epoch, int64_t log_end)
{
    return ask_from(r, 2, pre, epoch, last_epoch, log_end);
}

/* ------------------------------------------------------------------ the vote table */

static const struct {
    enum raft_state state;
    bool pre_vote, vote; /* granted with a good log, in the own epoch */
} table[] = {
    {RAFT_UNATTACHED, true, true}, {RAFT_PROSPECTIVE, true, true}, {RAFT_CANDIDATE, true, false},
    {RAFT_LEADER, false, false},   {RAFT_FOLLOWER, true, false},   {RAFT_RESIGNED, true, false},
};

/* Logs that are longer, equal, shorter; of a later, equal, earlier last epoch. */
static void check_row(size_t i, bool pre, int by_epoch, int by_end)
{
    struct raft *r = hand_made();
    to_state(r, table[i].state, 10);
    const int32_t epoch = raft_epoch(r);
    const int64_t log_end = raft_end_offset(r);
    const int32_t last = raft_last_epoch(r);
    const bool good = by_epoch > 0 || (by_epoch == 0 && by_end >= 0);
    if (last + by_epoch + !pre <= epoch && last + by_epoch >= 0) {
        const struct vote_response_partition_data got =
            ask(r, pre, epoch, last + by_epoch, log_end + by_end);
        const bool expected = good && (pre ? table[i].pre_vote : table[i].vote);
        CU_ASSERT_EQUAL(got.error_code, K_NONE);
        CU_ASSERT_EQUAL(got.vote_granted, expected);
        CU_ASSERT_EQUAL(got.leader_epoch, epoch);
        CU_ASSERT_EQUAL(got.leader_id, raft_leader_id(r));
        CU_ASSERT_EQUAL(raft_state(r), table[i].state); /* asking changes nothing */
        CU_ASSERT_EQUAL(raft_epoch(r), epoch);
        /* the answer waits for the disk */
        CU_ASSERT_EQUAL(raft_is_durable(r), !(expected && !pre));
    }
    end();
}

static void test_raft_vote_table(void)
{
    for (size_t i = 0; i < ARRAY_N(table); i++)
        for (int pre = 0; pre <= 1; pre++)
            for (int by_epoch = -1; by_epoch <= 1; by_epoch++)
                for (int by_end = -1; by_end <= 1; by_end++)
                    check_row(i, pre, by_epoch, by_end);
}

/* A higher epoch is adopted in every state, by pre-votes too; then an Unattached answers. */
static void test_raft_vote_adopts_a_higher_epoch(void)
{
    for (size_t i = 0; i < ARRAY_N(table); i++) {
        for (int pre = 0; pre <= 1; pre++) {
            for (int good = 0; good <= 1; good++) {
                struct raft *r = hand_made();
                to_state(r, table[i].state, 10);
                const struct vote_response_partition_data got =
                    ask(r, pre, 20, raft_last_epoch(r), raft_end_offset(r) - (good ? 0 : 1));
                CU_ASSERT_EQUAL(got.vote_granted, good);
                CU_ASSERT(got.leader_epoch == 20 && got.leader_id == -1);
                CU_ASSERT_EQUAL(raft_state(r), RAFT_UNATTACHED);
                CU_ASSERT_FALSE(raft_is_durable(r));
                settle();
                const struct quorum_state s = state_on_disk();
                CU_ASSERT(s.epoch == 20 && s.leader_id == -1);
                CU_ASSERT_EQUAL(s.voted_id, good && !pre ? 2 : -1);
                end();
            }
        }
    }
}

/* Unattached with a leader known, or with a vote given, grants no other real vote. */
static void test_raft_vote_of_an_unattached_that_knows(void)
{
    struct raft *r = hand_made();
    raft_become_unattached(r, 10, 3);
    settle();
    const int64_t log_end = raft_end_offset(r);
    const int32_t last = raft_last_epoch(r);
    CU_ASSERT_FALSE(ask(r, false, 10, last, log_end).vote_granted);
    CU_ASSERT(ask(r, true, 10, last, log_end).vote_granted);
    raft_become_unattached(r, 11, -1);
    settle();
    CU_ASSERT(ask_from(r, 3, false, 11, last, log_end).vote_granted);
    settle();
    CU_ASSERT_FALSE(ask(r, false, 11, last, log_end).vote_granted);
    CU_ASSERT(ask(r, true, 11, last, log_end).vote_granted);
    CU_ASSERT(ask_from(r, 3, false, 11, last, log_end - 1).vote_granted); /* not looked at again */
    CU_ASSERT(raft_is_durable(r));
    struct asked q;
    struct vote_response_partition_data out;
    make_request(&q, 3, false, 11, last, log_end);
    q.part.replica_directory_id.b[0] = 99; /* the same id on another disk is someone else */
    CU_ASSERT_EQUAL(send_request(r, &q, &out), K_NONE);
    CU_ASSERT_FALSE(out.vote_granted);
    raft_become_follower(r, 11, 2); /* the vote outlives the election */
    settle();
    const struct quorum_state s = state_on_disk();
    CU_ASSERT(s.epoch == 11 && s.leader_id == 2 && s.voted_id == 3);
    CU_ASSERT(uuid_eq(s.voted_directory_id, directory_of(3)));
    end();
}

/* A Prospective may still give its vote, once. */
static void test_raft_prospective_votes_once(void)
{
    struct raft *r = hand_made();
    to_state(r, RAFT_PROSPECTIVE, 10);
    const int64_t log_end = raft_end_offset(r);
    CU_ASSERT(ask(r, false, 10, raft_last_epoch(r), log_end).vote_granted);
    CU_ASSERT_FALSE(ask_from(r, 3, false, 10, raft_last_epoch(r), log_end).vote_granted);
    settle();
    CU_ASSERT(raft_state(r) == RAFT_PROSPECTIVE && state_on_disk().voted_id == 2);
    end();
}

static void test_raft_vote_redraws_the_timer(void)
{
    struct raft *r = hand_made();
    to_state(r, RAFT_UNATTACHED, 10);
    const int64_t log_end = raft_end_offset(r);
    int64_t due = timers_next_us(&b.timers);
    CU_ASSERT(due >= b.now.mono_us + 1000000 && due < b.now.mono_us + 2000000);
    b.now.mono_us += 900000;
    CU_ASSERT(ask(r, true, 10, raft_last_epoch(r), log_end).vote_granted);
    CU_ASSERT_EQUAL(timers_next_us(&b.timers), due); /* a pre-vote does not */
    CU_ASSERT(ask(r, false, 10, raft_last_epoch(r), log_end).vote_granted);
    due = timers_next_us(&b.timers);
    CU_ASSERT(due >= b.now.mono_us + 1000000 && due < b.now.mono_us + 2000000);
    settle();
    b.now.mono_us += 900000;
    CU_ASSERT(ask(r, false, 11, raft_last_epoch(r), log_end - 1).error_code == K_NONE);
    CU_ASSERT_EQUAL(raft_epoch(r), 11);
    CU_ASSERT_EQUAL(timers_next_us(&b.timers), due); /* a new epoch alone does not */
    end();
}

static void test_raft_vote_checks_in_order(void)
{
    struct asked q;
    struct vote_response_partition_data out;
    struct raft *r = hand_made();
    to_state(r, RAFT_UNATTACHED, 10);
    const int64_t log_end = raft_end_offset(r);
    CU_ASSERT_EQUAL(ask(r, false, 9, 1, log_end).error_code, K_FENCED_LEADER_EPOCH);
    CU_ASSERT_EQUAL(ask(r, false, 9, 9, log_end).error_code, K_INVALID_REQUEST); /* comes first */
    CU_ASSERT_EQUAL(ask(r, false, 10, 10, log_end).error_code, K_INVALID_REQUEST);
    CU_ASSERT_EQUAL(ask(r, true, 10, 11, log_end).error_code, K_INVALID_REQUEST);
    CU_ASSERT_EQUAL(ask(r, true, 10, 10, log_end).error_code, K_NONE);
    CU_ASSERT_EQUAL(ask(r, false, 10, -1, log_end).error_code, K_INVALID_REQUEST);
    CU_ASSERT_EQUAL(ask(r, false, 10, 1, -1).error_code, K_INVALID_REQUEST);
    CU_ASSERT_EQUAL(ask_from(r, -1, false, 12, 1, log_end).error_code, K_INVALID_REQUEST);
    CU_ASSERT_EQUAL(raft_epoch(r), 10); /* none of these was believed */
    make_request(&q, 2, false, 12, 1, log_end);
    q.req.cluster_id = STR_LIT("other");
    CU_ASSERT_EQUAL(send_request(r, &q, &out), K_INCONSISTENT_CLUSTER_ID);
    q.req.cluster_id = STR_NULL;
    q.topic.topic_name = STR_LIT("__cluster_metadat");
    CU_ASSERT_EQUAL(send_request(r, &q, &out), K_INVALID_REQUEST);
    q.topic.topic_name = STR_LIT("__cluster_metadata");
    q.part.partition_index = 1;
    CU_ASSERT_EQUAL(send_request(r, &q, &out), K_INVALID_REQUEST);
    q.part.partition_index = 0;
    q.topic.partitions.n = 0;
    CU_ASSERT_EQUAL(send_request(r, &q, &out), K_INVALID_REQUEST);
    q.topic.partitions.n = 1;
    q.req.topics.n = 0;
    CU_ASSERT_EQUAL(send_request(r, &q, &out), K_INVALID_REQUEST);
    q.req.topics.n = 1;
    CU_ASSERT_EQUAL(raft_epoch(r), 10);
    q.req.voter_id = 5;
    CU_ASSERT_EQUAL(send_request(r, &q, &out), K_NONE);
    CU_ASSERT_EQUAL(out.error_code, K_INVALID_VOTER_KEY);
    CU_ASSERT(raft_epoch(r) == 12 && out.leader_epoch == 12); /* adopted before that is looked at */
    q.req.voter_id = -1;
    q.part.voter_directory_id.b[0] = 8;
    CU_ASSERT_EQUAL(send_request(r, &q, &out), K_NONE);
    CU_ASSERT_EQUAL(out.error_code, K_INVALID_VOTER_KEY);
    q.part.voter_directory_id = (struct uuid){{0}};
    CU_ASSERT_EQUAL(send_request(r, &q, &out), K_NONE);
    CU_ASSERT(out.error_code == K_NONE && out.vote_granted);
    end();
}

/* An epoch that no cluster reaches would leave none to stand in. */
static void test_raft_epochs_that_cannot_be(void)
{
    struct raft *r = hand_made();
    to_state(r, RAFT_UNATTACHED, 10);
    CU_ASSERT_EQUAL(ask(r, false, INT32_MAX, 0, 100).error_code, K_INVALID_REQUEST);
    CU_ASSERT_EQUAL(ask(r, true, INT32_MAX, 0, 100).error_code, K_INVALID_REQUEST);
    raft_hear(r, INT32_MAX, 3, STR_LIT("c"), 1);
    raft_hear(r, INT32_MAX, -1, STR_NULL, 0);
    CU_ASSERT(raft_epoch(r) == 10 && raft_state(r) == RAFT_UNATTACHED);
    CU_ASSERT_EQUAL(raft_check_other_leader(r, INT32_MAX, 3), K_INVALID_REQUEST);
    CU_ASSERT_EQUAL(ask(r, false, RAFT_EPOCH_MAX, 0, 100).error_code, K_NONE);
    pass(2000000);
    CU_ASSERT_EQUAL(raft_epoch(r), RAFT_EPOCH_MAX);
    end();
}

/* Whoever says to lead is asked, and forgotten when the next one does. */
static void test_raft_forgets_who_led(void)
{
    struct raft *r = hand_made();
    to_state(r, RAFT_UNATTACHED, 10);
    for (int32_t id = 100; id < 300; id++) {
        raft_hear(r, id, id, STR_LIT("nowhere"), 1);
        settle();
        struct raft_message *m;
        while ((m = raft_next_message(r, b.now)) != NULL)
            raft_answered(r, m, ERR_CLOSED, NULL, b.now);
    }
    int n = 0;
    for (const struct list *l = r->links.next; l != &r->links; l = l->next)
        n++;
    CU_ASSERT(n > 0 && n <= 3);
    end();
}

/* A voter that is not what another node's list says. */
static void test_raft_a_voter_is_another_node(void)
{
    struct raft *r = hand_made();
    r->kraft_version = 0;
    b.env.word = "quorum_voters_differ";
    to_state(r, RAFT_PROSPECTIVE, 10);
    struct vote_response_partition_data part = {
        .error_code = K_INVALID_VOTER_KEY, .leader_epoch = 10, .leader_id = -1};
    struct vote_response_topic_data topic = {.partitions = {&part, 1}};
    const struct vote_response resp = {.topics = {&topic, 1}};
    for (int i = 0; i < 2; i++) {
        struct raft_link l = {.id = 2, .busy = true, .turn = r->turn};
        l.message.api_key = API_VOTE;
        l.body.vote.part.voter_directory_id = directory_of(2);
        raft_answered(r, &l.message, ERR_NONE, &resp, b.now);
    }
    CU_ASSERT_EQUAL(b.env.word_n, 1);
    CU_ASSERT_EQUAL(ask_from(r, 9, true, 10, 0, 100).error_code, K_NONE);
    CU_ASSERT_EQUAL(b.env.word_n, 2);
    r->kraft_version = 1; /* the log says who votes, later here than there */
    b.now.mono_us += 120 * INT64_C(1000000);
    CU_ASSERT_EQUAL(ask_from(r, 9, true, 10, 0, 100).error_code, K_NONE);
    CU_ASSERT_EQUAL(b.env.word_n, 2);
    end();
}

static void test_raft_follower_refuses_pre_votes_once_it_fetched(void)
{
    struct raft *r = hand_made();
    to_state(r, RAFT_FOLLOWER, 10);
    r->fetched = true;
    CU_ASSERT_FALSE(ask(r, true, 10, raft_last_epoch(r), raft_end_offset(r)).vote_granted);
    end();
}

/* The fetch that it sends now is not answered. */
static void lose_fetch(struct raft *r, bool nobody_listens)
{
    struct raft_message *m = raft_next_message(r, b.now);
    CU_ASSERT_FATAL(m != NULL && m->api_key == API_FETCH && m->to_id == raft_leader_id(r));
    m->refused = nobody_listens;
    raft_answered(r, m, ERR_CLOSED, NULL, b.now);
}

/* A lost connection says nothing. Where nobody listens nobody leads, if the others see it too. */
static void test_raft_follower_of_a_leader_that_is_gone(void)
{
    struct raft *r = hand_made();
    to_state(r, RAFT_FOLLOWER, 10);
    settle();
    r->fetched = true;
    lose_fetch(r, false);
    CU_ASSERT_FALSE(ask(r, true, 10, raft_last_epoch(r), raft_end_offset(r)).vote_granted);
    pass(200000);
    CU_ASSERT_EQUAL(raft_state(r), RAFT_FOLLOWER);
    lose_fetch(r, true);
    CU_ASSERT(ask(r, true, 10, raft_last_epoch(r), raft_end_offset(r)).vote_granted);
    pass(20000);
    lose_fetch(r, true); /* does not put it off */
    pass(5000);
    CU_ASSERT(raft_state(r) == RAFT_PROSPECTIVE && raft_epoch(r) == 10);
    end();
}

/* ------------------------------------------------------------------ elections */

/* The votes that are asked for now; nobody answers. */
static int messages(struct raft *r, bool pre_vote)
{
    struct raft_message *taken[VOTERS_MAX], *m;
    int n = 0;
    if (r->state != RAFT_PROSPECTIVE && r->state != RAFT_CANDIDATE)
        return 0;
    while ((m = raft_next_message(r, b.now)) != NULL) {
        CU_ASSERT_FATAL(m->api_key == API_VOTE && n < VOTERS_MAX);
        const struct vote_request *req = m->request;
        const struct vote_request_partition_data *p = &req->topics.v[0].partitions.v[0];
        CU_ASSERT(p->pre_vote == pre_vote && m->to_id != 1 && req->voter_id == m->to_id);
        CU_ASSERT(uuid_eq(p->voter_directory_id, directory_of(m->to_id)));
        CU_ASSERT(p->replica_id == 1 && uuid_eq(p->replica_directory_id, OWN_DIRECTORY));
        CU_ASSERT_EQUAL(p->replica_epoch, raft_epoch(r));
        taken[n++] = m;
    }
    for (int i = 0; i < n; i++)
        raft_answered(r, taken[i], ERR_CANCELLED, NULL, b.now);
    return n;
}

/* The answer of a voter to what was asked in this state, or before it. */
static void answer(struct raft *r, int32_t id, struct uuid directory, bool late, bool granted,
                   int32_t epoch, int32_t leader_id)
{
    struct vote_response_partition_data part = {
        .vote_granted = granted, .leader_epoch = epoch, .leader_id = leader_id};
    struct vote_response_topic_data topic = {.partitions = {&part, 1}};
    const struct vote_response resp = {.topics = {&topic, 1}};
    struct raft_link l = {.id = id, .busy = true, .turn = late ? r->turn - 1 : r->turn};
    l.message.api_key = API_VOTE;
    l.body.vote.part.voter_directory_id = directory;
    raft_answered(r, &l.message, ERR_NONE, &resp, b.now);
}

static void respond(struct raft *r, int32_t id, bool pre, bool granted)
{
    answer(r, id, directory_of(id), pre != (r->state == RAFT_PROSPECTIVE), granted, raft_epoch(r),
           -1);
}

static void test_raft_election_of_three(void)
{
    struct raft *r = hand_made();
    to_state(r, RAFT_UNATTACHED, 10);
    pass(2000000);
    CU_ASSERT_EQUAL(raft_state(r), RAFT_PROSPECTIVE);
    CU_ASSERT_EQUAL(raft_epoch(r), 10); /* asking first costs no epoch */
    CU_ASSERT_EQUAL(messages(r, true), 2);
    respond(r, 2, true, true);
    CU_ASSERT_EQUAL(raft_state(r), RAFT_CANDIDATE);
    CU_ASSERT_EQUAL(raft_epoch(r), 11);
    CU_ASSERT_EQUAL(messages(r, false), 0); /* not before the vote for itself is on disk */
    settle();
    CU_ASSERT(state_on_disk().voted_id == 1 && state_on_disk().epoch == 11);
    CU_ASSERT_EQUAL(messages(r, false), 2);
    respond(r, 3, true, true); /* late, and to another question */
    settle();
    CU_ASSERT_EQUAL(raft_state(r), RAFT_CANDIDATE);
    respond(r, 3, false, true);
    settle();
    CU_ASSERT_EQUAL(raft_state(r), RAFT_LEADER);
    CU_ASSERT(b.leader_id == 1 && b.leader_epoch == 11);
    CU_ASSERT_EQUAL(b.claims, 1); /* of the life as a sole voter: nobody followed yet */
    raft_handle_fetch_position(r, 2, directory_of(2), raft_end_offset(r), b.now);
    settle();
    CU_ASSERT(b.claims == 2 && b.claim_epoch == 11);
    end();
}

static void test_raft_votes_of_a_majority_count_when_ours_is_on_disk(void)
{
    struct raft *r = hand_made();
    to_state(r, RAFT_PROSPECTIVE, 10);
    respond(r, 2, true, true);
    respond(r, 2, false, true);
    raft_settle(r, b.now);
    CU_ASSERT_EQUAL(raft_state(r), RAFT_CANDIDATE);
    settle();
    CU_ASSERT_EQUAL(raft_state(r), RAFT_LEADER);
    end();
}

static void test_raft_prospective_ends(void)
{
    struct raft *r = hand_made();
    to_state(r, RAFT_PROSPECTIVE, 10);
    b.now.mono_us += 500000;
    respond(r, 2, true, false);
    CU_ASSERT_EQUAL(raft_state(r), RAFT_PROSPECTIVE);
    respond(r, 3, true, false);
    CU_ASSERT(raft_state(r) == RAFT_UNATTACHED && raft_epoch(r) == 10);
    CU_ASSERT(timers_next_us(&b.timers) >= b.now.mono_us + 1000000); /* a whole wait */
    settle();
    to_state(r, RAFT_PROSPECTIVE, 12);
    pass(2000000); /* nobody answers */
    CU_ASSERT(raft_state(r) == RAFT_UNATTACHED && raft_epoch(r) == 12);
    to_state(r, RAFT_FOLLOWER, 13);
    pass(2000000); /* its leader is silent */
    CU_ASSERT(raft_state(r) == RAFT_PROSPECTIVE && raft_leader_id(r) == 3);
    respond(r, 2, true, false);
    respond(r, 3, true, false);
    CU_ASSERT(raft_state(r) == RAFT_FOLLOWER && raft_leader_id(r) == 3);
    CU_ASSERT_EQUAL(raft_epoch(r), 13);
    end();
}

/* A voter that followed when it was asked, and asks itself now, is asked once more; not by the one
 * with the older log. */
static void test_raft_prospective_asks_again(void)
{
    struct raft *r = hand_made();
    to_state(r, RAFT_PROSPECTIVE, 10);
    CU_ASSERT_EQUAL(messages(r, true), 2);
    respond(r, 2, true, false);
    pass(20000);
    CU_ASSERT_EQUAL(messages(r, true), 1);
    CU_ASSERT(ask(r, true, 10, raft_last_epoch(r), raft_end_offset(r)).vote_granted);
    pass(20000);
    CU_ASSERT_EQUAL(messages(r, true), 1);
    CU_ASSERT_FALSE(ask(r, true, 10, raft_last_epoch(r), raft_end_offset(r) - 1).vote_granted);
    pass(20000);
    CU_ASSERT_EQUAL(messages(r, true), 2);
    end();
}

static void test_raft_candidate_waits_when_refused(void)
{
    struct raft *r = hand_made();
    to_state(r, RAFT_CANDIDATE, 20);
    respond(r, 2, false, false);
    respond(r, 3, false, false);
    CU_ASSERT_EQUAL(raft_state(r), RAFT_CANDIDATE);
    pass(2000000);
    CU_ASSERT(raft_state(r) == RAFT_PROSPECTIVE && raft_epoch(r) == 21);
    end();
}

static void test_raft_answers_are_believed_by_epoch(void)
{
    struct raft *r = hand_made();
    to_state(r, RAFT_CANDIDATE, 20);
    CU_ASSERT_EQUAL(raft_epoch(r), 21);
    answer(r, 2, directory_of(2), false, true, 20, 3);
    CU_ASSERT(raft_state(r) == RAFT_CANDIDATE && r->votes[1] == VOTE_NONE); /* older: ignored */
    answer(r, 2, (struct uuid){{77}}, false, true, 21, -1);
    answer(r, 9, directory_of(9), false, true, 21, -1);
    settle();
    CU_ASSERT_EQUAL(raft_state(r), RAFT_CANDIDATE); /* votes of none of the voters */
    answer(r, 2, directory_of(2), true, true, 30, -1);
    CU_ASSERT_EQUAL(raft_epoch(r), 21); /* to what was asked in an earlier state */
    answer(r, 2, directory_of(2), false, false, 21, 3);
    CU_ASSERT(raft_state(r) == RAFT_FOLLOWER && raft_leader_id(r) == 3 && raft_epoch(r) == 21);
    settle();
    CU_ASSERT_EQUAL(state_on_disk().voted_id, 1); /* our vote for ourselves stays given */
    raft_hear(r, 30, -1, STR_NULL, 0);
    CU_ASSERT(raft_state(r) == RAFT_UNATTACHED && raft_epoch(r) == 30 && raft_leader_id(r) == -1);
    raft_hear(r, 31, 1, STR_NULL, 0);
    CU_ASSERT(raft_state(r) == RAFT_UNATTACHED && raft_epoch(r) == 31); /* we are no leader */
    CU_ASSERT_EQUAL(raft_leader_id(r), -1);
    raft_hear(r, 31, 1, STR_LIT("a"), 1);
    CU_ASSERT(raft_state(r) == RAFT_UNATTACHED && raft_leader_id(r) == -1);
    raft_hear(r, 32, 2, STR_NULL, 0);
    CU_ASSERT(raft_state(r) == RAFT_FOLLOWER && raft_epoch(r) == 32 && raft_leader_id(r) == 2);
    raft_hear(r, 33, 9, STR_NULL, 0); /* known to be the leader, not where */
    CU_ASSERT(raft_state(r) == RAFT_UNATTACHED && raft_epoch(r) == 33 && raft_leader_id(r) == 9);
    raft_hear(r, 33, 9, STR_LIT("z"), 5);
    CU_ASSERT(raft_state(r) == RAFT_FOLLOWER && raft_leader_id(r) == 9);
    end();
}

/* ------------------------------------------------------------------ the leader */

/* HW: majority, own share only when synced, above the epoch's start, never back. */
static void test_raft_high_watermark_of_three(void)
{
    int64_t last;
    struct raft *r = hand_made();
    const int64_t before = raft_high_watermark(r);
    to_state(r, RAFT_LEADER, 10);
    const int64_t start_offset = r->epoch_start_offset;
    CU_ASSERT_EQUAL(raft_high_watermark(r), before); /* nobody else has the new epoch yet */
    raft_handle_fetch_position(r, 2, directory_of(2), start_offset, b.now);
    CU_ASSERT_EQUAL(raft_high_watermark(r), before); /* the epoch's start itself is not enough */
    raft_handle_fetch_position(r, 9, directory_of(9), start_offset + 1, b.now);
    CU_ASSERT_EQUAL(raft_high_watermark(r), before); /* an observer is not counted */
    raft_handle_fetch_position(r, 2, (struct uuid){{5}}, start_offset + 1, b.now);
    CU_ASSERT_EQUAL(raft_high_watermark(r), before); /* nor a replaced disk of a voter */
    raft_handle_fetch_position(r, 2, directory_of(2), start_offset + 1, b.now);
    CU_ASSERT_EQUAL(raft_high_watermark(r), start_offset + 1);
    CU_ASSERT_EQUAL(append_value("x", &last), ERR_NONE);
    raft_handle_fetch_position(r, 3, directory_of(3), last + 1, b.now);
    CU_ASSERT_EQUAL(raft_high_watermark(r), start_offset + 1); /* ours is not synced, 2 lags */
    settle();
    CU_ASSERT_EQUAL(raft_high_watermark(r), last + 1);
    raft_handle_fetch_position(r, 3, directory_of(3), start_offset, b.now);
    raft_handle_fetch_position(r, 2, directory_of(2), start_offset, b.now);
    CU_ASSERT_EQUAL(raft_high_watermark(r), last + 1);
    end();
}

static bool replica_is(struct raft *r, int32_t i, int64_t end, int64_t fetched, int64_t caught_up)
{
    const struct raft_replica v = raft_replica_at(r, i, b.now);
    const bool same = v.end_offset == end && v.fetched_ms == fetched && v.caught_up_ms == caught_up;
    if (!same)
        printf("voter %d: end %lld fetched %lld caught up %lld\n", v.id, (long long)v.end_offset,
               (long long)v.fetched_ms, (long long)v.caught_up_ms);
    return same;
}

/* KIP-836: what the leader knows of each voter; of itself always all. */
static void test_raft_replicas_of_the_leader(void)
{
    int64_t last;
    struct raft *r = hand_made();
    to_state(r, RAFT_LEADER, 10);
    const int64_t log_end = raft_end_offset(r), t = b.now.wall_ms;
    CU_ASSERT(uuid_eq(raft_replica_at(r, 1, b.now).directory_id, directory_of(2)));
    CU_ASSERT_EQUAL(raft_replica_at(r, 1, b.now).id, 2);
    CU_ASSERT(replica_is(r, 0, log_end, t, t));
    CU_ASSERT(replica_is(r, 1, -1, -1, -1));
    raft_handle_fetch_position(r, 2, directory_of(2), log_end - 1, b.now); /* not there yet */
    CU_ASSERT(replica_is(r, 1, log_end - 1, t, -1));
    CU_ASSERT_EQUAL(append_value("x", &last), ERR_NONE);
    settle();
    b.now.wall_ms = t + 5;
    raft_handle_fetch_position(r, 2, directory_of(2), log_end, b.now); /* our end of before */
    CU_ASSERT(replica_is(r, 1, log_end, t + 5, t));
    b.now.wall_ms = t + 9;
    raft_handle_fetch_position(r, 2, directory_of(2), log_end, b.now); /* it lags */
    CU_ASSERT(replica_is(r, 1, log_end, t + 9, t));
    b.now.wall_ms = t + 12;
    raft_handle_fetch_position(r, 2, directory_of(2), last + 1, b.now);
    CU_ASSERT(replica_is(r, 1, last + 1, t + 12, t + 12));
    CU_ASSERT(replica_is(r, 0, last + 1, t + 12, t + 12));
    to_state(r, RAFT_LEADER, 20); /* led anew: nothing is known */
    CU_ASSERT(replica_is(r, 1, -1, -1, -1));
    end();
}

/* KAFKA-12619: records of an earlier epoch on a majority are not committed by that. */
static void test_raft_earlier_epochs_wait_for_the_new_one(void)
{
    int64_t last;
    struct raft *r = hand_made();
    to_state(r, RAFT_LEADER, 10);
    const int64_t before = raft_high_watermark(r);
    CU_ASSERT_EQUAL(append_value("old", &last), ERR_NONE);
    settle();
    to_state(r, RAFT_LEADER, 20);
    CU_ASSERT(r->epoch_start_offset > last);
    raft_handle_fetch_position(r, 2, directory_of(2), last + 1, b.now);
    settle();
    CU_ASSERT(raft_high_watermark(r) == before && b.values_n == 0 && b.claims == 1);
    raft_handle_fetch_position(r, 2, directory_of(2), raft_end_offset(r), b.now);
    settle();
    CU_ASSERT(b.values_n == 1 && b.claims == 2 && b.claim_epoch == 21);
    end();
}

static void test_raft_leader_resigns_without_its_voters(void)
{
    struct raft *r = hand_made();
    to_state(r, RAFT_LEADER, 10);
    raft_handle_fetch_position(r, 2, directory_of(2), raft_end_offset(r), b.now);
    settle();
    pass(2999999);
    CU_ASSERT_EQUAL(raft_state(r), RAFT_LEADER);
    pass(1); /* 2 was heard: another 3 s */
    CU_ASSERT_EQUAL(raft_state(r), RAFT_LEADER);
    pass(3000000);
    CU_ASSERT_EQUAL(raft_state(r), RAFT_RESIGNED);
    CU_ASSERT(b.resigns == 2 && b.resign_epoch == 11); /* the first as a sole voter */
    CU_ASSERT(state_on_disk().leader_id == 1 && state_on_disk().epoch == 11);
    pass(2000000);
    CU_ASSERT(raft_state(r) == RAFT_UNATTACHED && raft_epoch(r) == 12);
    pass(2000000);
    CU_ASSERT(raft_state(r) == RAFT_PROSPECTIVE && raft_epoch(r) == 12);
    respond(r, 2, true, true);
    CU_ASSERT(raft_state(r) == RAFT_CANDIDATE && raft_epoch(r) == 13); /* not before N + 2 */
    end();
}

/* Timeouts of 0 are allowed. */
static void test_raft_timeouts_of_zero(void)
{
    struct raft *r = hand_made();
    r->config.election_timeout_ms = r->config.fetch_timeout_ms = 0;
    to_state(r, RAFT_UNATTACHED, 10);
    CU_ASSERT(timers_next_us(&b.timers) > b.now.mono_us);
    to_state(r, RAFT_FOLLOWER, 11);
    CU_ASSERT(timers_next_us(&b.timers) > b.now.mono_us);
    end();
}

/* ------------------------------------------------------------------ restarts */

/* The state that quorum-state and log give one of three voters. */
static void test_raft_restart_of_one_of_three(void)
{
    static const struct {
        int32_t leader_id, epoch, voted_id;
        uint8_t voted_directory;
        enum raft_state state;
        int32_t new_epoch, new_leader_id;
    } cases[] = {
        {1, 10, -1, 0, RAFT_RESIGNED, 10, 1}, /* never leader twice in one epoch */
        {-1, 10, 1, 7, RAFT_CANDIDATE, 10, -1},
        {-1, 10, 1, 0, RAFT_CANDIDATE, 10, -1},  /* data_version 0 */
        {-1, 10, 1, 8, RAFT_UNATTACHED, 10, -1}, /* an earlier disk of ours voted */
        {3, 10, 1, 7, RAFT_CANDIDATE, 10, -1},
        {3, 10, 3, 3, RAFT_FOLLOWER, 10, 3},
        {2, 10, -1, 0, RAFT_UNATTACHED, 10, 2}, /* a leader of whom no endpoint is known */
        {9, 10, -1, 0, RAFT_UNATTACHED, 10, 9}, /* or nothing at all */
        {-1, 10, 3, 3, RAFT_UNATTACHED, 10, -1},
        {-1, 10, -1, 0, RAFT_UNATTACHED, 10, -1},
        {1, 0, 1, 7, RAFT_UNATTACHED, 1, -1}, /* the log is further */
    };
    for (size_t i = 0; i < ARRAY_N(cases); i++) {
        struct raft *r = hand_made();
        r->voters.v[1].host[0] = '\0';
        raft_become_resigned(r);
        settle();
        timer_cancel(&b.timers, &r->timer);
        r->state = RAFT_UNATTACHED;
        r->epoch = cases[i].epoch;
        r->leader_id = cases[i].leader_id;
        r->voted_id = cases[i].voted_id;
        r->voted_directory_id = (struct uuid){{cases[i].voted_directory}};
        raft_begin_state(r);
        CU_ASSERT_EQUAL(raft_state(r), cases[i].state);
        CU_ASSERT_EQUAL(raft_epoch(r), cases[i].new_epoch);
        CU_ASSERT_EQUAL(raft_leader_id(r), cases[i].new_leader_id);
        CU_ASSERT(timer_armed(&r->timer));
        b.leader_epoch = 0; /* two cases go back */
        settle();
        CU_ASSERT_EQUAL(messages(r, false), cases[i].state == RAFT_CANDIDATE ? 1 : 0);
        end();
    }
}

/* An observer waits for a leader for ever. */
static void test_raft_observer_never_stands(void)
{
    struct raft *r = hand_made();
    raft_become_resigned(r);
    r->voters.v[0].id = 4; /* it replaced us */
    raft_become_unattached(r, 10, -1);
    settle();
    CU_ASSERT_FALSE(timer_armed(&r->timer));
    raft_become_follower(r, 11, 3);
    settle();
    for (int i = 0; i < 3; i++) {
        pass(2000000);
        CU_ASSERT(raft_state(r) == RAFT_FOLLOWER && raft_epoch(r) == 11);
    }
    end();
}

TEST_MAIN(TEST(test_raft_vote_table), TEST(test_raft_vote_adopts_a_higher_epoch),
          TEST(test_raft_vote_of_an_unattached_that_knows), TEST(test_raft_prospective_votes_once),
          TEST(test_raft_vote_redraws_the_timer), TEST(test_raft_vote_checks_in_order),
          TEST(test_raft_epochs_that_cannot_be), TEST(test_raft_forgets_who_led),
          TEST(test_raft_a_voter_is_another_node),
          TEST(test_raft_follower_refuses_pre_votes_once_it_fetched),
          TEST(test_raft_follower_of_a_leader_that_is_gone), TEST(test_raft_election_of_three),
          TEST(test_raft_votes_of_a_majority_count_when_ours_is_on_disk),
          TEST(test_raft_prospective_ends), TEST(test_raft_prospective_asks_again),
          TEST(test_raft_candidate_waits_when_refused),
          TEST(test_raft_answers_are_believed_by_epoch), TEST(test_raft_high_watermark_of_three),
          TEST(test_raft_replicas_of_the_leader),
          TEST(test_raft_earlier_epochs_wait_for_the_new_one),
          TEST(test_raft_leader_resigns_without_its_voters), TEST(test_raft_timeouts_of_zero),
          TEST(test_raft_restart_of_one_of_three), TEST(test_raft_observer_never_stands))
