/* Who may lead when those in sync are gone. */
#include "script.h"
#include "scripts.h"
#include "support/node/model.h"
#include "wire/error.h"

/* S1's variant: the leader dies before the follower that started again is in sync. The partition
 * waits for it; nothing is lost. */
void script_s1_offline(void)
{
    int32_t id[SCRIPT_NODES_MAX];
    script_begin(3, "min.insync.replicas=1\n");
    script_others(script_controller(), id);
    const int32_t b = id[0], a = id[1], both[] = {b, a};
    script_topic(both, 2);
    script_write(b, -1);
    script_kill(a);
    UNTIL(script_broker(a)->fenced);
    script_write(b, -1); /* b has it alone */
    script_hold_fetches(a, b, true);
    script_start(a);
    UNTIL(script_part(a) != NULL && !script_broker(a)->fenced);
    script_kill(b);
    UNTIL(script_broker(b)->fenced);
    NOW(script_state()->leader == -1 && !script_in_isr(a));
    script_pass(5000);
    NOW(script_state()->leader == -1);
    script_hold_fetches(a, b, false);
    script_start(b);
    UNTIL(script_leads(b));
    script_end();
}

/* S2 with two to acknowledge (KIP-966): a is cut off and goes on living; b, alone in sync by then,
 * dies, and comes back unclean: it may have lost what it acknowledged, and is not elected. a has it
 * all, and is. */
void script_s2_waits(void)
{
    int32_t id[SCRIPT_NODES_MAX];
    script_begin(3, "min.insync.replicas=2\n");
    script_others(script_controller(), id);
    const int32_t a = id[0], b = id[1], both[] = {a, b};
    script_topic(both, 2);
    script_write(a, -1);
    script_write(a, -1);
    UNTIL(script_hw(b) == 2);
    script_isolate(a);
    UNTIL(script_broker(a)->fenced && script_leads(b));
    const int64_t life = script_broker(b)->epoch;
    script_kill(b); /* the quorum is gone with it */
    script_start(b);
    UNTIL(script_broker(b)->epoch > life && !script_broker(b)->fenced);
    script_pass(3000);
    NOW(script_state()->leader == -1 && !script_in_isr(b));
    script_heal();
    UNTIL(script_leads(a));
    script_end();
}

/* S28 (KIP-966): c alone was in sync and comes back unclean, b stopped cleanly while too few were
 * left to acknowledge without it: b leads. */
void script_s28(void)
{
    int32_t id[SCRIPT_NODES_MAX];
    struct script_write m;
    script_begin(5, "min.insync.replicas=2\n");
    script_others(script_controller(), id);
    const int32_t c = id[0], a = id[1], b = id[2], all[] = {c, a, b};
    script_topic(all, 3);
    script_write(c, -1);
    script_stop(a);
    script_write(c, -1); /* on b and c */
    UNTIL(script_end_of(b) == 2);
    script_stop(b);
    NOW(script_state()->isr_n == 1 && script_state()->elr_n == 1);
    UNTIL(script_part(c)->isr_n == 1);
    script_write_begin(&m, c, -1);
    UNTIL(script_write_ended(&m));
    NOW(m.error == K_NOT_ENOUGH_REPLICAS);
    script_hold_fetches(a, c, true); /* it is up for the quorum, and stays out of the ISR */
    script_start(a);
    UNTIL(script_up(a) && !script_broker(a)->fenced);
    script_power_off(c);
    UNTIL(script_broker(c)->fenced);
    NOW(script_state()->leader == -1);
    const int64_t life = script_broker(c)->epoch;
    script_start(c);
    UNTIL(script_broker(c)->epoch > life && !script_broker(c)->fenced);
    script_pass(2000);
    NOW(script_state()->leader == -1);
    script_start(b);
    UNTIL(script_leads(b));
    NOW(script_end_of(b) == 2);
    script_end();
}
