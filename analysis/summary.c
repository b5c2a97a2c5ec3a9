/* Joins the `case` lines of a record's rounds by case number, and sets each case against the
 * bounds. */
#include "summary.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "../cases/devices.h"
#include "phases.h"
#include "sanity.h"
#include "score.h"

const struct record_ceiling *best_ceiling(const struct record_run *run, const char *what) {
    const struct record_ceiling *best = NULL;

    for (size_t i = 0; i < run->ceiling_count; i++) {
        const struct record_ceiling *ceiling = &run->ceilings[i];
        if (strcmp(ceiling->what, what) == 0 && ceiling->value > 0 &&
            (!best || ceiling->value > best->value))
            best = ceiling;
    }
    return best;
}

const char *flop_ceiling_name(const struct record_run *run) {
    return strcmp(run->device.kind, "cpu") == 0 ? "fp32" : "fp16_dense";
}

static struct roofs measured_roofs(const struct record_run *run) {
    const struct record_ceiling *read = best_ceiling(run, "dram_read");
    const struct record_ceiling *flop = best_ceiling(run, flop_ceiling_name(run));

    return (struct roofs){read ? read->value : NAN, flop ? flop->value : NAN};
}

const struct case_summary *summary_find_case(const struct summary *summary, int number) {
    for (size_t i = 0; i < summary->case_count; i++)
        if (summary->cases[i].number == number)
            return &summary->cases[i];
    return NULL;
}

double interval_width(const struct stats_summary *latency) {
    return latency->median > 0 ? (latency->high - latency->low) / latency->median : NAN;
}

bool case_has_latency(const struct case_summary *case_summary) {
    switch (case_summary->status) {
    case STATUS_OK:
    case STATUS_NOISY:
    case STATUS_THROTTLED:
    case STATUS_ABOVE_ROOF:
        return case_summary->latency_ns.median > 0;
    default:
        return false;
    }
}

static bool whole_number(double value, double least) {
    return value >= least && value < 9e15 && value == floor(value);
}

/* Shape and routing of a case line; false where the line lacks them. */
static bool read_problem(const struct record_case *line, struct case_summary *out) {
    if (!whole_number(line->batch_seq_len, 1) || !whole_number(line->hidden_size, 1) ||
        !whole_number(line->moe_intermediate_size, 1) || !whole_number(line->num_experts, 1) ||
        !whole_number(line->num_experts_per_tok, 1))
        return false;
    out->shape = (struct moe_shape){(int64_t)line->batch_seq_len, (int64_t)line->hidden_size,
                                    (int64_t)line->moe_intermediate_size,
                                    (int64_t)line->num_experts, (int64_t)line->num_experts_per_tok};
    if (!whole_number(line->valid_slots, 0) || !whole_number(line->experts_hit, 0))
        return false;
    out->routing.valid_slots = (int64_t)line->valid_slots;
    out->routing.experts_hit = (int64_t)line->experts_hit;
    out->routing.rows_min = isnan(line->rows_min) ? -1 : (int64_t)line->rows_min;
    out->routing.rows_median = isnan(line->rows_median) ? -1 : (int64_t)line->rows_median;
    out->routing.rows_max = isnan(line->rows_max) ? -1 : (int64_t)line->rows_max;
    return true;
}

static void raise_status(struct case_summary *out, enum record_status status, const char *reason) {
    if (status < out->status || (status == out->status && out->reason[0]))
        return;
    out->status = status;
    snprintf(out->reason, sizeof out->reason, "%s", reason);
}

static double larger(double a, double b) { return isnan(a) || b > a ? b : a; }
static double smaller(double a, double b) { return isnan(a) || b < a ? b : a; }

static void join_correctness(const struct record_correctness *round,
                             struct record_correctness *out) {
    if (!round->checked)
        return;
    out->checked = true;
    out->matched_ratio = smaller(out->matched_ratio, round->matched_ratio);
    out->token_matched_ratio_min =
        smaller(out->token_matched_ratio_min, round->token_matched_ratio_min);
    out->max_abs_error = larger(out->max_abs_error, round->max_abs_error);
    out->max_rel_error = larger(out->max_rel_error, round->max_rel_error);
    if (isnan(out->first_failing_token)) {
        out->first_failing_token = round->first_failing_token;
        out->first_failing_element = round->first_failing_element;
    }
    out->nan_count = larger(out->nan_count, round->nan_count);
    out->inf_count = larger(out->inf_count, round->inf_count);
    out->tokens_checked = smaller(out->tokens_checked, round->tokens_checked);
    out->reference_tokens_checked =
        smaller(out->reference_tokens_checked, round->reference_tokens_checked);
    out->reference_matched_ratio =
        smaller(out->reference_matched_ratio, round->reference_matched_ratio);
}

