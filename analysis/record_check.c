/* Checks a record against its suite, against the inputs drawn again here, and against itself. */
#include "record_check.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../cases/draw.h"
#include "../core/stats.h"
#include "summary.h"

/* Samples and warm-ups of a case in all rounds. */
static const size_t samples_least_cuda = 50, samples_least_cpu = 5;
static const double warmups_least = 10;
/* Event time and device timestamps measure the same run; the event time has the host's part. */
static const double event_share = 0.5, event_allowance_ns = 200e3;

/* The run itself judges its clock more strictly; the pipe and each launch take time of their own.
 */
static const double clock_share = 0.1, clock_allowance_ns = 300e3, clock_launch_ns = 3e3;

void findings_add(struct findings *findings, const char *format, ...) {
    va_list arguments;
    char(*grown)[256] = realloc(findings->texts, (findings->count + 1) * sizeof *findings->texts);

    if (!grown) {
        findings->failed = true;
        return;
    }
    findings->texts = grown;
    va_start(arguments, format);
    vsnprintf(grown[findings->count++], sizeof *grown, format, arguments);
    va_end(arguments);
}

void findings_free(struct findings *findings) {
    free(findings->texts);
    memset(findings, 0, sizeof *findings);
}

/* --- the run line ---------------------------------------------------------------------------- */

static void check_input_table(const struct record_run *run, struct findings *findings) {
    uint16_t *table = malloc(DRAW_TABLE_SIZE * sizeof *table);
    char hash[65];

    if (!table) {
        findings->failed = true;
        return;
    }
    draw_normal_table(DRAW_HIDDEN_SCALE, table);
    draw_table_hash(table, hash);
    free(table);
    if (strcmp(hash, run->table_hash) != 0)
        findings_add(findings, "table_hash: %.16s..., drawn here it is %.16s...: other inputs",
                     run->table_hash[0] ? run->table_hash : "missing", hash);
}

static void check_device(const struct record_run *run, struct findings *findings) {
    const struct record_device *device = &run->device;
    bool cuda = strcmp(device->kind, "cuda") == 0;

    if (!device->name[0])
        findings_add(findings, "device.name: missing");
    if (cuda && !device->uuid_hash[0])
        findings_add(findings, "device.uuid_hash: missing: which device it was is not known");
    if (cuda && !(device->sm_count > 0))
        findings_add(findings, "device.sm_count: missing");
    if (!best_ceiling(run, "dram_read") || !best_ceiling(run, flop_ceiling_name(run)))
        findings_add(findings, "ceilings: the measured roofs of the device are missing");
}

static void check_run(const struct suite *suite, const struct record_run *run,
                      struct findings *findings) {
    if (strcmp(run->suite_hash, suite->hash) != 0)
        findings_add(findings, "suite_hash: %.16s..., suite %s here has %.16s...: another version",
                     run->suite_hash[0] ? run->suite_hash : "missing", suite->name, suite->hash);
    if (run->suite_case_count != (double)suite->case_count)
        findings_add(findings, "suite_case_count: %g, the suite has %zu", run->suite_case_count,
                     suite->case_count);
    if (run->seed != (double)suite->seed)
        findings_add(findings, "seed: %.0f, the suite's is %llu", run->seed,
                     (unsigned long long)suite->seed);
    check_input_table(run, findings);
    if (!(run->round_count >= RECORD_CHECK_ROUNDS))
        findings_add(findings, "round_count: %g, %d are needed", run->round_count,
                     RECORD_CHECK_ROUNDS);
    if (run->back_to_back)
        findings_add(findings, "back_to_back: true, but a published time is a cold one");
    if (!run->command[0])
        findings_add(findings, "command: missing");
    if (strlen(run->started_at) < 10)
        findings_add(findings, "started_at: missing");
    if (!run->kernel.source_hash[0])
        findings_add(findings, "kernel.source_hash: missing: what was measured is not known");
    check_device(run, findings);
}

