/* The parts of the ghost; shared by its files only. */
#ifndef SIM_GHOST_INSIDE_H
#define SIM_GHOST_INSIDE_H

#include "core/metadata/image.h"
#include "core/replica/partition.h"
#include "ghost.h"
#include "mirror.h"
#include "quorum/inside.h"
#include "support/node/model.h"

enum { GHOST_PARTITIONS = 256, NAME_MAX_BYTES = 64 };

/* What we know of one replica. */
struct ghost_replica {
    struct mirror mirror;
    bool seen;  /* by this process */
    bool blind; /* not all of its log could be read yet */
    bool leading;
    int32_t leader_epoch, partition_epoch;
    int64_t high_watermark;
};

/* The newest that any node ever knew as committed. */
struct ghost_state {
    int32_t leader_epoch, partition_epoch; /* -1: nothing yet */
    int32_t isr[FLEET_MAX], elr[FLEET_MAX], isr_n, elr_n;
};

struct ghost_partition {
    char name[NAME_MAX_BYTES];
    struct uuid topic_id;
    int32_t index;
    struct mirror_book book;
    struct ghost_replica replicas[FLEET_MAX];
    /* Everything below the largest HW that a leader ever had, C: batches in order. */
    struct mirror committed;
    int64_t c;
    /* Who led an epoch first. */
    struct map leaders; /* epoch -> struct world */
    struct ghost_state state;
    bool cleared; /* its ELR, when min.insync.replicas was changed: perhaps nobody may lead now */
    bool lossy;   /* an unclean election: what must be true of clean ones is not asked any more */
};

/* A node as a member of the quorum; epochs and votes outlive its process. */
struct ghost_voter {
    struct mirror mirror;
    bool seen;
    bool unclean; /* a registered life of its broker did not end by a clean stop */
    int32_t epoch;
    int64_t high_watermark;
    enum raft_state state;
    int64_t image_offset;
    uint64_t image_hash;
};

struct ghost {
    struct fleet *f; /* NULL: nobody is looked at */
    struct ghost_partition *partitions;
    size_t n;
    struct ghost_partition quorum; /* book, committed, leaders: of the metadata log */
    struct ghost_voter voters[FLEET_MAX];
    struct map images;          /* offset -> struct ghost_image: what each image said there */
    const struct image *newest; /* of the node that has applied most; until the next turn */
    bool unclean_allowed;       /* elections, by some topic's configuration */
    int32_t recovering;         /* a node that may lack what it had; -1 */
    int32_t wiped_n;            /* voters of a dynamic set that are observers now */
};
extern struct ghost ghost;

const struct node *ghost_node(size_t i); /* NULL: it is down */
/* Its broker runs and is registered with the life that it has. */
bool ghost_registered(const struct image *img, size_t i);
/* NULL: not seen yet. */
struct ghost_partition *ghost_find(struct uuid topic_id, int32_t index);
const struct image_partition *ghost_newest(const struct ghost_partition *gp);
bool ghost_among(const int32_t *v, int32_t n, int32_t id);
void ghost_find_newest(void);

int32_t ghost_recovering(void);

/* ghost_committed.c: the batches of m below `upto` are for good */
void ghost_commit(struct ghost_partition *gp, const struct mirror *m, int64_t upto);
/* Does m hold every committed batch from its own start to `upto`? */
void ghost_check_holds(const struct ghost_partition *gp, const struct mirror *m, int64_t upto,
                       size_t node, const char *rule);
/* Who leads an epoch of it leads it alone. */
void ghost_check_leader(struct ghost_partition *gp, int32_t epoch, size_t node, const char *rule);

/* ghost_calls.c: what node i was about to answer is nobody's */
void ghost_forget_answers(size_t i);

/* ghost_quorum.c */
void ghost_look_quorum(const struct node *n, struct world *w, size_t i);
/* ghost_partition.c */
void ghost_look_partition(struct ghost_partition *gp, struct partition *p, struct world *w,
                          size_t i);
/* 8: whoever may be elected has all that is committed. A broker whose new life is not registered
 * yet stands in the ISR with its old one. */
void ghost_check_candidate(const struct ghost_partition *gp, size_t i);
/* ghost_image.c */
void ghost_look_image(const struct image *img, size_t i);
void ghost_free_images(void);

#endif
