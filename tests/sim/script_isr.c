/* Who is in sync, while what was asked and what was decided are still on their way. */
#include "script.h"
#include "scripts.h"
#include "support/node/model.h"

/* a leads alone, the controller is another node; b could join. */
struct pair {
    int32_t controller, a, b;
};

static struct pair begin_pair(size_t nodes)
{
    int32_t id[SCRIPT_NODES_MAX];
    struct pair p = {.controller = 0};
    script_begin(nodes, "min.insync.replicas=1\n");
    p.controller = script_controller();
    script_others(p.controller, id);
    p.a = id[0];
    p.b = id[1];
    script_topic((int32_t[]){p.a, p.b}, 2);
    script_hold_fetches(p.b, p.a, true);
    script_write(p.a, -1);
    UNTIL(script_part(p.a)->isr_n == 1 && script_part(p.a)->sent_seq == 0); /* answered */
    return p;
}

/* S5 (KAFKA-7128): a committed m2 with b and d, who know of m1 alone. b leads, and its high
 * watermark stays at m1 as long as d is silent; c, who has m1 and was out of the ISR, has reached
 * that, and is not in sync: whoever leads next must have m2. */
void script_s5(void)
{
    int32_t id[SCRIPT_NODES_MAX];
    struct script_write m2;
    script_begin(5, "min.insync.replicas=2\n");
    script_others(script_controller(), id);
    const int32_t a = id[0], b = id[1], d = id[2], c = id[3], all[] = {a, b, d, c};
    script_topic(all, 4);
    script_write(a, -1);
    UNTIL(script_hw(b) == 1 && script_hw(c) == 1 && script_hw(d) == 1);
    script_hold_fetches(c, a, true);
    script_write_begin(&m2, a, -1);
    UNTIL(script_end_of(b) == 2 && script_end_of(d) == 2);
    script_block(a, b); /* the answers that would tell */
    script_block(a, d);
    UNTIL(script_write_ended(&m2) && !script_in_isr(c));
    NOW(m2.error == 0 && script_hw(b) == 1 && script_hw(d) == 1 && script_end_of(c) == 1);
    script_hold_fetches(d, b, true);
    script_kill(a);
    UNTIL(script_leads(b));
    const struct partition *p = script_part(b);
    UNTIL(partition_follower(p, c)->end_offset == 1);
    script_block(b, c); /* m2 is on its way to c */
    NOW(script_hw(b) == 1 && p->isr_state == ISR_COMMITTED && !script_in_isr(c));
    script_pass(1000);
    NOW(!script_in_isr(c));
    script_kill(b);
    UNTIL(script_leads(d));
    script_end();
}

/* S13 (KAFKA-8836): b is asked for; the controller has it in, which a never hears. m2 must wait for
 * b, also when b has been silent for so long that it would not count if it were out. */
void script_s13(void)
{
    struct script_write m2, m3;
    const struct pair n = begin_pair(3);
    script_block(n.controller, n.a);
    script_hold_fetches(n.b, n.a, false);
    UNTIL(script_part(n.a)->isr_state == ISR_PENDING_EXPAND);
    script_hold_fetches(n.b, n.a, true);
    script_write_begin(&m2, n.a, -1);
    UNTIL(script_in_isr(n.b));
    UNTIL(script_end_of(n.a) == 2);
    script_pass(4500); /* over replica.lag.time.max.ms */
    script_write_begin(&m3, n.a, 1);
    UNTIL(script_end_of(n.a) == 3);
    script_pass(100);
    NOW(!script_write_ended(&m2) && script_hw(n.a) == 1 && script_end_of(n.b) == 1);
    script_kill(n.a);
    UNTIL(script_leads(n.b));
    script_write(n.b, -1);
    script_end();
}

/* S14 (KAFKA-13091): what waits for b, who is dead, is acknowledged once the ISR without it is
 * committed: there is nobody else whose fetch could do that. */
void script_s14(void)
{
    int32_t id[SCRIPT_NODES_MAX];
    struct script_write m;
    script_begin(3, "min.insync.replicas=1\n");
    script_others(script_controller(), id);
    const int32_t a = id[0], b = id[1], both[] = {a, b};
    script_topic(both, 2);
    script_write(a, -1);
    script_hold_fetches(b, a, true); /* dead for a alone: its session goes on */
    script_write_begin(&m, a, -1);
    UNTIL(script_part(a)->isr_state == ISR_PENDING_SHRINK);
    NOW(!script_write_ended(&m) && script_hw(a) == 1);
    UNTIL(script_part(a)->isr_state == ISR_COMMITTED);
    NOW(script_part(a)->isr_n == 1 && !script_broker(b)->fenced);
    script_pass(50);
    NOW(script_write_ended(&m) && m.error == 0 && script_hw(a) == 2);
    script_end();
}

