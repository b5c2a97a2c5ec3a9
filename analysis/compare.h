/* Two records of one suite against each other: a verdict for each case and for the suite, from the
 * samples; and which phase and which step of the waterfall made the difference. B is judged against
 * A: FASTER means that B takes less time. */
#ifndef MOESOL_ANALYSIS_COMPARE_H
#define MOESOL_ANALYSIS_COMPARE_H

#include "diagnosis.h"

/* A difference of the medians below this share is none that matters: no FASTER, no SLOWER. */
#define COMPARE_LEAST_SHARE 0.005
/* SAME: the whole interval of the ratio lies within 1 +- this. */
#define COMPARE_SAME_SHARE 0.01
/* What fresh processes add to the interval of a record with one round, which cannot show it. */
#define COMPARE_ONE_ROUND_SHARE 0.01
#define COMPARE_PARTS 32
#define COMPARE_TEXT 192

enum verdict { VERDICT_UNCLEAR = 0, VERDICT_SAME, VERDICT_FASTER, VERDICT_SLOWER, VERDICT_COUNT };
extern const char *const verdict_names[VERDICT_COUNT]; /* "UNCLEAR", ... */

/* B's time over A's, with its 95 % interval. */
struct ratio {
    double value, low, high;
};

/* A part of both times: a phase (or phases that the two kernels cut differently), or a step. */
struct compared_part {
    char name[96];
    double a_ns, b_ns; /* NaN: not known on that side */
    double difference_ns;
};

/* Parts of one time: they sum to its difference. */
struct compared_parts {
    struct compared_part list[COMPARE_PARTS];
    size_t count;
};

struct compared_case {
    int number;
    const struct case_summary *a, *b;
    struct ratio ratio; /* NaN where a side has no latency */
    enum verdict verdict;
    char why[COMPARE_TEXT];       /* of UNCLEAR; empty otherwise */
    struct compared_parts phases; /* with the idle time between launches, and the rest */
    struct compared_parts steps;  /* with the bound itself */
};

struct comparison {
    struct compared_case *cases; /* those that are in both records */
    size_t count;
    size_t only_a, only_b; /* cases in one record only */
    size_t suite_count;    /* cases with a latency in both: the suite's figures are over these */
    double mean_a_ns, mean_b_ns;
    struct ratio ratio; /* of the means */
    enum verdict verdict;
    char why[COMPARE_TEXT];
    struct compared_parts phases, steps; /* means */
    size_t verdicts[VERDICT_COUNT];      /* how many cases have each */
};

/* Returns 0, or -1 with *err (different suites, no case in common): then nothing is to be freed.
 * The summaries must outlive *out. */
int compare_summaries(const struct summary *a, const struct summary *b, struct comparison *out,
                      struct error *err);
void comparison_free(struct comparison *comparison);

/* The verdict on a ratio; `why` (size bytes) says what is missing where it is UNCLEAR. */
enum verdict judge_ratio(const struct ratio *ratio, char *why, size_t size);

/* The part with the largest difference of the total's sign; NULL if there is none. */
const struct compared_part *decisive_part(const struct compared_parts *parts, double total_ns);

#endif
