/* Fuzz target: suite files and --case patterns. A suite that is taken keeps what the kernels count
 * on: sizes that cannot overflow, and a name that is a file name. */
#include <math.h>
#include <string.h>

#include "../../cases/suite.h"
#include "fuzz.h"

static void check_case(const struct suite_case *suite_case) {
    const struct moe_shape *shape = &suite_case->shape;
    fuzz_check(shape->batch_seq_len >= 1 && shape->hidden_size >= 1 &&
                   shape->moe_intermediate_size >= 1 && shape->num_experts >= 1 &&
                   shape->num_experts_per_tok >= 1,
               "a size below 1", "");
    fuzz_check(shape->num_experts_per_tok <= shape->num_experts, "more experts than there are", "");
    fuzz_check(shape->batch_seq_len * shape->num_experts_per_tok <= INT32_MAX, "too many rows", "");
    fuzz_check(moe_weight_bytes(shape) > 0, "the weights' bytes overflow", "");
    fuzz_check(isnan(suite_case->atol) || suite_case->atol >= 0, "a negative tolerance", "");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct suite suite; /* 25 KB: not for the stack of a fuzzer's child */
    struct error err = {0};
    char pattern[64];
    size_t length = size < sizeof pattern - 1 ? size : sizeof pattern - 1;
    if (suite_parse((const char *)data, size, "folder", &suite, &err)) {
        fuzz_check_refused(&err);
        suite.cases[0] = (struct suite_case){.number = 1, .shape = {2048, 1, 1, 1, 1}};
    } else {
        fuzz_check(suite.case_count >= 1 && suite.case_count <= SUITE_MAX_CASES, "case count", "");
        fuzz_check(suite.name[0] != '.' && !strchr(suite.name, '/'), "not a file name", suite.name);
        for (size_t i = 0; i < suite.case_count; i++)
            check_case(&suite.cases[i]);
    }
    memcpy(pattern, data, length);
    pattern[length] = '\0';
    int matches = suite_case_matches(&suite.cases[0], pattern);
    fuzz_check(matches >= -1 && matches <= 1, "no answer to a pattern", pattern);
    return 0;
}
