/* The rows of table.c. */
#ifndef MOESOL_TESTS_CHEATS_TABLE_H
#define MOESOL_TESTS_CHEATS_TABLE_H

#include "../../kernels/kernel.h"

/* less_work.c */
extern const struct moe_kernel cheat_honest, cheat_skip, cheat_checked_only, cheat_some_tokens,
    cheat_drop, cheat_fp8, cheat_poison;
/* caching.c */
extern const struct moe_kernel cheat_last_output, cheat_pointer, cheat_content, cheat_packed;
/* breaking_rules.c */
extern const struct moe_kernel cheat_overwrite, cheat_overwrite_weights, cheat_allocate,
    cheat_past_end, cheat_exit, cheat_early_return;
/* lying.c */
extern const struct moe_kernel cheat_print, cheat_print_all, cheat_samples, cheat_slow;

#endif
