/* What an entry's numbers are, and whether it may be ranked: all cases present, correct, possible,
 * of this very suite, by a kernel that is ranked. */
#include "board_entry.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "score.h"

static void __attribute__((format(printf, 2, 3)))
refuse(struct board_entry *entry, const char *format, ...) {
    va_list arguments;

    if (entry->why[0])
        return;
    va_start(arguments, format);
    vsnprintf(entry->why, sizeof entry->why, format, arguments);
    va_end(arguments);
}

static int init_cases(const struct suite *suite, const struct baseline *baseline,
                      struct board_entry *entry, struct error *err) {
    entry->cases = calloc(suite->case_count + 1, sizeof *entry->cases);
    if (!entry->cases)
        return error_set(err, EXIT_FAILED, "out of memory for a leaderboard entry");
    for (size_t i = 0; i < suite->case_count; i++)
        entry->cases[i] =
            (struct board_case){.number = suite->cases[i].number,
                                .batch_seq_len = (double)suite->cases[i].shape.batch_seq_len,
                                .latency_ms = NAN,
                                .t_sol_ms = NAN,
                                .t_baseline_ms = baseline->t_ms[i],
                                .sol_fraction = NAN,
                                .sol_score = NAN};
    return 0;
}

static bool same_shape(const struct moe_shape *a, const struct moe_shape *b) {
    return a->batch_seq_len == b->batch_seq_len && a->hidden_size == b->hidden_size &&
           a->moe_intermediate_size == b->moe_intermediate_size &&
           a->num_experts == b->num_experts && a->num_experts_per_tok == b->num_experts_per_tok;
}

static void judge_case(const struct suite *suite, const struct suite_case *wanted,
                       const struct case_summary *found, struct board_entry *entry) {
    const struct record_correctness *correctness = &found->correctness;

    if (!same_shape(&wanted->shape, &found->shape))
        refuse(entry, "case %d has not the suite's shape", wanted->number);
    if (!case_has_latency(found))
        refuse(entry, "case %d: %s", wanted->number, record_status_names[found->status]);
    if (!correctness->checked)
        refuse(entry, "case %d: output not checked", wanted->number);
    else if (!(correctness->matched_ratio >= wanted->matched_ratio) ||
             !(correctness->token_matched_ratio_min >= suite->token_matched_ratio))
        refuse(entry, "case %d: output outside the tolerance", wanted->number);
}

static void fill_case(const struct case_summary *found, enum bound_kind bound,
                      struct board_case *out) {
    out->t_sol_ms = found->bound_ns[bound] / 1e6;
    if (!(found->latency_ns.median > 0))
        return;
    out->latency_ms = found->latency_ns.median / 1e6;
    out->sol_fraction = sol_fraction(out->latency_ms, out->t_sol_ms);
    out->sol_score = sol_score(out->latency_ms, out->t_sol_ms, out->t_baseline_ms);
}

/* Means over all cases of the suite: NaN as soon as one is not known. */
static void fill_means(size_t count, struct board_entry *entry) {
    double sum = 0, log_sum = 0, fraction_sum = 0, score_sum = 0;

    for (size_t i = 0; i < count; i++) {
        sum += entry->cases[i].latency_ms;
        log_sum += log(entry->cases[i].latency_ms);
        fraction_sum += entry->cases[i].sol_fraction;
        score_sum += entry->cases[i].sol_score;
    }
    entry->mean_latency_ms = count > 0 ? sum / (double)count : NAN;
    entry->geomean_latency_ms = count > 0 ? exp(log_sum / (double)count) : NAN;
    entry->sol_fraction = count > 0 ? fraction_sum / (double)count : NAN;
    entry->sol_score = count > 0 ? score_sum / (double)count : NAN;
}

static void fill_names(const struct record_run *run, struct board_entry *entry) {
    snprintf(entry->name, sizeof entry->name, "%s", run->kernel.author);
    snprintf(entry->author, sizeof entry->author, "%s", run->kernel.author);
    snprintf(entry->kernel, sizeof entry->kernel, "%s", run->kernel.name);
    snprintf(entry->date, sizeof entry->date, "%.10s", run->started_at);
    snprintf(entry->license, sizeof entry->license, "%s", run->kernel.license);
    snprintf(entry->source, sizeof entry->source, "%s", run->kernel.source);
    snprintf(entry->device_name, sizeof entry->device_name, "%s", run->device.name);
}

/* Only like with like: another type has another speed of light. */
static void judge_kernel(const struct record_kernel *kernel, struct board_entry *entry) {
    if (kernel->value_type[0] && strcmp(kernel->value_type, "fp16") != 0)
        refuse(entry, "its GEMM operands are %s, not fp16", kernel->value_type);
    if (!kernel->ranked)
        refuse(entry, "the kernel is not ranked");
}

int board_entry_from_summary(const struct suite *suite, const struct baseline *baseline,
                             enum bound_kind bound, const struct summary *summary,
                             struct board_entry *entry, struct error *err) {
    const struct record_run *run = &summary->record->run;
    enum record_status worst = STATUS_OK;
    size_t missing = 0;

    memset(entry, 0, sizeof *entry);
    entry->ratio_to_best = NAN;
    if (init_cases(suite, baseline, entry, err) != 0)
        return -1;
    fill_names(run, entry);
    judge_kernel(&run->kernel, entry);
    if (strcmp(run->suite_hash, suite->hash) != 0)
        refuse(entry, "measured with another version of the suite");
    if (run->back_to_back)
        refuse(entry, "measured back to back, not cold");
    for (size_t i = 0; i < suite->case_count; i++) {
        const struct case_summary *found = summary_find_case(summary, suite->cases[i].number);
        missing += found == NULL;
        if (!found)
            continue;
        judge_case(suite, &suite->cases[i], found, entry);
        fill_case(found, bound, &entry->cases[i]);
        worst = found->status > worst ? found->status : worst;
    }
    if (missing > 0)
        refuse(entry, "%zu of %zu cases missing", missing, suite->case_count);
    fill_means(suite->case_count, entry);
    if (worst == STATUS_OK)
        snprintf(entry->status, sizeof entry->status, missing > 0 ? "incomplete" : "measured");
    else
        snprintf(entry->status, sizeof entry->status, "%s", record_status_names[worst]);
    if (worst == STATUS_IMPOSSIBLE) /* what lies below a bound has no share of it */
        entry->sol_fraction = entry->sol_score = NAN;
    return 0;
}