/* Adds each of a comma-separated list's words that is not there yet. */
static void join_reasons(const char *reasons, char *out, size_t size) {
    char copy[RECORD_TEXT], *rest = copy;

    snprintf(copy, sizeof copy, "%s", reasons);
    for (char *word; (word = strsep(&rest, ","));) {
        size_t used = strlen(out);
        if (*word == '\0' || strstr(out, word) || used + strlen(word) + 2 > size)
            continue;
        snprintf(out + used, size - used, "%s%s", used > 0 ? "," : "", word);
    }
}

static void join_telemetry(const struct record_telemetry *round, struct record_telemetry *out) {
    out->sm_clock_mhz_min = smaller(out->sm_clock_mhz_min, round->sm_clock_mhz_min);
    out->sm_clock_mhz_max = larger(out->sm_clock_mhz_max, round->sm_clock_mhz_max);
    out->power_w_max = larger(out->power_w_max, round->power_w_max);
    out->temperature_c_max = larger(out->temperature_c_max, round->temperature_c_max);
    join_reasons(round->throttle_reasons, out->throttle_reasons, sizeof out->throttle_reasons);
}

static double member(const struct record_case *round, size_t offset) {
    double value;
    memcpy(&value, (const char *)round + offset, sizeof value);
    return value;
}

/* Mean over the rounds of the member at `offset`, those without it left out. */
static double mean_of(const struct record_case *const *rounds, size_t count, size_t offset) {
    double sum = 0;
    size_t used = 0;

    for (size_t r = 0; r < count; r++) {
        double value = member(rounds[r], offset);
        if (isnan(value))
            continue;
        sum += value;
        used++;
    }
    return used > 0 ? sum / (double)used : NAN;
}

/* The same of times: a median, as the latency that they are held against is one, and a round that
 * was disturbed must not weigh more here than there. */
static double median_of(const struct record_case *const *rounds, size_t count, size_t offset) {
    double *values = malloc((count + 1) * sizeof *values);
    size_t used = 0;

    if (!values)
        return NAN;
    for (size_t r = 0; r < count; r++)
        if (!isnan(member(rounds[r], offset)))
            values[used++] = member(rounds[r], offset);
    double median = stats_quantile(values, used, 0.5);
    free(values);
    return median;
}

static void join_means(const struct record_case *const *rounds, size_t count,
                       struct case_summary *out) {
    out->event_ns = median_of(rounds, count, offsetof(struct record_case, event_ns));
    out->collected_event_ns =
        median_of(rounds, count, offsetof(struct record_case, collected_event_ns));
    out->gap_ns = median_of(rounds, count, offsetof(struct record_case, gap_ns));
    out->launch_count = mean_of(rounds, count, offsetof(struct record_case, launch_count));
    out->idle_share = mean_of(rounds, count, offsetof(struct record_case, idle_share));
    out->telemetry.sm_clock_mhz_median =
        mean_of(rounds, count, offsetof(struct record_case, telemetry.sm_clock_mhz_median));
    out->telemetry.sm_clock_mhz_timed =
        mean_of(rounds, count, offsetof(struct record_case, telemetry.sm_clock_mhz_timed));
    out->telemetry.memory_clock_mhz_median =
        mean_of(rounds, count, offsetof(struct record_case, telemetry.memory_clock_mhz_median));
    out->telemetry.power_w_median =
        mean_of(rounds, count, offsetof(struct record_case, telemetry.power_w_median));
}

static int join_samples(const struct record_case *const *rounds, size_t count,
                        struct case_summary *out, struct error *err) {
    const double **samples = calloc(count, sizeof *samples);
    size_t *counts = calloc(count, sizeof *counts);
    int result = -1;

    if (!samples || !counts) {
        error_set(err, EXIT_FAILED, "out of memory for the samples of a case");
        goto done;
    }
    for (size_t r = 0; r < count; r++) {
        if (rounds[r]->sample_count == 0)
            continue;
        samples[out->round_count] = rounds[r]->samples_ns;
        counts[out->round_count++] = rounds[r]->sample_count;
    }
    struct stats_rounds joined = {(const double *const *)samples, counts, out->round_count};
    out->latency_ns = stats_summarize(&joined);
    result = 0;
done:
    free(samples);
    free(counts);
    return result;
}

