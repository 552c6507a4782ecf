/* Broken invariants. Always compiled in: a node that goes on with a broken invariant writes wrong
 * bytes. Never used for input from wire or disk (law 5). */
#ifndef BASE_CHECK_H
#define BASE_CHECK_H

/* Prints one line to stderr and aborts. */
_Noreturn void check_failed(const char *file, int line, const char *expr);

#define CHECK(cond)                                                                                \
    do {                                                                                           \
        if (__builtin_expect(!(cond), 0))                                                          \
            check_failed(__FILE__, __LINE__, #cond);                                               \
    } while (0)

#endif
