/* Looking at the parts of a fetch (log.md 5, replication.md 2, 5 and 7), in Kafka's order of
 * checks: topic, leader epoch, leader, replica, divergence, range, then bytes. What is found stays
 * valid until the turn goes on: the answer is made from it at once. */
#include "core/metadata/kafka_error.h"
#include "core/replica/inside.h"

/* ------------------------------------------------------------------ finding */

static bool allowed(const struct fetch_state *st, struct str topic)
{
    return st->op->allowed == NULL || st->op->allowed(st->op->allowed_ctx, topic);
}

static int16_t find_topic(const struct fetch_state *st, const struct fetch_part *part,
                          const struct image_topic **out)
{
    const struct image *img = st->rs->image;
    const struct image_topic *t;
    if (part->set->by_id) {
        t = image_topic_by_id(img, part->topic_id);
        if (t == NULL)
            return K_UNKNOWN_TOPIC_ID;
        if (!allowed(st, str_of(t->name)))
            return K_TOPIC_AUTHORIZATION_FAILED;
    } else {
        if (!allowed(st, part->topic)) /* whether it exists is not told */
            return K_TOPIC_AUTHORIZATION_FAILED;
        t = image_topic_named(img, part->topic);
    }
    if (t == NULL || part->index < 0 || part->index >= t->partitions_n)
        return K_UNKNOWN_TOPIC_OR_PARTITION;
    *out = t;
    return K_NONE;
}

static int16_t find_partition(const struct fetch_state *st, const struct fetch_part *part,
                              struct fetch_found *f)
{
    const struct image_topic *t;
    const int16_t error = st->odd_isolation ? K_UNKNOWN_SERVER_ERROR : find_topic(st, part, &t);
    f->refused = error != K_NONE;
    if (error != K_NONE)
        return error;
    f->p = replicas_find(st->rs, t->id, part->index);
    if (f->p == NULL)
        return K_NOT_LEADER_OR_FOLLOWER;
    return st->any_replica ? partition_check_reader(f->p, part->current_leader_epoch)
                           : partition_check_epoch(f->p, part->current_leader_epoch);
}

/* A follower must be in the assignment, and not an older life of its broker. */
static int16_t check_replica(const struct fetch_state *st, const struct partition *p,
                             const struct fetch_part *part)
{
    if (st->replica_id < 0)
        return K_NONE;
    if (partition_follower(p, st->replica_id) == NULL)
        return part->current_leader_epoch >= 0 ? K_UNKNOWN_LEADER_EPOCH : K_NOT_LEADER_OR_FOLLOWER;
    const struct image_broker *b = image_broker(st->rs->image, st->replica_id);
    const bool old =
        b != NULL && !b->fenced && st->replica_epoch != -1 && b->epoch > st->replica_epoch;
    return old ? K_NOT_LEADER_OR_FOLLOWER : K_NONE;
}

/* KIP-320: does the reader's last epoch end where it says? */
static int16_t check_divergence(const struct fetch_part *part, struct fetch_found *f)
{
    int32_t epoch;
    int64_t end;
    if (part->last_fetched_epoch < 0)
        return K_NONE;
    log_end_offset_for_epoch(f->p->log, part->last_fetched_epoch, &epoch, &end);
    if (epoch < 0 || end < 0 || part->fetch_offset < log_start_offset(f->p->log))
        return K_OFFSET_OUT_OF_RANGE;
    f->diverging = epoch < part->last_fetched_epoch || end < part->fetch_offset;
    f->diverging_epoch = epoch;
    f->diverging_end = end;
    return K_NONE;
}

/* ------------------------------------------------------------------ bytes */

/* Of a follower that is to be moved there: its bytes wait until there is room. */
static bool throttled(const struct fetch_state *st, const struct partition *p)
{
    return st->replica_id >= 0 && (p->throttled & THROTTLED_LEADER) != 0 &&
           !partition_in_isr(p, st->replica_id) &&
           throttle_exceeded(&st->rs->leader_throttle, st->rs->now.mono_us);
}

static int64_t reader_limit(const struct fetch_state *st, const struct partition *p)
{
    return st->replica_id >= 0 ? log_end_offset(p->log) : partition_limit(p, st->read_committed);
}

/* left: what the answer may still take; first: nothing was taken yet, so that a batch larger than
 * all limits passes. */
static int16_t read_part(struct fetch_state *st, const struct fetch_part *part,
                         struct fetch_found *f, int64_t left, bool first)
{
    struct log *log = f->p->log;
    const int64_t limit = reader_limit(st, f->p);
    const int64_t least = part->max_bytes < left ? part->max_bytes : left;
    const uint32_t max = least < 0 ? 0 : (uint32_t)least;
    if (part->fetch_offset < log_start_offset(log) || part->fetch_offset > log_end_offset(log))
        return K_OFFSET_OUT_OF_RANGE;
    f->more = part->fetch_offset < limit;
    if (!f->more || (max == 0 && !first) || throttled(st, f->p))
        return K_NONE;
    enum err e = log_read(log, part->fetch_offset, limit, max, first, &f->span);
    if (e == ERR_AGAIN) {
        st->cold = true;
        f->span.n = 0;
        return K_NONE;
    }
    return e == ERR_NONE ? K_NONE : kafka_error_of(e);
}