struct bound_phase *case_bound_inputs(const struct summary *summary,
                                      const struct case_summary *case_summary,
                                      struct bound_inputs *inputs) {
    struct bound_phase *phases = NULL;

    *inputs = (struct bound_inputs){.shape = case_summary->shape,
                                    .work = case_summary->work,
                                    .datasheet = summary->datasheet,
                                    .measured = summary->measured};
    if (case_summary->phase_count > 0)
        phases = calloc(case_summary->phase_count, sizeof *phases);
    for (size_t i = 0; phases && i < case_summary->phase_count; i++) {
        const struct phase_summary *phase = &case_summary->phases[i];
        if (phase->modelled)
            phases[inputs->phase_count++] = (struct bound_phase){phase->name, phase->work};
    }
    inputs->phases = phases;
    return phases;
}

static void bind_case(const struct summary *summary, struct case_summary *out) {
    struct bound_inputs inputs;
    struct bound_phase *phases = case_bound_inputs(summary, out, &inputs);

    for (int kind = 0; kind < BOUND_COUNT; kind++) {
        out->bound_ns[kind] = out->shape.batch_seq_len > 0 ? bounds[kind].t_sol_ns(&inputs) : NAN;
        out->fraction[kind] = sol_fraction(out->latency_ns.median, out->bound_ns[kind]);
    }
    free(phases);
    /* The source's model is of a GPU; beside a CPU's times it would only mislead. */
    if (strcmp(summary->record->run.device.kind, "cpu") == 0)
        out->bound_ns[BOUND_PUBLISHED] = out->fraction[BOUND_PUBLISHED] = NAN;
}

/* What only the joined figures can say. */
static void judge_case(struct case_summary *out) {
    double median_ns = out->latency_ns.median;

    if (median_ns < out->bound_ns[BOUND_DATASHEET])
        raise_status(out, STATUS_IMPOSSIBLE, "faster than the datasheet bound");
    else if (median_ns < out->bound_ns[BOUND_MEASURED])
        raise_status(out, STATUS_ABOVE_ROOF, "faster than the measured roofs allow");
    char reason[RECORD_TEXT];
    size_t count = out->latency_ns.count;
    double width = interval_width(&out->latency_ns);
    snprintf(reason, sizeof reason,
             "the interval over all rounds is %.1f %% wide (%.0f %% is quiet)", 100 * width,
             100 * SUMMARY_NOISY_WIDTH);
    if (width > SUMMARY_NOISY_WIDTH)
        raise_status(out, STATUS_NOISY, reason);
    snprintf(reason, sizeof reason, "%zu samples are too few for an interval; %d are needed", count,
             STATS_INTERVAL_SAMPLES);
    if (count > 0 && count < STATS_INTERVAL_SAMPLES)
        raise_status(out, STATUS_NOISY, reason);
}

static void init_case(struct case_summary *out, const struct record_case *first) {
    struct record_case empty;

    record_case_init(&empty);
    memset(out, 0, sizeof *out);
    out->number = (int)first->number;
    out->correctness = empty.correctness;
    out->telemetry = empty.telemetry;
    out->padded_rows = first->padded_rows;
    out->atol = first->atol;
    out->rtol = first->rtol;
    out->matched_ratio_needed = first->matched_ratio_needed;
    out->token_matched_ratio_needed = first->token_matched_ratio_needed;
    out->work = (struct moe_work){NAN, NAN};
    if (read_problem(first, out))
        out->work = moe_case_work(&out->shape, &out->routing);
}

/* Lines that are joined must be of one problem, and each of a round of its own. */
static int check_rounds(const struct record_case *const *rounds, size_t count, const char *path,
                        struct error *err) {
    const struct record_case *a = rounds[0];
    for (size_t r = 1; r < count; r++) {
        const struct record_case *b = rounds[r];
        if (b->round == rounds[r - 1]->round)
            return error_set(err, EXIT_USAGE, "%.250s: case %g stands twice in round %g", path,
                             b->number, b->round);
        if (a->batch_seq_len != b->batch_seq_len || a->hidden_size != b->hidden_size ||
            a->moe_intermediate_size != b->moe_intermediate_size ||
            a->num_experts != b->num_experts || a->num_experts_per_tok != b->num_experts_per_tok)
            return error_set(err, EXIT_USAGE,
                             "%.250s: case %g has another shape in round %g than in round %g", path,
                             b->number, b->round, a->round);
    }
    return 0;
}