static void check_end(const struct record *record, struct findings *findings) {
    if (record->cut)
        findings_add(findings, "line %zu: cut in its middle", record->dropped_line);
    if (!record->end.present)
        findings_add(findings, "end: missing: the run was cut; `moesol run --resume` goes on");
    else if (strcmp(record->end.status, "complete") != 0)
        findings_add(findings, "end.status: %s, not complete; `moesol run --resume` goes on",
                     record->end.status[0] ? record->end.status : "missing");
    /* ISO 8601 in UTC sorts as text. */
    if (record->end.present && strcmp(record->end.finished_at, record->run.started_at) < 0)
        findings_add(findings, "end.finished_at: %.30s is before started_at %.30s",
                     record->end.finished_at, record->run.started_at);
}

/* --- one case line --------------------------------------------------------------------------- */

struct line {
    const struct suite *suite;
    const struct suite_case *wanted;
    const struct record_case *found;
    bool cuda;
    struct findings *findings;
};

static void __attribute__((format(printf, 2, 3)))
add(const struct line *line, const char *format, ...) {
    char text[200];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    findings_add(line->findings, "case %d, round %.0f: %s", line->wanted->number,
                 line->found->round, text);
}

static void check_problem(const struct line *line) {
    const struct moe_shape *shape = &line->wanted->shape;
    const struct record_case *found = line->found;
    double ratio = found->matched_ratio_needed, token_ratio = found->token_matched_ratio_needed;
    const struct {
        const char *key;
        double wanted, found;
    } numbers[] = {
        {"batch_seq_len", (double)shape->batch_seq_len, found->batch_seq_len},
        {"hidden_size", (double)shape->hidden_size, found->hidden_size},
        {"moe_intermediate_size", (double)shape->moe_intermediate_size,
         found->moe_intermediate_size},
        {"num_experts", (double)shape->num_experts, found->num_experts},
        {"num_experts_per_tok", (double)shape->num_experts_per_tok, found->num_experts_per_tok},
        {"rtol", line->wanted->rtol, found->rtol},
        {"atol", isnan(line->wanted->atol) ? found->atol : line->wanted->atol, found->atol},
        {"matched_ratio_needed", line->wanted->matched_ratio,
         isnan(ratio) ? line->wanted->matched_ratio : ratio}, /* an older record has none */
        {"token_matched_ratio_needed", line->suite->token_matched_ratio,
         isnan(token_ratio) ? line->suite->token_matched_ratio : token_ratio},
    };

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i].wanted != numbers[i].found)
            add(line, "%s: %.12g, the suite has %.12g", numbers[i].key, numbers[i].found,
                numbers[i].wanted);
}

/* Of the checked run, or of the timed iterations. */
static void check_matches(const struct line *line, const char *key,
                          const struct record_correctness *c) {
    if (!(c->matched_ratio >= line->wanted->matched_ratio) || !(c->matched_ratio <= 1))
        add(line, "%s.matched_ratio: %.6g, the suite wants %.6g", key, c->matched_ratio,
            line->wanted->matched_ratio);
    if (!(c->token_matched_ratio_min >= line->suite->token_matched_ratio))
        add(line, "%s.token_matched_ratio_min: %.6g, the suite wants %.6g", key,
            c->token_matched_ratio_min, line->suite->token_matched_ratio);
    if (c->nan_count > 0 || c->inf_count > 0)
        add(line, "%s: NaN or Inf where the reference is finite", key);
    if (c->matched_ratio == 1 && !isnan(c->first_failing_token))
        add(line, "%s.first_failing_token: %.0f, though all elements match", key,
            c->first_failing_token);
}

static void check_correctness(const struct line *line) {
    const struct record_correctness *c = &line->found->correctness;

    if (line->found->timed_correctness.checked)
        check_matches(line, "timed_correctness", &line->found->timed_correctness);
    else
        add(line, "timed_correctness: no timed iteration was checked");
    if (!c->checked) {
        add(line, "correctness: the output was not checked");
        return;
    }
    check_matches(line, "correctness", c);
    if (c->tokens_checked != line->found->batch_seq_len)
        add(line, "correctness.tokens_checked: %.0f of %.0f tokens", c->tokens_checked,
            line->found->batch_seq_len);
    if (line->found->round == 0 &&
        !(c->reference_matched_ratio >= line->suite->token_matched_ratio))
        add(line, "correctness.reference_matched_ratio: %.6g against the CPU reference",
            c->reference_matched_ratio);
}

