/* Sums stamps by multiprocessor, then takes the spread over multiprocessors. */
#include "gantt.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../core/stats.h"

/* A row of numbers for each multiprocessor. */
enum { LAST_END, INPUTS, FIXED_COLUMNS };

struct sums {
    size_t columns;            /* FIXED_COLUMNS, then one a phase */
    double *of_sm;             /* [STAMP_SMS_MOST, columns] */
    bool seen[STAMP_SMS_MOST]; /* which multiprocessors have stamps */
    double *picked;            /* [STAMP_SMS_MOST] */
};

const struct record_timeline *gantt_find(const struct record *record, int number) {
    for (size_t i = 0; i < record->timeline_count; i++)
        if ((int)record->timelines[i].number == number && record->timelines[i].stamp_count > 0)
            return &record->timelines[i];
    return NULL;
}

static void add_stamps(const struct record_timeline *t, struct sums *sums, double *span_ns) {
    for (size_t i = 0; i < t->stamp_count; i++) {
        size_t sm = (size_t)t->stamp_sms[i];
        double *row = sums->of_sm + sm * sums->columns;
        double end_ns = t->stamp_start_ns[i] + t->stamp_ns[i];
        sums->seen[sm] = true;
        row[LAST_END] = fmax(row[LAST_END], end_ns);
        row[INPUTS] += t->stamp_inputs_ns[i];
        row[FIXED_COLUMNS + (size_t)t->stamp_indices[i]] += t->stamp_ns[i];
        *span_ns = fmax(*span_ns, end_ns);
    }
}

/* A column over the multiprocessors that have stamps, into sums->picked; returns how many. */
static size_t pick(struct sums *sums, size_t column) {
    size_t count = 0;
    for (size_t sm = 0; sm < STAMP_SMS_MOST; sm++)
        if (sums->seen[sm])
            sums->picked[count++] = sums->of_sm[sm * sums->columns + column];
    return count;
}

static void set_spread(const struct gantt *gantt, const double *values, size_t count,
                       struct gantt_phase *phase) {
    double sum_ns = 0;
    for (size_t i = 0; i < count; i++)
        sum_ns += values[i];
    phase->least_ns = stats_quantile(values, count, 0);
    phase->median_ns = stats_quantile(values, count, 0.5);
    phase->most_ns = stats_quantile(values, count, 1);
    phase->share = gantt->span_ns > 0 ? sum_ns / (gantt->span_ns * (double)count) : NAN;
}

static void set_phase(struct gantt *gantt, struct sums *sums, size_t p) {
    const struct record_timeline *t = gantt->timeline;
    struct gantt_phase *phase = &gantt->phases[p];
    double waited_ns = 0, all_ns = 0;
    size_t count = pick(sums, FIXED_COLUMNS + p);
    phase->name = t->stamp_phases[p].name;
    set_spread(gantt, sums->picked, count, phase);
    for (size_t i = 0; i < t->stamp_count; i++) {
        if ((size_t)t->stamp_indices[i] != p)
            continue;
        waited_ns += t->stamp_waited_ns[i];
        all_ns += t->stamp_ns[i];
        phase->tiles += t->stamp_tiles[i];
    }
    phase->waited_share = all_ns > 0 ? waited_ns / all_ns : 0;
    if (strcmp(phase->name, GANTT_START) == 0) {
        gantt->start_share += phase->share;
        return;
    }
    gantt->waited_share += phase->share * phase->waited_share;
    gantt->working_share += phase->share * (1 - phase->waited_share);
}

static void set_ends(struct gantt *gantt, struct sums *sums) {
    size_t count = pick(sums, INPUTS);
    gantt->inputs_median_ns = stats_quantile(sums->picked, count, 0.5);
    gantt->inputs_most_ns = stats_quantile(sums->picked, count, 1);
    gantt->sm_count = pick(sums, LAST_END);
    gantt->first_end_ns = stats_quantile(sums->picked, count, 0);
    gantt->median_end_ns = stats_quantile(sums->picked, count, 0.5);
    for (size_t i = 0; i < count; i++)
        sums->picked[i] = gantt->span_ns - sums->picked[i];
    gantt->tail.name = "tail";
    set_spread(gantt, sums->picked, count, &gantt->tail);
}

int gantt_build(const struct record_timeline *timeline, struct gantt *gantt) {
    struct sums *sums = calloc(1, sizeof *sums);
    int result = -1;
    memset(gantt, 0, sizeof *gantt);
    gantt->timeline = timeline;
    gantt->phase_count = timeline->stamp_phase_count;
    gantt->overhead = timeline->stamped_ns / timeline->unstamped_ns - 1;
    gantt->phases = calloc(gantt->phase_count + 1, sizeof *gantt->phases);
    if (!sums || !gantt->phases)
        goto done;
    sums->columns = FIXED_COLUMNS + gantt->phase_count;
    sums->of_sm = calloc(STAMP_SMS_MOST * sums->columns, sizeof *sums->of_sm);
    sums->picked = calloc(STAMP_SMS_MOST, sizeof *sums->picked);
    if (!sums->of_sm || !sums->picked)
        goto done;
    add_stamps(timeline, sums, &gantt->span_ns);
    set_ends(gantt, sums);
    for (size_t p = 0; p < gantt->phase_count; p++)
        set_phase(gantt, sums, p);
    gantt->unstamped_share =
        1 - gantt->working_share - gantt->waited_share - gantt->start_share - gantt->tail.share;
    result = 0;
done:
    if (sums) {
        free(sums->of_sm);
        free(sums->picked);
    }
    free(sums);
    if (result)
        gantt_free(gantt);
    return result;
}

void gantt_free(struct gantt *gantt) {
    free(gantt->phases);
    gantt->phases = NULL;
}
