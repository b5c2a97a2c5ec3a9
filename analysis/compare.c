/* Verdicts from samples: the interval of a ratio, from the intervals of both medians. A few rounds
 * say little about their own spread, so it is estimated from all cases and both records together.
 * Nothing is forced: what the interval does not decide is UNCLEAR. */
#include "compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare_parts.h"

const char *const verdict_names[VERDICT_COUNT] = {"UNCLEAR", "SAME", "FASTER", "SLOWER"};

/* --- verdicts --------------------------------------------------------------------------------- */

struct interval {
    double value, low, high;
};

/* Both sides are independent runs: their relative errors add as squares. */
static struct ratio ratio_of(const struct interval *a, const struct interval *b) {
    double a_down = 1 - a->low / a->value, a_up = a->high / a->value - 1;
    double b_down = 1 - b->low / b->value, b_up = b->high / b->value - 1;
    double value = b->value / a->value;

    return (struct ratio){value, value * (1 - hypot(a_up, b_down)),
                          value * (1 + hypot(a_down, b_up))};
}

/* --- the spread between rounds ---------------------------------------------------------------- */

#define ROUNDS_MOST 64

/* Sum of squares of relative deviations from the mean, and how many of them are independent. */
struct spread {
    double squares, freedom;
};

static void add_spread(const double *values, size_t count, struct spread *spread) {
    double mean = stats_mean(values, count);

    if (count < 2)
        return;
    for (size_t i = 0; i < count; i++)
        spread->squares += pow(values[i] / mean - 1, 2);
    spread->freedom += (double)count - 1;
}

/* 97.5 % quantile of Student's t, rounded up; between two rows the upper one holds. */
static double student(double freedom) {
    static const double rows[][2] = {{1, 12.71}, {2, 4.31},  {3, 3.19},  {4, 2.78},
                                     {5, 2.58},  {6, 2.45},  {8, 2.31},  {10, 2.23},
                                     {15, 2.14}, {20, 2.09}, {30, 2.05}, {60, 2.01}};
    double t = NAN;

    for (size_t i = 0; i < sizeof rows / sizeof *rows && freedom >= rows[i][0]; i++)
        t = rows[i][1];
    return t;
}

/* Half width, relative, of the mean of so many rounds; what one round hides is assumed. */
static double rounds_share(const struct spread *spread, size_t round_count) {
    if (round_count < 2 || spread->freedom < 1)
        return COMPARE_ONE_ROUND_SHARE;
    return student(spread->freedom) * sqrt(spread->squares / spread->freedom / (double)round_count);
}

/* Medians of a case's rounds; returns how many. */
static size_t round_medians(const struct record *record, int number, double *medians) {
    size_t count = 0;

    for (size_t i = 0; i < record->case_count && count < ROUNDS_MOST; i++) {
        const struct record_case *line = &record->cases[i];
        if (line->number == number && line->sample_count > 0)
            medians[count++] = stats_quantile(line->samples_ns, line->sample_count, 0.5);
    }
    return count;
}

/* At least as wide as the rounds' spread asks for; what a single round hides comes on top. */
static struct interval widen(struct interval interval, const struct spread *spread,
                             size_t round_count) {
    double half = rounds_share(spread, round_count) * interval.value;

    if (round_count < 2) {
        interval.low -= half;
        interval.high += half;
        return interval;
    }
    interval.low = fmin(interval.low, interval.value - half);
    interval.high = fmax(interval.high, interval.value + half);
    return interval;
}

/* --- judging ---------------------------------------------------------------------------------- */

enum verdict judge_ratio(const struct ratio *ratio, char *why, size_t size) {
    why[0] = '\0';
    if (ratio->high < 1 && ratio->value <= 1 - COMPARE_LEAST_SHARE)
        return VERDICT_FASTER;
    if (ratio->low > 1 && ratio->value >= 1 + COMPARE_LEAST_SHARE)
        return VERDICT_SLOWER;
    if (ratio->low >= 1 - COMPARE_SAME_SHARE && ratio->high <= 1 + COMPARE_SAME_SHARE)
        return VERDICT_SAME;
    if (isnan(ratio->value))
        snprintf(why, size, "no latency");
    else if (isnan(ratio->low) || isnan(ratio->high))
        snprintf(why, size, "too few samples for an interval");
    else
        snprintf(why, size, "the interval from %.4f to %.4f holds both; more rounds narrow it",
                 ratio->low, ratio->high);
    return VERDICT_UNCLEAR;
}

/* Why a case can have no verdict whatever its samples say; false if it can. */
static bool is_unfit(const struct case_summary *c, const char *side, char *why, size_t size) {
    if (case_has_latency(c) && c->status != STATUS_THROTTLED)
        return false;
    snprintf(why, size, "%s is %s%s%.100s", side, record_status_names[c->status],
             c->reason[0] ? ": " : "", c->reason);
    return true;
}

