/* Scripted scenarios: a fleet in which nothing goes wrong but what the script does. Nodes have ids
 * from 1; there is one topic with one partition. After every turn of a node the invariants are
 * looked at, as in a seed's run (ghost.h). One script at a time; whatever is not as it says is a
 * violation, which ends the process. */
#ifndef SIM_SCRIPT_H
#define SIM_SCRIPT_H

#include "client.h"
#include "core/replica/partition.h"

/* The script of that name, or "all", as seed orders its steps. blind: without the invariants, so
 * that what is lost is lost, and seen by who reads it. False: there is none of that name. */
bool script_run(const char *name, uint64_t seed, bool blind);

/* ------------------------------------------------------------------ for scripts */

enum { SCRIPT_NODES_MAX = FLEET_MAX };

/* A request to write one record. */
struct script_write {
    struct client c;
    bool ended; /* answered, or its connection is gone */
    int16_t error;
    int64_t offset;
};

/* Nodes 1 to n are up and heard of; more: "key=value" lines for each. */
void script_begin(size_t n, const char *more);
/* Everything heals, comes up, becomes the same on all replicas, in full ISRs; what was acknowledged
 * is read. Then all stop. */
void script_end(void);
struct fleet *script_fleet(void);
uint64_t script_seed(void);
/* From now on acknowledged records may be lost: an unclean election is about to be. */
void script_allow_loss(void);

void script_step(int64_t until_us, const char *what);
int64_t script_deadline(void);
/* Steps until cond holds; a violation if it does not for a minute of the network's time. */
#define UNTIL(cond)                                                                                \
    for (const int64_t until_ = script_deadline(); !(cond);)                                       \
    script_step(until_, #cond)
/* Must hold now. */
#define NOW(cond)                                                                                  \
    do {                                                                                           \
        if (!(cond))                                                                               \
            violation("%s:%d: it does not hold that %s", __FILE_NAME__, __LINE__, #cond);          \
    } while (0)
void script_pass(int64_t ms);

/* ------------------------------------------------------------------ what is done to nodes */

void script_kill(int32_t id);
void script_power_off(int32_t id);
void script_stop(int32_t id); /* cleanly; returns when it has ended */
void script_start(int32_t id);
void script_wipe(int32_t id); /* its disk is replaced by an empty one; it is down */
/* Nothing gets from one to the other, until script_heal(). */
void script_block(int32_t from, int32_t to);
void script_isolate(int32_t id);
void script_heal(void);
/* What `from` asks of `to` about records (not of metadata), and the answers, waits or goes on. */
void script_hold_fetches(int32_t from, int32_t to, bool on);

/* ------------------------------------------------------------------ what is asked of them */

/* Its first replica leads, all have it. */
void script_topic(const int32_t *replicas, int32_t n);
void script_write_begin(struct script_write *w, int32_t id, int16_t acks);
bool script_write_ended(struct script_write *w);
/* It is acknowledged. */
void script_write(int32_t id, int16_t acks);
/* ElectLeaders, preferred. */
void script_elect(int32_t id);
/* AlterPartitionReassignments. */
void script_reassign(int32_t id, const int32_t *replicas, int32_t n);

/* ------------------------------------------------------------------ what they know */

struct world *script_world(int32_t id);
bool script_up(int32_t id); /* serves */
struct raft *script_raft(int32_t id);
int32_t script_controller(void); /* the id of the one that is active; 0 */
/* ids of all but that one, rising. */
void script_others(int32_t than, int32_t *out);
/* NULL: the node has no replica of it, or none yet. */
struct partition *script_part(int32_t id);
int64_t script_end_of(int32_t id);   /* of its log; -1 */
int64_t script_hw(int32_t id);       /* -1 */
bool script_leads(int32_t id);       /* as it believes itself */
int32_t script_epoch_of(int32_t id); /* of the leader, as it knows it; -1 */
/* As the newest image has it. */
const struct image_partition *script_state(void);
bool script_in_isr(int32_t id);
const struct image_broker *script_broker(int32_t id); /* NULL: not registered */
/* Are the files of both logs the same? */
bool script_same_log(int32_t a, int32_t b);

#endif