/* Noisy is allowed, and shown. A case that was wrong is told by its status alone. */
static bool was_measured(enum record_status status) {
    return status == STATUS_OK || status == STATUS_NOISY || status == STATUS_THROTTLED ||
           status == STATUS_ABOVE_ROOF;
}

static void check_status(const struct line *line) {
    if (!was_measured(line->found->status))
        add(line, "status: %s%s%.120s", record_status_names[line->found->status],
            line->found->reason[0] ? ": " : "", line->found->reason);
}

/* Parts of an iteration cannot last longer than the iteration. */
static void check_times(const struct line *line) {
    const struct record_case *found = line->found;
    double median_ns = stats_quantile(found->samples_ns, found->sample_count, 0.5);
    double launches = isnan(found->launch_count) ? 0 : found->launch_count;

    for (size_t p = 0; p < found->phase_count; p++)
        for (size_t i = 0; i < found->phases[p].sample_count && i < found->sample_count; i++)
            if (found->phases[p].samples_ns[i] > found->samples_ns[i] + 1) {
                add(line, "phases[%zu].samples_ns[%zu]: %.0f ns, the whole took %.0f ns", p, i,
                    found->phases[p].samples_ns[i], found->samples_ns[i]);
                return;
            }
    if (fabs(found->collected_event_ns - median_ns) > event_share * median_ns + event_allowance_ns)
        add(line, "collected_event_ns: %.0f, the median of samples_ns is %.0f",
            found->collected_event_ns, median_ns);
    if (fabs(found->parent_clock_ratio - 1) * median_ns >
        clock_share * median_ns + clock_allowance_ns + clock_launch_ns * launches)
        add(line, "parent_clock_ratio: %.3f, but the parent's clock saw the very iterations",
            found->parent_clock_ratio);
    if (found->gap_ns > median_ns)
        add(line, "gap_ns: %.0f, the median of samples_ns is %.0f", found->gap_ns, median_ns);
}

/* --- the routing, drawn again ---------------------------------------------------------------- */

static int draw_routing(const struct suite *suite, const struct moe_shape *shape,
                        struct moe_routing *out) {
    struct draw_routing routing = {.num_experts = shape->num_experts,
                                   .num_experts_per_tok = shape->num_experts_per_tok,
                                   .kind = (int)suite->routing};
    int64_t *ids = calloc((size_t)(shape->batch_seq_len * shape->num_experts_per_tok), sizeof *ids);
    uint64_t *cumulative = calloc((size_t)shape->num_experts, sizeof *cumulative);
    int result = -1;

    if (ids && cumulative) {
        if (suite->routing == ROUTING_ZIPF)
            draw_zipf_cumulative(suite->zipf_exponent, shape->num_experts, cumulative);
        routing.cumulative = cumulative;
        if (suite->routing == ROUTING_ONE_HOT)
            routing.hot_threshold = (uint64_t)(suite->hot_fraction * 4294967296.0);
        draw_topk_idx(&routing, draw_key(suite->seed, DRAW_TOPK_IDX, 0),
                      (uint64_t)shape->batch_seq_len, ids);
        result = moe_count_routing(shape, ids, NULL, out);
    }
    free(cumulative);
    free(ids);
    return result;
}

static void check_routing(const struct line *line, const struct moe_routing *drawn) {
    const struct record_case *found = line->found;
    const struct {
        const char *key;
        double drawn, found;
    } numbers[] = {
        {"valid_slots", (double)drawn->valid_slots, found->valid_slots},
        {"experts_hit", (double)drawn->experts_hit, found->experts_hit},
        {"rows_min", (double)drawn->rows_min, found->rows_min},
        {"rows_median", (double)drawn->rows_median, found->rows_median},
        {"rows_max", (double)drawn->rows_max, found->rows_max},
    };

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i].drawn != numbers[i].found)
            add(line, "%s: %g, drawn here from the seed it is %g", numbers[i].key, numbers[i].found,
                numbers[i].drawn);
}

/* --- the lines of one case ------------------------------------------------------------------- */