static int join_case(const struct record_case *const *rounds, size_t count,
                     const struct summary *summary, struct case_summary *out, struct error *err) {
    if (check_rounds(rounds, count, summary->record->path, err) != 0)
        return -1;
    init_case(out, rounds[0]);
    for (size_t r = 0; r < count; r++) {
        /* Noise is judged by the samples of all rounds together. */
        if (rounds[r]->status != STATUS_NOISY)
            raise_status(out, rounds[r]->status, rounds[r]->reason);
        join_correctness(&rounds[r]->correctness, &out->correctness);
        join_telemetry(&rounds[r]->telemetry, &out->telemetry);
    }
    join_means(rounds, count, out);
    if (join_samples(rounds, count, out, err) != 0 ||
        join_phases(rounds, count, &summary->measured, out, err) != 0)
        return -1;
    bind_case(summary, out);
    char reason[RECORD_TEXT];
    enum record_status sane = sanity_status(rounds, count, summary, out, reason, sizeof reason);
    if (sane != STATUS_OK)
        raise_status(out, sane, reason);
    judge_case(out);
    return 0;
}

static int by_number_then_round(const void *a, const void *b) {
    const struct record_case *left = *(const struct record_case *const *)a;
    const struct record_case *right = *(const struct record_case *const *)b;

    if (left->number != right->number)
        return left->number < right->number ? -1 : 1;
    if (left->round != right->round)
        return left->round < right->round ? -1 : 1;
    return left < right ? -1 : left > right;
}

static int join_cases(const struct record *record, struct summary *summary, struct error *err) {
    size_t count = record->case_count;
    const struct record_case **lines = calloc(count + 1, sizeof *lines);
    int result = -1;

    summary->cases = calloc(count + 1, sizeof *summary->cases);
    if (!lines || !summary->cases) {
        error_set(err, EXIT_FAILED, "out of memory for %zu case lines", count);
        goto done;
    }
    for (size_t i = 0; i < count; i++)
        lines[i] = &record->cases[i];
    qsort(lines, count, sizeof *lines, by_number_then_round);
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i; end < count && lines[end]->number == lines[i]->number;)
            end++;
        struct case_summary *out = &summary->cases[summary->case_count++];
        if (join_case(lines + i, end - i, summary, out, err) != 0)
            goto done;
    }
    result = 0;
done:
    free(lines);
    return result;
}

/* The datasheet's roofs are fp16 tensor rates; a CPU has none. */
static void find_device(const struct record_run *run, struct summary *summary) {
    const struct device_row *row = device_find(&run->device);

    summary->datasheet = (struct roofs){NAN, NAN};
    if (row)
        summary->datasheet = (struct roofs){row->bytes_per_s, row->flop_per_s};
    snprintf(summary->device_short, sizeof summary->device_short, "%s",
             device_short_name(&run->device));
}

int summarize_record(const struct record *record, struct summary *summary, struct error *err) {
    memset(summary, 0, sizeof *summary);
    summary->record = record;
    summary->measured = measured_roofs(&record->run);
    find_device(&record->run, summary);
    if (join_cases(record, summary, err) != 0) {
        summary_free(summary);
        return -1;
    }
    size_t with_latency = 0;
    for (size_t i = 0; i < summary->case_count; i++)
        with_latency += case_has_latency(&summary->cases[i]);
    summary->complete = with_latency > 0 && (double)with_latency == record->run.suite_case_count;
    return 0;
}

void summary_free(struct summary *summary) {
    for (size_t i = 0; summary->cases && i < summary->case_count; i++)
        free(summary->cases[i].phases);
    free(summary->cases);
    memset(summary, 0, sizeof *summary);
}

struct suite_means summary_means(const struct summary *summary) {
    struct suite_means means = {.mean_ns = NAN, .geomean_ns = NAN};
    double sum = 0, log_sum = 0, bound_sum[BOUND_COUNT] = {0}, fraction_sum[BOUND_COUNT] = {0};

    for (size_t i = 0; i < summary->case_count; i++) {
        const struct case_summary *c = &summary->cases[i];
        if (!case_has_latency(c))
            continue;
        means.case_count++;
        sum += c->latency_ns.median;
        log_sum += log(c->latency_ns.median);
        for (int kind = 0; kind < BOUND_COUNT; kind++) {
            bound_sum[kind] += c->bound_ns[kind];
            fraction_sum[kind] += c->fraction[kind];
        }
    }
    double n = (double)means.case_count;
    if (means.case_count > 0) {
        means.mean_ns = sum / n;
        means.geomean_ns = exp(log_sum / n);
    }
    for (int kind = 0; kind < BOUND_COUNT; kind++) {
        means.bound_mean_ns[kind] = means.case_count > 0 ? bound_sum[kind] / n : NAN;
        means.fraction[kind] = means.case_count > 0 ? fraction_sum[kind] / n : NAN;
    }
    return means;
}
