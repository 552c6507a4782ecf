/* The invariants of replication.md 9 and quorum.md 7, looked at after every turn of every node,
 * with the ghost state they need: what was ever committed, who ever led which epoch. The numbers in
 * messages are the specification's. One fleet at a time, whose runs are clean: no unclean election,
 * no more lossy restarts than the ISRs forgive. */
#ifndef SIM_GHOST_H
#define SIM_GHOST_H

#include "fleet.h"
#include "wire/batch.h"

void ghost_begin(struct fleet *f);
void ghost_end(void);
/* Node i has had a turn. */
void ghost_look(size_t i);
/* Its process ended as it was asked to. */
void ghost_stopped(size_t i);
/* Its process ended otherwise; inside: in the middle of a turn, or of a job. */
void ghost_gone(size_t i, bool power, bool inside);
/* Its disk is another one. */
void ghost_wiped(size_t i);
/* Some topic allows unclean elections: by one its partitions may lose records. */
void ghost_allow_unclean(void);
/* A consumer got this batch: it is committed (16). */
void ghost_check_served(struct uuid topic_id, int32_t index, const struct batch *b);
bool ghost_is_lossy(struct uuid topic_id, int32_t index);
/* Nobody may lead it, and nobody will. */
bool ghost_is_stuck(struct uuid topic_id, int32_t index);
/* A record that was acknowledged may be lost from now on, in every partition there is. */
void ghost_allow_loss(void);

/* ghost_loss.c: what may be taken from a node so that nothing that was promised is lost
 * (replication.md 8: fewer than min ISR lose something at a time, and only they restart uncleanly).
 */

/* May node i lose what it has, of partitions; it is up. From then on, until ghost_recovered, no
 * other node may end uncleanly. */
bool ghost_may_lose(size_t i, int32_t min_isr);
void ghost_loses(size_t i);
/* And of the quorum (K10); it is down. */
bool ghost_may_be_wiped(size_t i, int32_t min_isr);
/* It is in every ISR again, or nobody lost anything. */
bool ghost_recovered(void);

/* The faults are over and all is quiet: every replica of every partition holds the same, in full
 * ISRs (28, Q15). False: not yet. why: of that. */
bool ghost_settled(char *why, size_t why_n);

#endif
