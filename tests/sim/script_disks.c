/* Crashes inside file operations, at one after the other. */
#include "script.h"
#include "scripts.h"
#include "support/node/model.h"

static void begin_pair(int32_t *a, int32_t *b, const char *more)
{
    int32_t id[SCRIPT_NODES_MAX];
    script_begin(3, more);
    script_others(script_controller(), id);
    *a = id[0];
    *b = id[1];
    script_topic((int32_t[]){*a, *b}, 2);
}

/* It crashes in the nth operation from now, or after a while if it does not come so far. */
static void crash_at(int32_t id, long n, bool power)
{
    struct world *w = script_world(id);
    world_plan_crash(w, n, power);
    if (w->node == NULL)
        script_start(id);
    for (const int64_t until_us = script_fleet()->network.us + 3000 * 1000;
         w->node != NULL && script_fleet()->network.us < until_us;)
        script_step(INT64_MAX, "");
    if (w->node != NULL)
        script_kill(id);
}

/* S24 (KAFKA-10471, KAFKA-15375): a start that ends before its logs are loaded leaves them as they
 * were, to be recovered by the next one. */
void script_s24(void)
{
    enum { CRASHES = 12, STEP = 5 };
    int32_t a, b;
    begin_pair(&a, &b, "min.insync.replicas=1\n");
    for (int i = 0; i < 10; i++)
        script_write(a, -1);
    UNTIL(script_hw(b) == 10);
    script_kill(b);
    for (int i = 0; i < CRASHES; i++)
        crash_at(b, 1 + i * STEP, false);
    script_start(b);
    for (int i = 0; i < 20; i++)
        script_step(INT64_MAX, "");
    NOW(script_world(b)->node != NULL && !script_up(b));
    script_kill(b);
    script_start(b);
    UNTIL(script_part(b) != NULL);
    NOW(script_end_of(b) == 10);
    script_end();
}

/* S25 (KAFKA-16541): power is lost at any operation of what a change of the leader writes, its
 * epoch above all: what is on the disk is what was, or what was to be. */
void script_s25(void)
{
    enum { CRASHES = 10, STEP = 3 };
    int32_t a, b;
    begin_pair(&a, &b, "min.insync.replicas=1\nlog.flush.interval.messages=1\n");
    for (int i = 0; i < CRASHES; i++) {
        UNTIL(script_in_isr(a) && script_in_isr(b) && (script_leads(a) || script_leads(b)));
        const int32_t leader = script_leads(a) ? a : b, other = leader == a ? b : a;
        script_write(leader, -1);
        world_plan_crash(script_world(other), 1 + i * STEP, true);
        script_kill(leader);
        script_pass(500);
        if (script_world(other)->node != NULL)
            UNTIL(script_leads(other) || script_world(other)->node == NULL);
        if (script_world(other)->node != NULL)
            script_power_off(other);
        script_start(other);
        script_start(leader);
        UNTIL(script_up(a) && script_up(b));
    }
    script_end();
}
