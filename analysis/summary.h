/* One record joined over its rounds: per case the latency with its interval, status, correctness,
 * bounds and phases. Everything a report prints of a single record stands here. */
#ifndef MOESOL_ANALYSIS_SUMMARY_H
#define MOESOL_ANALYSIS_SUMMARY_H

#include "../core/record.h"
#include "../core/stats.h"
#include "bounds.h"

/* A joint interval wider than this share of the median makes a case noisy. */
#define SUMMARY_NOISY_WIDTH 0.02

struct phase_summary {
    char name[64];
    struct stats_summary latency_ns;
    double share;        /* median over iterations of phase time / case time */
    double gap_ns;       /* idle time between the phase's own activities */
    double launch_count; /* an iteration */
    bool modelled;       /* whether the phase's work is known */
    struct moe_work work;
    double bytes_per_s, flop_per_s; /* achieved; NaN without a model, or without FLOP */
    double bound_ns;                /* its term of the `phased` bound */
    double fraction;                /* bound_ns / median */
};

struct case_summary {
    int number;
    struct moe_shape shape;
    struct moe_routing routing;
    double padded_rows;
    double atol, rtol, matched_ratio_needed, token_matched_ratio_needed;
    size_t round_count; /* rounds with samples */
    struct stats_summary latency_ns;
    enum record_status status; /* the worst of the rounds and of what the bounds say; noise is that
                                  of all rounds together */
    char reason[RECORD_TEXT];
    struct record_correctness correctness; /* the worst of the rounds */
    struct record_telemetry telemetry;     /* extremes over rounds, medians averaged */
    double event_ns, collected_event_ns, gap_ns, launch_count, idle_share; /* means over rounds */
    struct moe_work work; /* NaN if the routing is not known */
    double bound_ns[BOUND_COUNT];
    double fraction[BOUND_COUNT];
    struct phase_summary *phases;
    size_t phase_count;
};

struct summary {
    const struct record *record; /* the caller's; must outlive the summary */
    char device_short[64];       /* "H200", "cpu"; the exact name where there is no short one */
    struct roofs datasheet, measured;
    struct case_summary *cases; /* by case number */
    size_t case_count;
    bool complete; /* every case of the suite is there with a latency */
};

/* Joins a record. Returns 0, or -1 with *err; then nothing is to be freed. */
int summarize_record(const struct record *record, struct summary *summary, struct error *err);
void summary_free(struct summary *summary);

/* The case of a number; NULL: none. */
const struct case_summary *summary_find_case(const struct summary *summary, int number);

/* Width of a case's interval as a share of its median; NaN if there is none. */
double interval_width(const struct stats_summary *latency);

/* Whether a case's time may enter a mean or a ranking: measured, and correct as far as it says. */
bool case_has_latency(const struct case_summary *case_summary);

/* Inputs of a case's bounds, for bound_explain(). phases is malloc()ed for the caller (NULL if
 * there are none or memory ran out); the names point into the case. */
struct bound_phase *case_bound_inputs(const struct summary *summary,
                                      const struct case_summary *case_summary,
                                      struct bound_inputs *inputs);

/* Means over the cases that have a latency, in ns. */
struct suite_means {
    size_t case_count; /* that entered */
    double mean_ns, geomean_ns;
    double bound_mean_ns[BOUND_COUNT]; /* over the same cases */
    double fraction[BOUND_COUNT];      /* mean of the cases' fractions */
};
struct suite_means summary_means(const struct summary *summary);

/* The best of a record's variants of one roof ("dram_read", ...); NULL if none was measured. */
const struct record_ceiling *best_ceiling(const struct record_run *run, const char *what);

/* Whether the roofs come from a CPU (fp32) or a GPU (fp16_dense). */
const char *flop_ceiling_name(const struct record_run *run);

#endif
