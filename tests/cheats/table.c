/* The plug-in of the cheats: what it exports. */
#include "table.h"

const struct moe_kernel *const moe_plugin_kernels[] = {
    &cheat_honest,
    &cheat_last_output,
    &cheat_pointer,
    &cheat_content,
    &cheat_packed,
    &cheat_skip,
    &cheat_checked_only,
    &cheat_some_tokens,
    &cheat_drop,
    &cheat_fp8,
    &cheat_poison,
    &cheat_overwrite,
    &cheat_overwrite_weights,
    &cheat_allocate,
    &cheat_past_end,
    &cheat_exit,
    &cheat_early_return,
    &cheat_print,
    &cheat_print_all,
    &cheat_samples,
    &cheat_slow,
    0,
};
