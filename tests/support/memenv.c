#include "support/memenv.h"

#include <stdio.h>

#include "base/check.h"

static struct memenv *memenv_of(struct env *e)
{
    return CONTAINER_OF(e, struct memenv, env);
}

static void env_random(struct env *e, void *p, size_t n)
{
    rng_fill(&memenv_of(e)->rng, p, n);
}

static void env_submit(struct env *e, struct job *j)
{
    struct memenv *m = memenv_of(e);
    list_append(&m->waiting, &j->link);
    m->waiting_n++;
}

static struct job *env_reap(struct env *e)
{
    struct list *l = list_pop(&memenv_of(e)->finished);
    return l == NULL ? NULL : LIST_ENTRY(l, struct job, link);
}

static void env_line(struct env *e, enum log_level level, const char *line)
{
    struct memenv *m = memenv_of(e);
    m->lines[level]++;
    m->word_n += m->word != NULL && strstr(line, m->word) != NULL;
    snprintf(m->last_line, sizeof m->last_line, "%s", line);
    if (m->echo)
        fprintf(stderr, "%s\n", line);
}

void memenv_init(struct memenv *e, struct memfs *fs, uint64_t seed)
{
    *e = (struct memenv){
        .env = {&fs->vfs, env_random, env_submit, env_reap, env_line},
        .fs = fs,
        .rng = {seed},
    };
    list_init(&e->waiting);
    list_init(&e->finished);
}

void memenv_close(struct memenv *e)
{
    CHECK(list_empty(&e->waiting) && list_empty(&e->finished));
}

void memenv_run_nth_job(struct memenv *e, size_t n)
{
    CHECK(n < e->waiting_n);
    struct list *l = e->waiting.next;
    while (n-- > 0)
        l = l->next;
    list_remove(l);
    e->waiting_n--;
    struct job *j = LIST_ENTRY(l, struct job, link);
    j->run(j, &e->fs->disk);
    list_append(&e->finished, &j->link);
}

bool memenv_run_job(struct memenv *e)
{
    if (e->waiting_n == 0)
        return false;
    memenv_run_nth_job(e, 0);
    return true;
}

size_t memenv_run_jobs(struct memenv *e)
{
    size_t n = 0;
    while (memenv_run_job(e))
        n++;
    return n;
}

size_t memenv_reap_jobs(struct memenv *e)
{
    size_t n = 0;
    struct job *j;
    while ((j = e->env.reap(&e->env)) != NULL) {
        j->done(j);
        n++;
    }
    return n;
}

void memenv_drop_jobs(struct memenv *e)
{
    list_init(&e->waiting);
    list_init(&e->finished);
    e->waiting_n = 0;
}
