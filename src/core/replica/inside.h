/* The inside of the replica manager: shared by its files only. */
#ifndef REPLICA_INSIDE_H
#define REPLICA_INSIDE_H

#include "base/limits.h"
#include "core/replica/partition.h"
#include "core/replica/session.h"
#include "core/replica/throttle.h"

struct checkpoints_job;
struct directory_sender;
struct fetcher;
struct isr_sender;

enum close_state { CLOSE_NOT, CLOSE_WAITING, CLOSE_LOGS, CLOSE_CHECKPOINTS, CLOSE_DONE };

enum {
    PARTITION_NAME_MAX = LIMIT_NAME_MAX + 13, /* "topic-2147483647" */
    PARTITION_DIR_MAX = 4096 + PARTITION_NAME_MAX,
};

/* One of log.dirs. Once failed it stays so until the next start: its replicas are known, and have
 * no log. */
struct log_dir {
    struct replicas *rs;
    size_t idx;
    char *path; /* never changes */
    const char *name;
    struct uuid id;
    struct log_maker maker;
    size_t partitions_n; /* that are here */
    bool failed, failed_untold;
    enum err failed_err;
    const char *failed_what;
    bool close_clean;
    /* a worker's, while replicas.space is busy */
    bool space_asked;
    enum err space_err;
    struct disk_space space;
};

/* Asks how much room there is, in every log directory. */
struct space_job {
    struct job job;
    bool busy;
    struct list waiting, ready; /* struct describe_log_dirs_op */
};

/* What every fetch from a leader asks for: replica.fetch.*, replica.socket.timeout.ms. */
struct fetch_settings {
    int64_t backoff_us, timeout_us;
    int64_t response_max_bytes;
    int32_t partition_max_bytes, min_bytes, wait_max_ms;
};

struct replicas {
    struct env *env;
    struct timers *timers;
    struct budget *budget;
    const struct config *config;
    const struct image *image;
    int32_t node_id;
    struct log_dir *dirs;
    size_t dirs_n;
    struct replicas_events events;
    int64_t (*broker_epoch)(void *ctx); /* ctx of events */
    struct now now;
    int64_t lag_max_us;      /* replica.lag.time.max.ms */
    int64_t fetch_max_bytes; /* fetch.max.bytes */
    bool rack_aware;         /* consumers are sent to replicas in their racks */
    struct log_stages stages;
    struct map partitions;   /* key: topic id, index */
    struct list all;         /* partitions, in the order in which they came */
    struct list walk;        /* in all: those behind it take new defaults */
    struct list led;         /* partitions that followers fetch from here */
    struct list shrink_walk; /* in led: those behind it are to be looked at */
    struct timer shrink_timer;
    struct isr_sender *isr_sender;             /* NULL: ISRs never change by us */
    struct directory_sender *directory_sender; /* NULL: nobody is told where replicas are */
    struct dialing *dialing;                   /* NULL: nobody is followed */
    struct budget *answers;
    struct list fetchers;
    struct fetch_settings fetching;
    struct throttle leader_throttle, follower_throttle;
    bool shutting_down;                            /* controlled shutdown has begun */
    struct list dirty;                             /* partitions to be looked at in settle */
    struct list ready_produce, ready_list_offsets; /* to be completed */
    struct list fresh_produce;                     /* without a deadline yet */
    struct list ready_delete, fresh_delete;        /* the same of DeleteRecords */
    struct list woken_fetch;                       /* to be looked at */
    struct list parked_followers;                  /* fetches of followers that wait */
    int64_t led_us;                                /* when we last began to lead something */
    bool led_untold;                               /* parked_followers have not been told */
    struct space_job space;
    struct fetch_sessions sessions;
    bool failed; /* all of it */
    bool failed_untold;
    enum err failed_err;
    const char *failed_what;
    /* loading */
    struct list to_load, loading;
    uint32_t loading_n;
    bool load_begun, loaded_untold;
    /* checkpoints */
    struct checkpoints_job *checkpoints;
    bool hws_changed, recovery_changed, starts_changed; /* since they were last written */
    struct list raised; /* partitions whose log starts stand in the checkpoint alone */
    /* directories */
    struct map leaving; /* name -> struct leaving */
    struct list left;   /* struct leaving: gone, but the checkpoint files still name them */
    struct list removals;
    size_t jobs_n; /* log closes and directory jobs in flight */
    /* closing */
    enum close_state close_state;
    bool closing, closed_untold;
    void (*closed)(void *ctx, bool clean);
    void *closed_ctx;
};