/* --- the suite -------------------------------------------------------------------------------- */

/* Mean over the compared cases of one round's medians; NaN if the round lacks one of them. */
static double round_mean(const struct comparison *comparison, const struct record *record,
                         double round) {
    double sum_ns = 0;

    for (size_t i = 0; i < comparison->count; i++) {
        const struct compared_case *one = &comparison->cases[i];
        double median_ns = NAN;
        if (isnan(one->ratio.value))
            continue;
        for (size_t r = 0; r < record->case_count; r++)
            if (record->cases[r].number == one->number && record->cases[r].round == round &&
                record->cases[r].sample_count > 0)
                median_ns =
                    stats_quantile(record->cases[r].samples_ns, record->cases[r].sample_count, 0.5);
        sum_ns += median_ns;
    }
    return sum_ns / (double)comparison->suite_count;
}

struct round_means {
    double values[ROUNDS_MOST];
    size_t count;
};

static struct round_means means_of_rounds(const struct comparison *comparison,
                                          const struct record *record) {
    struct round_means means = {.count = 0};

    for (double round = 0; round < ROUNDS_MOST; round++) {
        double mean_ns = round_mean(comparison, record, round);
        if (!isnan(mean_ns))
            means.values[means.count++] = mean_ns;
    }
    return means;
}

/* The cases' own intervals add as squares; a process that is slower in all its cases shows in the
 * means of the rounds, and the interval holds those too. */
static struct interval suite_interval(const struct comparison *comparison,
                                      const struct round_means *means, const struct spread *spread,
                                      bool side_b) {
    double sum_ns = 0, squares_low = 0, squares_high = 0, n = (double)comparison->suite_count;

    for (size_t i = 0; i < comparison->count; i++) {
        const struct compared_case *one = &comparison->cases[i];
        const struct stats_summary *latency = side_b ? &one->b->latency_ns : &one->a->latency_ns;
        if (isnan(one->ratio.value))
            continue;
        sum_ns += latency->median;
        squares_low += pow(latency->median - latency->low, 2);
        squares_high += pow(latency->high - latency->median, 2);
    }
    struct interval out = {sum_ns / n, (sum_ns - sqrt(squares_low)) / n,
                           (sum_ns + sqrt(squares_high)) / n};
    for (size_t r = 0; r < means->count; r++) {
        out.low = fmin(out.low, means->values[r]);
        out.high = fmax(out.high, means->values[r]);
    }
    return widen(out, spread, means->count);
}

static void join_suite(const struct summary *a, const struct summary *b, struct comparison *out) {
    struct round_means of_a = means_of_rounds(out, a->record),
                       of_b = means_of_rounds(out, b->record);
    struct spread spread = {0, 0};

    add_spread(of_a.values, of_a.count, &spread);
    add_spread(of_b.values, of_b.count, &spread);
    struct interval a_ns = suite_interval(out, &of_a, &spread, false);
    struct interval b_ns = suite_interval(out, &of_b, &spread, true);
    out->mean_a_ns = a_ns.value;
    out->mean_b_ns = b_ns.value;
    out->ratio = ratio_of(&a_ns, &b_ns);
}

static void judge_suite(const struct summary *a, const struct summary *b, struct comparison *out) {
    size_t unfit = 0;

    out->ratio = (struct ratio){NAN, NAN, NAN};
    out->mean_a_ns = out->mean_b_ns = NAN;
    for (size_t i = 0; i < out->count; i++) {
        out->suite_count += !isnan(out->cases[i].ratio.value);
        unfit += out->cases[i].a->status == STATUS_THROTTLED ||
                 out->cases[i].b->status == STATUS_THROTTLED;
        out->verdicts[out->cases[i].verdict]++;
    }
    if (out->suite_count > 0)
        join_suite(a, b, out);
    out->verdict = judge_ratio(&out->ratio, out->why, sizeof out->why);
    if (unfit > 0) {
        out->verdict = VERDICT_UNCLEAR;
        snprintf(out->why, sizeof out->why, "%zu cases were throttled", unfit);
    }
    for (size_t i = 0; i < out->count; i++) {
        if (isnan(out->cases[i].ratio.value))
            continue;
        add_parts(&out->cases[i].phases, out->suite_count, &out->phases);
        add_parts(&out->cases[i].steps, out->suite_count, &out->steps);
    }
}

/* --- cases ------------------------------------------------------------------------------------ */

