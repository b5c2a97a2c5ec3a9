/* Rules that read the counters themselves: what warps wait for, spills, counters that are not
 * there. */
#include <math.h>
#include <string.h>

#include "rules_all.h"

static const double stall_share = 0.30;     /* of the waiting warps */
static const double spill_share = 0.01;     /* of the L2 traffic */
static const double uncounted_share = 0.02; /* of the latency */

/* What a stall reason means, and what helps. */
static const struct stall_text {
    const char *reason, *means, *try_;
} stall_texts[] = {
    {"long_scoreboard",
     "warps wait for data from L1, L2 or DRAM: loads into registers, or an mbarrier that a TMA "
     "copy "
     "completes",
     "load earlier: prefetch, asynchronous copies into shared memory (cp.async, TMA); where they "
     "are used already: more or deeper stages, tiles that hit in L2"},
    {"short_scoreboard", "warps wait for shared memory or special functions",
     "fewer shared-memory accesses: larger register tiles, ldmatrix, a swizzle without bank "
     "conflicts"},
    {"barrier",
     "warps wait for others of their block; idle ones of a specialised group count, and cost "
     "nothing",
     "fewer barriers (__syncthreads, bar.sync) in the main loop; mbarriers and warp specialisation "
     "instead"},
    {"math_pipe_throttle", "the pipe that the instructions need is busy: warps queue for it",
     "this is the limit that one wants, if it is the tensor pipe; else use fewer instructions"},
    {"gmma", "warps wait for wgmma to finish",
     "issue the next wgmma before waiting for the last (wait for all but one), two consumer "
     "groups"},
    {"mio_throttle", "the queue for shared memory and special instructions is full",
     "wider accesses, fewer of them: 16-byte shared loads, ldmatrix.x4"},
    {"lg_throttle", "the queue for global loads is full",
     "wider loads (16 bytes a thread), TMA instead of loads of each thread"},
    {"wait", "warps wait a fixed number of cycles for the instruction before",
     "more independent instructions between dependent ones: unroll, interleave two tiles"},
    {"no_instruction", "warps wait for instructions: the code does not fit its cache, or jumps",
     "a smaller main loop, less unrolling, fewer specialised copies of a kernel in turn"},
    {"membar", "warps wait for a memory fence", "fewer and narrower fences (block before device)"},
    {"drain", "warps wait for their last stores", "store earlier, with TMA, or in fewer pieces"},
    {"sleeping", "warps sleep or spin on a barrier (producers of a pipeline do)",
     "no harm in producer warps; in consumers it is a pipeline that runs dry: more stages"},
    {"branch_resolving", "warps wait for a branch", "fewer branches in the main loop"},
};

static void set_texts(const char *reason, struct finding *finding) {
    finding->means = "warps wait; see the reasons above";
    finding->try_ = "look the reason up in the vendor's profiler, with the kernel's source beside";
    for (size_t i = 0; i < sizeof stall_texts / sizeof *stall_texts; i++) {
        if (strcmp(stall_texts[i].reason, reason) != 0)
            continue;
        finding->means = stall_texts[i].means;
        finding->try_ = stall_texts[i].try_;
    }
}

/* `selected` warps issue, `not_selected` ones could: neither waits. */
static bool waits(const char *reason) {
    return strcmp(reason, "selected") != 0 && strcmp(reason, "not_selected") != 0;
}

/* The reasons of a phase, the largest first; returns its share of the waiting warps. */
static double see_reasons(const struct phase_terms *phase, struct finding *finding, char *top,
                          size_t size) {
    char name[96], names[3][96] = {"", "", ""};
    double warps, sum = 0, most[3] = {0, 0, 0};
    size_t index = 0;

    while (next_stall(phase->counters, &index, name, sizeof name, &warps)) {
        if (!waits(name))
            continue;
        sum += warps;
        for (size_t k = 0; k < 3; k++) {
            if (warps <= most[k])
                continue;
            memmove(&most[k + 1], &most[k], (2 - k) * sizeof *most);
            memmove(names[k + 1], names[k], (2 - k) * sizeof *names);
            most[k] = warps;
            memcpy(names[k], name, sizeof name);
            break;
        }
    }
    if (!(sum > 0))
        return 0;
    finding_see(finding, "%s: of the warps that wait", phase->phase->name);
    size_t used = strlen(finding->seen);
    for (size_t k = 0; k < 3 && names[k][0] && used < sizeof finding->seen; k++)
        used += (size_t)snprintf(finding->seen + used, sizeof finding->seen - used, "%s %.0f %% %s",
                                 k > 0 ? "," : "", most[k] / sum * 100, names[k]);
    snprintf(top, size, "%s", names[0]);
    return most[0] / sum;
}

/* One finding, of the phase that loses most below its roof; worth what its reason holds back. */
bool rule_stalls(const struct rule_context *context, struct finding *finding) {
    const struct phase_terms *worst = NULL;
    char top[96] = "";

    for (size_t i = 0; i < context->terms->phase_count; i++) {
        const struct phase_terms *phase = &context->terms->phases[i];
        if (phase_matters(context, phase) && phase->has_stalls && phase->below_ns > 0 &&
            (!worst || phase->below_ns > worst->below_ns))
            worst = phase;
    }
    if (!worst)
        return false;
    double share = see_reasons(worst, finding, top, sizeof top);
    finding->ns = share * worst->below_ns;
    set_texts(top, finding);
    return share >= stall_share;
}

bool rule_local_memory(const struct rule_context *context, struct finding *finding) {
    for (size_t i = 0; i < context->terms->phase_count; i++) {
        const struct phase_terms *phase = &context->terms->phases[i];
        double spilled =
            metric_value(phase->counters, "l1tex__t_bytes_pipe_lsu_mem_local_op_ld.sum") +
            metric_value(phase->counters, "l1tex__t_bytes_pipe_lsu_mem_local_op_st.sum");
        double l2_bytes = metric_value(phase->counters, "lts__t_bytes.sum");
        if (!phase_matters(context, phase) || !(spilled > spill_share * l2_bytes))
            continue;
        finding->ns += fmin(1, spilled / l2_bytes) * fmax(0, phase->time_ns - phase->roof_ns);
        finding_see(finding, "%s: %.4g GB of local memory, %.4g GB through L2", phase->phase->name,
                    spilled / 1e9, l2_bytes / 1e9);
    }
    return finding->seen[0] != '\0';
}

/* On a CPU there are none to be had. */
bool rule_no_counters(const struct rule_context *context, struct finding *finding) {
    double time_ns = 0;

    if (context->terms->cpu)
        return false;
    for (size_t i = 0; i < context->terms->phase_count; i++) {
        const struct phase_terms *phase = &context->terms->phases[i];
        if (phase->counters)
            continue;
        time_ns += phase->time_ns;
        finding->ns += fmax(0, phase->time_ns - phase->roof_ns);
        if (phase_matters(context, phase))
            finding_see(finding, "%s: %.4g ms", phase->phase->name, phase->time_ns / 1e6);
    }
    if (time_ns > 0)
        finding_see(finding, "why: %.160s",
                    context->terms->counters ? "the counter run did not open these phases"
                                             : context->terms->no_counters);
    return latency_share(context, time_ns) >= uncounted_share;
}
