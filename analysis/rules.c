/* The table of the diagnosis rules, and their ranking. */
#include "rules.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "rules_all.h"

const struct rule rules[] = {
    {"memory-bound-at-roof", rule_memory_at_roof,
     "DRAM delivers most of what this device can: what is left is the rest of its roof, and bytes "
     "beyond the model's",
     "read each weight once and keep intermediates on the chip: fuse the gather into gate_up, "
     "swiglu into its epilogue; where the bytes are compulsory already, only the rest of the roof "
     "is left"},
    {"memory-bound-under-roof", rule_memory_under_roof,
     "DRAM is what these phases need most of, and it is not kept busy: too few bytes in flight, "
     "latency that nothing hides, or misses in L2",
     "more loads in flight for each SM: more or deeper pipeline stages, larger TMA tiles, a "
     "producer warp; an evict-first hint on weights; order the tiles so that token rows hit in L2"},
    {"extra-bytes", rule_extra_bytes,
     "DRAM moves more than the phase's model asks for: tiles are read again, or L2 does not keep "
     "what comes back",
     "let all row tiles of an expert read a weight tile together (make the weight tile the outer "
     "loop), evict-first for weights and evict-last for tokens, fuse phases that pass on "
     "intermediates"},
    {"tensor-bound", rule_tensor_at_roof,
     "the tensor pipe is the limit: only fewer operations, a faster instruction or a higher clock "
     "help",
     "pad less (tiles that fit the rows), use the device's widest instruction (wgmma on Hopper), "
     "keep power for the tensor pipe by moving fewer bytes"},
    {"tensor-under-roof", rule_tensor_under_roof,
     "operations are what these phases need most of, and the tensor pipe waits between them",
     "overlap loads, epilogue and tensor instructions (warp specialisation, two consumer groups), "
     "larger tiles, fewer synchronisations in the main loop"},
    {"power-cap", rule_power_cap,
     "the device lowers its clock to stay within its power limit; this is no fault, but time",
     "spend less energy for each result: fewer bytes through DRAM and L2, no padding, no repeated "
     "work, no spinning warps; a colder or higher-limit device"},
    {"launch-bound", rule_launch_bound,
     "the device waits for the host: launches are too many, too short, or a copy to the host is "
     "waited for",
     "one grouped launch for all experts, routing on the device without a copy to the host, a CUDA "
     "graph, programmatic dependent launch"},
    {"padding", rule_padding,
     "tiles are larger than the experts' rows, and the rows computed in vain cost time",
     "smaller row tiles for few rows, tile sizes chosen by the rows of each expert, tokens as the "
     "N operand (multiples of 8)"},
    {"tensor-instructions", rule_tensor_instructions,
     "the tensor pipe is busy for longer than the operations take at the measured roof: a slower "
     "instruction, or padding where operations were not counted",
     "use the instruction that reaches the roof (wgmma instead of mma.sync on Hopper), larger "
     "instruction shapes; report padded rows in the kernel"},
    {"skewed-routing", rule_skewed_routing,
     "one expert has far more rows than the others, and what handles it finishes last",
     "split the rows of large experts over SMs, sort experts by rows (largest first), a work queue "
     "of tiles instead of a fixed expert for each block"},
    {"token-traffic", rule_token_traffic,
     "moving token rows to experts and back takes a part of the time of its own",
     "read token rows by index inside gate_up instead of copying them (TMA gather), add up the "
     "slots of a token in one pass, write fp16 once, overlap with the GEMMs"},
    {"small-grid", rule_small_grid, "fewer blocks than SMs: part of the device has nothing to do",
     "smaller tiles, split along K, several experts in one launch"},
    {"tail", rule_tail,
     "SMs run out of work before the launch ends: the last wave is not full, or blocks differ in "
     "length",
     "a persistent kernel with a work queue, blocks sorted longest first, tiles that divide the "
     "work evenly, overlap with the next launch"},
    {"low-occupancy", rule_low_occupancy,
     "few warps for each SM: while they wait only asynchronous copies go on",
     "fewer registers or less shared memory a block, more warps a block, or deeper asynchronous "
     "copies (cp.async, TMA) that do not need warps"},
    {"far-below-roofs", rule_far_below,
     "less than a quarter of what memory and arithmetic could do is used: the time is latency, "
     "overhead or code that does one thing at a time",
     "more work in flight (blocks, threads, vector units), a library's GEMM instead of a loop, "
     "fewer and larger launches"},
    {"stalls", rule_stalls, "", ""},
    {"local-memory", rule_local_memory,
     "registers are spilled: each spill travels through L1 and L2",
     "smaller tiles a thread, fewer live values, __launch_bounds__ with fewer blocks"},
    {"no-counters", rule_no_counters,
     "without counters nothing says why these phases take their time",
     "`moesol run --counters full`; `moesol doctor` says what keeps counters off"},
};
const size_t rule_count = sizeof rules / sizeof *rules;