/* S15 (KAFKA-12686): a asks for b; before that arrives the partition is to move, which makes its
 * epoch another one. What was asked is refused, and asked again on top of that. */
void script_s15(void)
{
    const struct pair n = begin_pair(5);
    int32_t id[SCRIPT_NODES_MAX];
    script_others(n.controller, id);
    const int32_t more = id[2], all[] = {n.a, n.b, more};
    script_hold_fetches(more, n.a, true);
    script_block(n.a, n.controller); /* it waits on its way */
    script_hold_fetches(n.b, n.a, false);
    UNTIL(script_part(n.a)->isr_state == ISR_PENDING_EXPAND);
    const int32_t before = script_state()->partition_epoch;
    script_reassign(more, all, 3);
    UNTIL(script_state()->partition_epoch > before);
    NOW(script_part(n.a)->partition_epoch == before || script_part(n.a)->change == NULL);
    script_heal();
    UNTIL(script_in_isr(n.b));
    NOW(script_part(n.a)->partition_epoch > before && script_state()->replicas_n == 3);
    script_end();
}

/* S16 (KAFKA-13916, KIP-841): b stops, which takes it out of the ISR; its last fetches do not bring
 * it in again. */
void script_s16(void)
{
    int32_t id[SCRIPT_NODES_MAX];
    script_begin(3, "min.insync.replicas=1\n");
    script_others(script_controller(), id);
    const int32_t a = id[0], b = id[1], both[] = {a, b};
    script_topic(both, 2);
    script_write(a, -1);
    UNTIL(script_in_isr(b));
    world_stop(script_world(b));
    UNTIL(script_broker(b)->in_controlled_shutdown || script_broker(b)->fenced);
    NOW(!script_in_isr(b));
    for (int i = 0; i < 5; i++)
        script_write(a, -1);
    for (const int64_t until_us = script_deadline(); script_world(b)->node != NULL;) {
        NOW(!script_in_isr(b) && script_part(a)->isr_state != ISR_PENDING_EXPAND);
        script_step(until_us, "it has stopped");
    }
    script_write(a, -1);
    script_end();
}

/* S19 (KAFKA-15021): b is in its controlled shutdown, out of the ISR, silent, and was caught up a
 * moment ago. Nobody waits for it. */
void script_s19(void)
{
    enum { SOON_US = 1000 * 1000 };
    int32_t id[SCRIPT_NODES_MAX];
    script_begin(3, "min.insync.replicas=1\n");
    script_others(script_controller(), id);
    const int32_t a = id[0], b = id[1], both[] = {a, b};
    script_topic(both, 2);
    script_write(a, -1);
    UNTIL(script_in_isr(b) && script_hw(b) == 1);
    script_hold_fetches(b, a, true);
    world_stop(script_world(b));
    UNTIL(!script_in_isr(b));
    UNTIL(script_part(a)->isr_n == 1);
    const int64_t begin_us = script_fleet()->network.us;
    script_write(a, -1);
    NOW(script_fleet()->network.us - begin_us < SOON_US);
    UNTIL(script_world(b)->node == NULL);
    script_end();
}

/* S17 (KAFKA-14139, KIP-903): a asks for b; before that arrives b's new life is registered, with
 * another disk or (which changes nothing else of the partition) with its own. What was asked for
 * the former one is refused. */
static void play_s17(bool wiped)
{
    const struct pair n = begin_pair(5); /* a quorum without both */
    const int64_t life = script_broker(n.b)->epoch;
    script_block(n.a, n.controller); /* it waits on its way */
    script_hold_fetches(n.b, n.a, false);
    UNTIL(script_part(n.a)->isr_state == ISR_PENDING_EXPAND);
    script_hold_fetches(n.b, n.a, true);
    script_kill(n.b);
    UNTIL(script_broker(n.b)->fenced);
    if (wiped)
        script_wipe(n.b);
    script_start(n.b);
    UNTIL(script_broker(n.b)->epoch > life && !script_broker(n.b)->fenced);
    NOW(!script_in_isr(n.b) && !script_broker(n.a)->fenced);
    script_heal();
    UNTIL(script_part(n.a)->isr_state == ISR_COMMITTED);
    for (const int64_t until_us = script_fleet()->network.us + 1000 * 1000;
         script_fleet()->network.us < until_us; script_step(INT64_MAX, ""))
        NOW(!script_in_isr(n.b));
    script_hold_fetches(n.b, n.a, false);
    UNTIL(script_in_isr(n.b));
    NOW(script_end_of(n.b) == 1);
    script_end();
}

void script_s17(void)
{
    play_s17(false);
    play_s17(true);
}
