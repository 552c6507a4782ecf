/* kraft.version 0 to 1 (KIP-853): static voters become the log's. Their directories and what they
 * know are what each of them has told its leader by UpdateRaftVoter, in this leadership; one that
 * has not may not know the new version (KAFKA-16538). */
#include <stdlib.h>

#include "quorum/inside.h"

void raft_voter_told(struct raft *r, int32_t i, const struct voter *v)
{
    if (r->told == NULL)
        r->told = calloc(1, sizeof *r->told); /* without memory it tells again */
    if (r->told == NULL)
        return;
    r->told->n = r->voters.n;
    r->told->v[i] = *v;
}

void raft_forget_told(struct raft *r)
{
    free(r->told);
    r->told = NULL;
}

/* With all that version 1 wants to know; false: of one of them it is not known. */
static bool upgraded(const struct raft *r, int16_t version, struct voter_set *out)
{
    *out = r->voters;
    for (int32_t i = 0; i < out->n; i++) {
        struct voter *v = &out->v[i];
        if (v->id == r->node_id) {
            v->directory_id = r->directory_id;
            v->kraft_max = RAFT_KRAFT_VERSION_MAX;
            if (!voter_reached_at(v, r->endpoint.listener, r->endpoint.host, r->endpoint.port))
                return false;
            continue;
        }
        if (r->told == NULL || uuid_is_zero(r->told->v[i].directory_id))
            return false;
        *v = r->told->v[i];
        if (version < v->kraft_min || version > v->kraft_max)
            return false;
    }
    return true;
}

enum err raft_upgrade(struct raft *r, int32_t epoch, int16_t version, bool validate_only,
                      struct now now)
{
    struct voter_set set;
    int64_t last;
    r->now = now;
    if (r->state != RAFT_LEADER || r->epoch != epoch || r->failed)
        return ERR_BUSY;
    if (version == r->kraft_version)
        return ERR_NONE;
    if (!raft_may_change_voters(r))
        return ERR_AGAIN;
    if (version < r->kraft_version || version > RAFT_KRAFT_VERSION_MAX ||
        !upgraded(r, version, &set))
        return ERR_INVALID;
    return validate_only ? ERR_NONE : raft_put_voters_as(r, version, &set, &last);
}
