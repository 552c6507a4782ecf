/* DescribeLogDirs (log.md 8): what lies in each log directory, and how much room its file system
 * has. A worker asks for the room, once for all who ask meanwhile. */
#include "core/replica/inside.h"
#include "core/replica/mentions.h"
#include "wire/error.h"

/* ------------------------------------------------------------------ partitions */

static bool held(const struct log_dir *ld, const struct partition *p)
{
    return p != NULL && p->log != NULL && p->dir == ld;
}

static void fill_partition(const struct partition *p,
                           struct describe_log_dirs_response_describe_log_dirs_partition *out)
{
    const int64_t behind = p->high_watermark - log_end_offset(p->log);
    out->partition_index = p->index;
    out->partition_size = (int64_t)log_size_bytes(p->log);
    out->offset_lag = behind > 0 ? behind : 0;
}

/* All that are there of a topic. */
static enum err fill_topic(const struct log_dir *ld, const struct image_topic *t, struct arena *a,
                           struct describe_log_dirs_response_describe_log_dirs_result *out)
{
    struct describe_log_dirs_response_describe_log_dirs_topic *to = &out->topics.v[out->topics.n];
    to->name = str_of(t->name);
    to->partitions.v = wire_array(&wire_describe_log_dirs_response_describe_log_dirs_partition, a,
                                  (size_t)t->partitions_n);
    if (to->partitions.v == NULL)
        return ERR_NOMEM;
    for (int32_t i = 0; i < t->partitions_n; i++) {
        const struct partition *p = replicas_find(ld->rs, t->id, i);
        if (held(ld, p))
            fill_partition(p, &to->partitions.v[to->partitions.n++]);
    }
    out->topics.n += to->partitions.n > 0;
    return ERR_NONE;
}

static enum err fill_all(const struct log_dir *ld, struct arena *a,
                         struct describe_log_dirs_response_describe_log_dirs_result *out)
{
    const struct map *topics = &ld->rs->image->topics_by_id;
    const struct map_entry *it = NULL;
    enum err e = ERR_NONE;
    out->topics.v =
        wire_array(&wire_describe_log_dirs_response_describe_log_dirs_topic, a, topics->n);
    if (out->topics.v == NULL)
        return ERR_NOMEM;
    while (e == ERR_NONE && (it = map_next(topics, it)) != NULL)
        e = fill_topic(ld, map_value(it), a, out);
    return e;
}

static struct mention *mentions_of(const struct describe_log_dirs_request *req, struct arena *a,
                                   size_t *n)
{
    *n = 0;
    for (int32_t i = 0; i < req->topics.n; i++)
        *n += (size_t)req->topics.v[i].partitions.n;
    struct mention *v = arena_array(a, *n, sizeof *v);
    struct mention *next = v;
    for (int32_t i = 0; v != NULL && i < req->topics.n; i++)
        for (int32_t k = 0; k < req->topics.v[i].partitions.n; k++)
            *next++ = (struct mention){.topic = req->topics.v[i].topic,
                                       .index = req->topics.v[i].partitions.v[k]};
    if (v != NULL)
        *n = mentions_merge(v, *n);
    return v;
}

/* Those that the request names and that are there; each once, by topic. */
static enum err fill_named(const struct log_dir *ld, const struct describe_log_dirs_request *req,
                           struct arena *a,
                           struct describe_log_dirs_response_describe_log_dirs_result *out)
{
    size_t n;
    const struct replicas *rs = ld->rs;
    const struct mention *v = mentions_of(req, a, &n);
    struct describe_log_dirs_response_describe_log_dirs_partition *parts =
        v == NULL ? NULL
                  : wire_array(&wire_describe_log_dirs_response_describe_log_dirs_partition, a, n);
    out->topics.v = wire_array(&wire_describe_log_dirs_response_describe_log_dirs_topic, a,
                               (size_t)req->topics.n);
    if (parts == NULL || out->topics.v == NULL)
        return ERR_NOMEM;
    for (size_t i = 0; i < n; i++) {
        const struct image_topic *t = image_topic_named(rs->image, v[i].topic);
        const struct partition *p = t == NULL ? NULL : replicas_find(rs, t->id, v[i].index);
        if (!held(ld, p))
            continue;
        struct describe_log_dirs_response_describe_log_dirs_topic *to =
            out->topics.n == 0 ? NULL : &out->topics.v[out->topics.n - 1];
        if (to == NULL || !str_eq(to->name, v[i].topic)) {
            to = &out->topics.v[out->topics.n++];
            to->name = v[i].topic;
            to->partitions.v = parts;
        }
        fill_partition(p, parts++);
        to->partitions.n++;
    }
    return ERR_NONE;
}