enum { PARTITION_KEY_BYTES = 20 };
void partition_key(struct uuid topic_id, int32_t index, uint8_t out[PARTITION_KEY_BYTES]);
struct partition *replicas_find(const struct replicas *rs, struct uuid topic_id, int32_t index);
void replicas_mark_dirty(struct partition *p);
void replicas_fail(struct replicas *rs, enum err e, const char *what);
/* The log events of every partition; ctx is the partition. */
struct log_events partition_log_events(struct partition *p);
/* Of its log in ld. */
MUST_USE enum err partition_log_args(struct partition *p, struct log_dir *ld, struct log_args *args,
                                     char *dir, size_t dir_n);

/* An empty log for a partition that has none on disk; without a directory while its name leaves.
 * None where it may be in a log directory that is offline. */
MUST_USE enum err partition_begin_empty(struct partition *p);

/* log_dir.c */
MUST_USE enum err log_dirs_new(struct replicas *rs, const struct replicas_args *args);
void log_dirs_free(struct replicas *rs);
/* Nothing when it has failed before; the rest happens in the settle. */
void log_dir_fail(struct log_dir *ld, enum err e, const char *what);
/* What p's log met. */
void partition_log_fail(struct partition *p, enum err e, const char *what);
/* p is there from now on. */
void partition_set_dir(struct partition *p, struct log_dir *ld);
/* Where a partition that is on no disk goes; one that failed: it may be there. */
struct log_dir *log_dir_choose(const struct partition *p);
bool log_dir_cordoned(const struct log_dir *ld);
/* Its log directory has failed, or everything has. */
bool partition_offline(const struct partition *p);
/* Tells of those that failed. True if any did. */
bool log_dirs_tell(struct replicas *rs);

/* apply.c */
bool apply_settle(struct replicas *rs);

/* produce.c */
enum { PRODUCE_COORDINATOR = -2 }; /* acks of an append_op */
/* The part's batch is staged behind `last`: it ends when it is promised. */
void produce_wait(struct produce_op *op, struct produce_part *part, struct partition *p);
/* The error of a batch that log_stage_leader refused. */
int16_t produce_stage_error(struct partition *p, enum err e, const struct log_staged *staged);
void produce_settle(struct partition *p);          /* what became written, promised, replicated */
void produce_cut(struct partition *p, int16_t e);  /* what was staged is gone */
void produce_fail(struct partition *p, int16_t e); /* all of it: the log is gone or failed */
/* We lead no longer: what is written fails with e, what is not yet does after its write. */
void produce_step_down(struct partition *p, int16_t e);
bool produce_complete_ready(struct replicas *rs);

/* fetch_set.c: readers of p may find something new; p is going */
void partition_changed(struct partition *p);
void partition_gone(struct partition *p);
/* coordinator.c: the same for coordinators */
void coordinator_partition_changed(struct partition *p);
void coordinator_partition_gone(struct partition *p);
/* fetch_preferred.c: does replica.selector.class ask for it? */
bool fetch_is_rack_aware(const struct config *c);
/* fetch.c */
bool fetch_settle(struct replicas *rs);
/* Followers may have a partition to add to what they fetch. */
void fetch_began_leading(struct replicas *rs, struct now now);

/* delete_records.c */
void delete_records_settle(struct partition *p); /* whose low watermark may have risen */
/* A write of the checkpoint file ended: saved_start says how. */
void delete_records_saved(struct partition *p);
/* We lead no longer, the log is gone or failed. */
void delete_records_fail(struct partition *p, int16_t e);
bool delete_records_complete_ready(struct replicas *rs);

/* isr.c: the shrink task */
void isr_init(struct replicas *rs);
/* p leads now, or no longer: it is among the led ones accordingly. */
void isr_led_changed(struct partition *p);
bool isr_settle(struct replicas *rs);