static void look_part(struct fetch_state *st, struct fetch_part *part, int64_t left, bool first)
{
    struct fetch_found *f = &part->found;
    *f = (struct fetch_found){
        .high_watermark = -1, .last_stable = -1, .log_start = -1, .preferred = -1};
    f->error = find_partition(st, part, f);
    if (f->error == K_NONE)
        f->error = check_replica(st, f->p, part);
    if (f->error == K_NONE)
        f->error = check_divergence(part, f);
    if (f->error == K_NONE && !f->diverging)
        f->preferred = partition_preferred_replica(st, part, f->p);
    if (f->error == K_NONE && !f->diverging && f->preferred < 0)
        f->error = read_part(st, part, f, left, first);
    if (f->error != K_NONE) {
        f->span.n = 0;
        return;
    }
    f->high_watermark = f->p->high_watermark;
    f->last_stable = partition_limit(f->p, true);
    f->log_start = log_start_offset(f->p->log);
}

/* ------------------------------------------------------------------ all */

bool fetch_part_quiet(const struct fetch_state *st, const struct fetch_part *part)
{
    const struct fetch_found *f = &part->found;
    if (f->error != K_NONE || f->diverging || f->preferred >= 0 || f->more)
        return false;
    if (st->replica_id >= 0 && !partition_in_isr(f->p, st->replica_id))
        return false; /* each of its fetches may let it join */
    return st->session == NULL ||
           (f->high_watermark == part->told_high_watermark && f->log_start == part->told_log_start);
}

/* KIP-16, only when the fetch arrives: what it tells of the follower. */
static void record_follower(struct fetch_state *st, const struct fetch_part *part)
{
    struct partition *p = part->found.p;
    if (st->looked || st->replica_id < 0 || part->found.error != K_NONE || part->found.diverging)
        return;
    struct follower *f = partition_follower(p, st->replica_id);
    const bool moved =
        f->end_offset != part->fetch_offset || f->log_start != part->log_start_offset;
    follower_fetched(f, part->fetch_offset, part->log_start_offset, log_end_offset(p->log),
                     st->replica_epoch, st->arrived_us);
    partition_maybe_expand_isr(p, f);
    if (moved)
        replicas_mark_dirty(p); /* the high watermark, or the low one, may rise */
}

/* The bytes found end with their segment, and others stand behind it: waiting brings none of those
 * into this answer. As in Kafka it leaves with what it has. */
static bool ends_with_segment(const struct fetch_state *st, const struct fetch_part *part)
{
    const struct fetch_found *f = &part->found;
    struct log_span last;
    if (f->span.n == 0)
        return false;
    const int64_t limit = reader_limit(st, f->p);
    return log_read(f->p->log, limit - 1, limit, 0, false, &last) == ERR_NONE && last.f != NULL &&
           last.segment_base != f->span.segment_base;
}

static bool any_ends_with_segment(const struct fetch_state *st)
{
    struct list *l, *tmp;
    LIST_EACH(l, tmp, &st->set->hot)
    if (ends_with_segment(st, LIST_ENTRY(l, struct fetch_part, hot)))
        return true;
    return false;
}

static size_t parts_n(const struct fetch_state *st)
{
    return st->session == NULL ? (size_t)st->n : st->session->parts.n;
}

/* What is refused does not end the wait for the others (Kafka's replica manager never hears of it):
 * a client with a deleted topic in its list does not spin. */
bool fetch_look(struct fetch_state *st)
{
    int64_t bytes = 0;
    size_t refused_n = 0;
    bool leaves = st->due;
    struct list *l, *tmp;
    st->cold = false;
    LIST_EACH(l, tmp, &st->set->hot)
    {
        struct fetch_part *part = LIST_ENTRY(l, struct fetch_part, hot);
        struct fetch_found *f = &part->found;
        look_part(st, part, st->max_bytes - bytes, bytes == 0);
        record_follower(st, part);
        bytes += f->span.n;
        refused_n += f->refused;
        leaves |= (f->error != K_NONE && !f->refused) || f->diverging || f->preferred >= 0;
        if (fetch_part_quiet(st, part)) {
            list_remove(&part->hot);
            fetch_part_watch(part, f->p);
        }
    }
    st->looked = true;
    if (st->cold && bytes == 0)
        return false;
    leaves |= refused_n == parts_n(st);
    return leaves || bytes >= st->min_bytes || (bytes > 0 && any_ends_with_segment(st));
}