/* ------------------------------------------------------------------ the directories */

static enum err fill_dir(const struct log_dir *ld, const struct describe_log_dirs_op *op,
                         struct describe_log_dirs_response_describe_log_dirs_result *out)
{
    out->log_dir = str_of(ld->path);
    if (ld->failed || ld->rs->failed) {
        out->error_code = K_KAFKA_STORAGE_ERROR;
        return ERR_NONE;
    }
    out->is_cordoned = log_dir_cordoned(ld);
    return op->request->topics.n < 0 ? fill_all(ld, op->arena, out)
                                     : fill_named(ld, op->request, op->arena, out);
}

static enum err fill(const struct replicas *rs, const struct describe_log_dirs_op *op)
{
    struct describe_log_dirs_response *resp = op->response;
    enum err e = ERR_NONE;
    resp->results.v = wire_array(&wire_describe_log_dirs_response_describe_log_dirs_result,
                                 op->arena, rs->dirs_n);
    if (resp->results.v == NULL)
        return ERR_NOMEM;
    for (size_t i = 0; i < rs->dirs_n && e == ERR_NONE; i++)
        e = fill_dir(&rs->dirs[i], op, &resp->results.v[resp->results.n++]);
    return e;
}

/* ------------------------------------------------------------------ their room */

static void space_run(struct job *j, struct disk *d)
{
    struct space_job *s = CONTAINER_OF(j, struct space_job, job);
    const struct replicas *rs = CONTAINER_OF(s, struct replicas, space);
    for (size_t i = 0; i < rs->dirs_n; i++) {
        struct log_dir *ld = &rs->dirs[i];
        if (ld->space_asked)
            ld->space_err = d->space(d, ld->path, &ld->space);
    }
}

static int64_t bytes_of(uint64_t n)
{
    return n > INT64_MAX ? -1 : (int64_t)n;
}

/* Of a directory that has not failed meanwhile, or when the request came. */
static void tell_space(const struct replicas *rs, const struct describe_log_dirs_op *op)
{
    for (size_t i = 0; i < rs->dirs_n; i++) {
        const struct log_dir *ld = &rs->dirs[i];
        struct describe_log_dirs_response_describe_log_dirs_result *out =
            &op->response->results.v[i];
        if (!ld->space_asked || ld->space_err != ERR_NONE || out->error_code != K_NONE)
            continue;
        out->total_bytes = bytes_of(ld->space.total_bytes);
        out->usable_bytes = bytes_of(ld->space.usable_bytes);
    }
}

static void space_done(struct job *j)
{
    struct space_job *s = CONTAINER_OF(j, struct space_job, job);
    struct replicas *rs = CONTAINER_OF(s, struct replicas, space);
    struct list *l;
    s->busy = false;
    for (size_t i = 0; i < rs->dirs_n; i++)
        if (rs->dirs[i].space_asked && rs->dirs[i].space_err != ERR_NONE)
            env_log(rs->env, LOG_WARN, "disk_space_unknown path=%s error=%s", rs->dirs[i].path,
                    err_name(rs->dirs[i].space_err));
    while ((l = list_pop(&s->waiting)) != NULL) {
        tell_space(rs, LIST_ENTRY(l, struct describe_log_dirs_op, link));
        list_append(&s->ready, l);
    }
    replicas_job_ended(rs);
}

static void ask_space(struct replicas *rs)
{
    struct space_job *s = &rs->space;
    if (s->busy)
        return;
    s->busy = true;
    for (size_t i = 0; i < rs->dirs_n; i++)
        rs->dirs[i].space_asked = !rs->dirs[i].failed;
    s->job = (struct job){.lane = JOB_BULK, .run = space_run, .done = space_done};
    rs->jobs_n++;
    rs->env->submit(rs->env, &s->job);
}

/* ------------------------------------------------------------------ the operation */

void describe_log_dirs_init(struct replicas *rs)
{
    list_init(&rs->space.waiting);
    list_init(&rs->space.ready);
}

enum err replicas_describe_log_dirs(struct replicas *rs, struct describe_log_dirs_op *op)
{
    enum err e = fill(rs, op);
    if (e != ERR_NONE)
        return e;
    list_init(&op->link);
    list_append(rs->failed ? &rs->space.ready : &rs->space.waiting, &op->link);
    if (!rs->failed)
        ask_space(rs);
    return ERR_NONE;
}

bool describe_log_dirs_settle(struct replicas *rs)
{
    struct list *l;
    bool moved = false;
    while ((l = list_pop(&rs->space.ready)) != NULL) {
        struct describe_log_dirs_op *op = LIST_ENTRY(l, struct describe_log_dirs_op, link);
        op->done(op);
        moved = true;
    }
    return moved;
}