/* isr_sender.c: changes on their way to the controller */
MUST_USE enum err isr_sender_new(struct replicas *rs, struct channel *channel);
/* Open calls end without it. */
void isr_sender_free(struct replicas *rs);
/* Queues p->change. */
void isr_sender_submit(struct partition *p);
bool isr_sender_settle(struct replicas *rs);

/* directory_sender.c: which log directories replicas are in, on its way to the controller */
MUST_USE enum err directory_sender_new(struct replicas *rs, struct channel *channel);
/* Open calls end without it. */
void directory_sender_free(struct replicas *rs);
/* p has its log now, or the metadata say something new of it. */
void directory_sender_look(struct partition *p);
bool directory_sender_settle(struct replicas *rs);

/* describe_log_dirs.c */
void describe_log_dirs_init(struct replicas *rs);
bool describe_log_dirs_settle(struct replicas *rs);

/* follow.c */
/* p->throttled may be another one. */
void follow_throttle_changed(struct partition *p);
/* The partition's leader, epoch, ISR or log may be another one: follows it as that asks. */
MUST_USE enum err follow_update(struct partition *p, bool new_epoch);
void follow_end(struct partition *p);
/* Its log has written, synced or made something. */
void follow_log_moved(struct partition *p);
void follow_log_start_moved(struct partition *p);

/* fetcher.c */
void fetchers_init(struct replicas *rs);
void fetcher_init(struct fetcher *f);
void fetcher_free(struct fetcher *f); /* nobody is fetched by it */
bool fetchers_settle(struct replicas *rs);
void fetchers_brokers_changed(struct replicas *rs);
void fetchers_stop(struct replicas *rs); /* for good: nothing is followed any more */

/* list_offsets.c */
bool list_offsets_settle(struct replicas *rs);

/* load.c */
void load_continue(struct replicas *rs);
void load_drop(struct replicas *rs);

/* checkpoints.c */
MUST_USE enum err checkpoints_new(struct replicas *rs);
void checkpoints_begin(struct replicas *rs);          /* once all logs are loaded */
void checkpoints_request(struct replicas *rs);        /* all, as soon as it can be */
void checkpoints_request_starts(struct replicas *rs); /* those of log starts alone */
bool checkpoints_saving_starts(const struct replicas *rs);
void checkpoints_free(struct replicas *rs);
void checkpoints_collect(struct replicas *rs); /* what the final ones will say; logs are open */
void checkpoints_final(struct replicas *rs);   /* where all logs were closed well */
bool checkpoints_busy(const struct replicas *rs);

/* leaving.c */
struct leaving {
    struct list link; /* in replicas.left, or of the checkpoint that is being written */
    struct replicas *rs;
    struct log_dir *dir; /* where it is, once it leaves */
    struct log_close close;
    int64_t delay_ms; /* file.delete.delay.ms */
    bool known;       /* in the map: others of its name wait for it */
    char name[];
};
struct leaving *leaving_new(struct replicas *rs, const char *name); /* NULL: out of memory */
struct leaving *leaving_new_partition(struct replicas *rs, const char *topic, int32_t index);
/* Deletes a log with its directory, lv->delay_ms later; takes lv. */
void leaving_log(struct leaving *lv, struct log *log);
/* Sets a directory aside that belongs to no partition of ours. */
void leaving_stray(struct log_dir *ld, const char *name);
/* Is a directory of that name on its way out? */
bool leaving_still(const struct replicas *rs, const char *topic, int32_t index);
/* No file names these any more: logs of their names may get their directories. */
void leaving_end(struct replicas *rs, struct list *gone);
void leaving_drop(struct replicas *rs);

/* directory.c: jobs on whole partition directories */
/* Gives it Kafka's -stray name. */
MUST_USE enum err directory_set_aside(struct log_dir *ld, const char *name, void (*done)(void *ctx),
                                      void *ctx);
void directory_remove(struct log_dir *ld, const char *name); /* ends in replicas_job_ended */

/* removal.c: directories that are renamed -delete and wait for file.delete.delay.ms */
void removal_begin(struct log_dir *ld, const char *path, int64_t delay_ms);
void removals_drop(struct replicas *rs); /* they stay on disk; the next start removes them */

/* close.c */
void replicas_job_ended(struct replicas *rs);
void replicas_close_step(struct replicas *rs);

#endif