/* --- what rules share ------------------------------------------------------------------------- */

void finding_see(struct finding *finding, const char *format, ...) {
    size_t used = strlen(finding->seen);
    va_list arguments;

    if (used > 0 && used + 3 < sizeof finding->seen) {
        strcpy(finding->seen + used, "; ");
        used += 2;
    }
    va_start(arguments, format);
    vsnprintf(finding->seen + used, sizeof finding->seen - used, format, arguments);
    va_end(arguments);
}

double latency_share(const struct rule_context *context, double ns) {
    return ns / context->waterfall->latency_ns;
}

bool phase_matters(const struct rule_context *context, const struct phase_terms *phase) {
    return latency_share(context, phase->time_ns) >= RULE_PHASE_SHARE;
}

bool memory_bound(const struct phase_terms *phase) {
    return phase->memory_ns > 0 && phase->memory_ns >= phase->tensor_ns;
}

bool tensor_bound(const struct phase_terms *phase) { return phase->tensor_ns > phase->memory_ns; }

/* --- ranking ---------------------------------------------------------------------------------- */

static bool apply(const struct rule *rule, const struct rule_context *context,
                  struct finding *finding) {
    *finding = (struct finding){.rule = rule, .means = rule->means, .try_ = rule->try_};
    if (isnan(context->waterfall->latency_ns) || !rule->fires(context, finding))
        return false;
    return latency_share(context, finding->ns) >= RULE_LEAST_SHARE;
}

/* Keeps the list ordered, and no longer than it may be. Equal ones stay in the table's order. */
static void insert(struct findings *findings, const struct finding *finding) {
    size_t at = findings->count;

    while (at > 0 && findings->list[at - 1].ns < finding->ns)
        at--;
    if (at == FINDINGS_MOST)
        return;
    if (findings->count < FINDINGS_MOST)
        findings->count++;
    memmove(&findings->list[at + 1], &findings->list[at],
            (findings->count - 1 - at) * sizeof *finding);
    findings->list[at] = *finding;
}

void find_findings(const struct case_terms *terms, const struct waterfall *waterfall,
                   struct findings *findings) {
    struct rule_context context = {terms, waterfall};

    findings->count = 0;
    for (size_t r = 0; r < rule_count; r++) {
        struct finding finding;
        if (apply(&rules[r], &context, &finding))
            insert(findings, &finding);
    }
}

bool rule_fires(const char *name, const struct case_terms *terms, const struct waterfall *waterfall,
                struct finding *finding) {
    struct rule_context context = {terms, waterfall};

    for (size_t r = 0; r < rule_count; r++)
        if (strcmp(rules[r].name, name) == 0)
            return apply(&rules[r], &context, finding);
    return false;
}

static const struct finding *of_rule(const struct findings *findings, const struct rule *rule) {
    for (size_t i = 0; i < findings->count; i++)
        if (findings->list[i].rule == rule)
            return &findings->list[i];
    return NULL;
}

void join_findings(const struct findings *cases, const int *numbers, size_t count,
                   struct findings *suite) {
    suite->count = 0;
    for (size_t r = 0; r < rule_count; r++) {
        const struct finding *most = NULL;
        struct finding joined = {.rule = &rules[r]};
        size_t hits = 0;
        int number = 0;
        for (size_t i = 0; i < count; i++) {
            const struct finding *one = of_rule(&cases[i], &rules[r]);
            if (!one)
                continue;
            hits++;
            joined.ns += one->ns / (double)count;
            if (!most || one->ns > most->ns) {
                most = one;
                number = numbers[i];
            }
        }
        if (!most)
            continue;
        joined.means = most->means;
        joined.try_ = most->try_;
        if (count == 1)
            finding_see(&joined, "%s", most->seen);
        else
            finding_see(&joined, "in %zu of %zu cases, most in case %d (%.4g ms): %s", hits, count,
                        number, most->ns / 1e6, most->seen);
        insert(suite, &joined);
    }
}
