/* The scripts, by the ids of replication.md 10 and quorum.md 7; docs/SCENARIOS.md says which
 * scenarios are held where. */
#ifndef SIM_SCRIPTS_H
#define SIM_SCRIPTS_H

#include <stddef.h>

struct script {
    const char *name;
    void (*run)(void);
};

extern const struct script scripts[];
extern const size_t scripts_n;

/* script_logs.c: what followers cut */
void script_s1(void);
void script_s2(void);
void script_s7(void);
void script_s32(void);
/* script_isr.c: who is in sync */
void script_s5(void);
void script_s13(void);
void script_s14(void);
void script_s15(void);
void script_s16(void);
void script_s17(void);
void script_s19(void);
/* script_elections.c: who may lead */
void script_s1_offline(void);
void script_s2_waits(void);
void script_s28(void);
/* script_disks.c: crashes at any operation */
void script_s24(void);
void script_s25(void);
/* script_quorum.c */
void script_k2(void);
void script_k4(void);
void script_k5(void);
void script_k6(void);
void script_k10(void);

#endif