static void compare_case(const struct case_diagnosis *a, const struct case_diagnosis *b,
                         const struct spread *spread, struct compared_case *out) {
    *out = (struct compared_case){.number = a->summary_case->number,
                                  .a = a->summary_case,
                                  .b = b->summary_case,
                                  .ratio = {NAN, NAN, NAN}};
    bool fit = !is_unfit(out->a, "A", out->why, sizeof out->why) &&
               !is_unfit(out->b, "B", out->why, sizeof out->why);
    if (!case_has_latency(out->a) || !case_has_latency(out->b))
        return;
    const struct stats_summary *of_a = &out->a->latency_ns, *of_b = &out->b->latency_ns;
    struct interval interval_a =
        widen((struct interval){of_a->median, of_a->low, of_a->high}, spread, out->a->round_count);
    struct interval interval_b =
        widen((struct interval){of_b->median, of_b->low, of_b->high}, spread, out->b->round_count);
    out->ratio = ratio_of(&interval_a, &interval_b);
    if (fit)
        out->verdict = judge_ratio(&out->ratio, out->why, sizeof out->why);
    compare_phases(out->a, out->b, &out->phases);
    compare_steps(&a->waterfall, &b->waterfall, &out->steps);
}

static const struct case_diagnosis *find_case(const struct diagnosis *diagnosis,
                                              const struct case_summary *wanted) {
    for (size_t i = 0; i < diagnosis->count; i++) {
        const struct case_summary *c = diagnosis->cases[i].summary_case;
        if (c->number == wanted->number && memcmp(&c->shape, &wanted->shape, sizeof c->shape) == 0)
            return &diagnosis->cases[i];
    }
    return NULL;
}

static int check_suites(const struct summary *a, const struct summary *b, struct error *err) {
    const struct record_run *of_a = &a->record->run, *of_b = &b->record->run;

    if (strcmp(of_a->suite_name, of_b->suite_name) != 0)
        return error_set(err, EXIT_USAGE,
                         "compare: records of different suites: %.60s and %.60s; compare two of "
                         "one suite",
                         of_a->suite_name, of_b->suite_name);
    if (of_a->suite_hash[0] && of_b->suite_hash[0] &&
        strcmp(of_a->suite_hash, of_b->suite_hash) != 0)
        return error_set(err, EXIT_USAGE,
                         "compare: records of different versions of suite %.60s: %.12s and "
                         "%.12s; run one of them again",
                         of_a->suite_name, of_a->suite_hash, of_b->suite_hash);
    return 0;
}

/* Over all cases that both have. */
static struct spread case_spread(const struct diagnosis *a, const struct diagnosis *b,
                                 const struct record *const records[2]) {
    struct spread spread = {0, 0};
    double medians[ROUNDS_MOST];

    for (size_t i = 0; i < a->count; i++) {
        int number = a->cases[i].summary_case->number;
        if (!find_case(b, a->cases[i].summary_case))
            continue;
        for (size_t side = 0; side < 2; side++)
            add_spread(medians, round_medians(records[side], number, medians), &spread);
    }
    return spread;
}

static int compare_cases(const struct diagnosis *a, const struct diagnosis *b,
                         const struct record *const records[2], struct comparison *out,
                         struct error *err) {
    out->cases = calloc(a->count + 1, sizeof *out->cases);
    if (!out->cases)
        return error_set(err, EXIT_FAILED, "out of memory for the comparison of %zu cases",
                         a->count);
    struct spread spread = case_spread(a, b, records);
    for (size_t i = 0; i < a->count; i++) {
        const struct case_diagnosis *other = find_case(b, a->cases[i].summary_case);
        if (other)
            compare_case(&a->cases[i], other, &spread, &out->cases[out->count++]);
    }
    out->only_a = a->count - out->count;
    out->only_b = b->count - out->count;
    if (out->count == 0)
        return error_set(err, EXIT_USAGE, "compare: the records have no case in common");
    return 0;
}

int compare_summaries(const struct summary *a, const struct summary *b, struct comparison *out,
                      struct error *err) {
    const struct record *const records[2] = {a->record, b->record};
    struct diagnosis of_a = {0}, of_b = {0};
    int result = -1;

    memset(out, 0, sizeof *out);
    if (check_suites(a, b, err) != 0 || diagnose_summary(a, &of_a, err) != 0 ||
        diagnose_summary(b, &of_b, err) != 0 || compare_cases(&of_a, &of_b, records, out, err) != 0)
        goto done;
    judge_suite(a, b, out);
    result = 0;
done:
    diagnosis_free(&of_a);
    diagnosis_free(&of_b);
    if (result != 0)
        comparison_free(out);
    return result;
}

void comparison_free(struct comparison *comparison) {
    free(comparison->cases);
    memset(comparison, 0, sizeof *comparison);
}