/* --- published entries ----------------------------------------------------------------------- */

static void judge_published(const struct suite *suite, const struct entry *published,
                            struct board_entry *entry) {
    if (published->status >= ENTRY_WITHDRAWN)
        refuse(entry, "%s: %.120s", entry_status_names[published->status], published->reason);
    judge_kernel(&published->kernel, entry);
    if (strcmp(published->suite_hash, suite->hash) != 0)
        refuse(entry, "measured with another version of the suite");
}

static void fill_published_case(const struct entry_case *found, struct board_case *out,
                                struct board_entry *entry) {
    out->latency_ms = found->latency_ms;
    out->t_sol_ms = found->t_sol_ms;
    out->sol_fraction = sol_fraction(out->latency_ms, out->t_sol_ms);
    out->sol_score = sol_score(out->latency_ms, out->t_sol_ms, out->t_baseline_ms);
    if (found->batch_seq_len != out->batch_seq_len)
        refuse(entry, "case %d has not the suite's shape", out->number);
    if (found->status > STATUS_ABOVE_ROOF)
        refuse(entry, "case %d: %s", out->number, record_status_names[found->status]);
    if (!(found->latency_ms > 0) || found->latency_ms < found->t_sol_ms)
        refuse(entry, "case %d: impossible: faster than the datasheet bound", out->number);
}

int board_entry_from_published(const struct suite *suite, const struct baseline *baseline,
                               const struct entry *published, struct board_entry *entry,
                               struct error *err) {
    enum record_status worst = STATUS_OK;
    size_t missing = 0;

    memset(entry, 0, sizeof *entry);
    entry->ratio_to_best = NAN;
    if (init_cases(suite, baseline, entry, err) != 0)
        return -1;
    snprintf(entry->name, sizeof entry->name, "%s", published->name);
    snprintf(entry->author, sizeof entry->author, "%s", published->author);
    snprintf(entry->kernel, sizeof entry->kernel, "%s", published->kernel.name);
    snprintf(entry->date, sizeof entry->date, "%s", published->date);
    snprintf(entry->license, sizeof entry->license, "%s", published->license);
    snprintf(entry->source, sizeof entry->source, "%s", published->source);
    snprintf(entry->device_name, sizeof entry->device_name, "%s", published->device.name);
    snprintf(entry->note, sizeof entry->note, "%s", published->note);
    judge_published(suite, published, entry);
    for (size_t i = 0; i < suite->case_count; i++) {
        const struct entry_case *found = entry_find_case(published, suite->cases[i].number);
        missing += found == NULL;
        if (!found)
            continue;
        fill_published_case(found, &entry->cases[i], entry);
        worst = found->status > worst ? found->status : worst;
    }
    if (missing > 0)
        refuse(entry, "%zu of %zu cases missing", missing, suite->case_count);
    fill_means(suite->case_count, entry);
    snprintf(entry->status, sizeof entry->status, "%s%s%s", entry_status_names[published->status],
             worst == STATUS_OK ? "" : ", ", worst == STATUS_OK ? "" : record_status_names[worst]);
    return 0;
}

/* --- reported rows --------------------------------------------------------------------------- */

/* "none" and "unknown" are how a reported row says that it does not know. */
static void copy_known(char *out, size_t size, const char *text) {
    bool known = strcmp(text, "none") != 0 && strcmp(text, "unknown") != 0;
    snprintf(out, size, "%s", known ? text : "");
}

int board_entry_from_reported(const struct suite *suite, const struct baseline *baseline,
                              const struct reported_row *row, struct board_entry *entry,
                              struct error *err) {
    memset(entry, 0, sizeof *entry);
    if (init_cases(suite, baseline, entry, err) != 0)
        return -1;
    for (size_t i = 0; i < suite->case_count; i++) {
        struct bound_inputs inputs = {.shape = suite->cases[i].shape};
        entry->cases[i].t_sol_ms = bounds[BOUND_PUBLISHED].t_sol_ns(&inputs) / 1e6;
    }
    entry->reported = true;
    entry->mean_latency_ms = row->latency_ms;
    entry->geomean_latency_ms = entry->sol_fraction = NAN;
    entry->ratio_to_best = row->ratio;
    entry->sol_score = row->score;
    snprintf(entry->status, sizeof entry->status, "%s", row->status);
    snprintf(entry->date, sizeof entry->date, "%s", row->date);
    copy_known(entry->license, sizeof entry->license, row->license);
    copy_known(entry->source, sizeof entry->source, row->source);
    snprintf(entry->note, sizeof entry->note, "%s", row->note);
    snprintf(entry->latency_text, sizeof entry->latency_text, "%s", row->mean_latency_ms);
    snprintf(entry->score_text, sizeof entry->score_text, "%s", row->sol_percent);
    snprintf(entry->ratio_text, sizeof entry->ratio_text, "%s", row->ratio_to_best);
    return 0;
}