static bool same_samples(const struct record_case *a, const struct record_case *b) {
    return a->sample_count > 2 && a->sample_count == b->sample_count &&
           memcmp(a->samples_ns, b->samples_ns, a->sample_count * sizeof *a->samples_ns) == 0;
}

static void check_case(const struct suite *suite, const struct suite_case *wanted,
                       const struct record *record, struct findings *findings) {
    struct moe_routing drawn = {0};
    const struct record_case *first = NULL;
    size_t rounds = 0, samples = 0;
    double warmups = 0;
    bool cuda = strcmp(record->run.device.kind, "cuda") == 0;
    bool is_drawn = draw_routing(suite, &wanted->shape, &drawn) == 0;

    findings->failed |= !is_drawn;
    for (size_t i = 0; i < record->case_count; i++) {
        struct line line = {suite, wanted, &record->cases[i], cuda, findings};
        if (line.found->number != wanted->number)
            continue;
        rounds++;
        samples += line.found->sample_count;
        warmups += isnan(line.found->warmup_count) ? 0 : line.found->warmup_count;
        check_status(&line);
        check_problem(&line);
        if (!was_measured(line.found->status))
            continue;
        if (is_drawn)
            check_routing(&line, &drawn);
        check_correctness(&line);
        check_times(&line);
        if (first && same_samples(first, line.found))
            add(&line, "samples_ns: the same as in round %.0f", first->round);
        first = first ? first : line.found;
    }
    if (rounds == 0)
        findings_add(findings, "case %d (T=%lld): missing", wanted->number,
                     (long long)wanted->shape.batch_seq_len);
    else if ((double)rounds != record->run.round_count)
        findings_add(findings, "case %d: %zu lines, but round_count is %g", wanted->number, rounds,
                     record->run.round_count);
    else if (first && samples < (cuda ? samples_least_cuda : samples_least_cpu))
        findings_add(findings, "case %d: samples_ns: %zu in all rounds, %zu are needed",
                     wanted->number, samples, cuda ? samples_least_cuda : samples_least_cpu);
    else if (first && cuda && warmups < warmups_least)
        findings_add(findings, "case %d: warmup_count: %g in all rounds, %g are needed",
                     wanted->number, warmups, warmups_least);
}

/* More lines than that are too many for any suite, which check_case() tells. */
static const size_t lines_compared = 8192;

/* Each round of a case once, and no case that the suite has not. */
static void check_lines(const struct suite *suite, const struct record *record,
                        struct findings *findings) {
    for (size_t i = 0; i < record->case_count; i++) {
        const struct record_case *line = &record->cases[i];
        if (!(line->number >= 1) || line->number > (double)suite->case_count)
            findings_add(findings, "case %g: suite %s has no such case", line->number, suite->name);
        if (!(line->round >= 0) || line->round >= record->run.round_count)
            findings_add(findings, "case %g: round: %g of %g", line->number, line->round,
                         record->run.round_count);
        for (size_t j = 0; j < i && i < lines_compared; j++)
            if (record->cases[j].number == line->number && record->cases[j].round == line->round)
                findings_add(findings, "case %g: round %g is there twice", line->number,
                             line->round);
    }
}

static void check_possible(const struct record *record, struct findings *findings) {
    struct error problem = {0};
    struct summary summary;

    if (summarize_record(record, &summary, &problem) != 0) {
        findings_add(findings, "%s", problem.text);
        return;
    }
    for (size_t i = 0; i < summary.case_count; i++)
        if (summary.cases[i].status == STATUS_IMPOSSIBLE)
            findings_add(findings, "case %d: impossible: %.3f ms: %.180s", summary.cases[i].number,
                         summary.cases[i].latency_ns.median / 1e6, summary.cases[i].reason);
    summary_free(&summary);
}

void record_check(const struct suite *suite, const struct record *record,
                  struct findings *findings) {
    check_run(suite, &record->run, findings);
    check_lines(suite, record, findings);
    for (size_t i = 0; i < suite->case_count; i++)
        check_case(suite, &suite->cases[i], record, findings);
    check_possible(record, findings);
    check_end(record, findings);
}
