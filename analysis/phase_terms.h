/* What one case's phases are made of: for each phase the time that its bytes and its operations
 * need at the measured roofs, and from its counters how long the average SM was busy and idle. The
 * waterfall and the diagnosis rules read everything from here. */
#ifndef MOESOL_ANALYSIS_PHASE_TERMS_H
#define MOESOL_ANALYSIS_PHASE_TERMS_H

#include "summary.h"

/* A phase's time is split so:
 *
 *   time = roof + idle + below + clock + what is left
 *
 * roof   the longer of its bytes and its operations at the measured roofs
 * idle   the average SM had no work: imbalance, tail wave, too few blocks
 * below  the SMs had work, but neither DRAM nor the tensor pipe was at its roof
 * clock  the SMs ran at a lower clock in the timed run than while counters were taken */
struct phase_terms {
    const struct phase_summary *phase;
    const struct record_phase_counters *counters; /* NULL: none */
    const struct record_launch *launch;           /* more than half of its kernels; NULL: none is */
    double time_ns; /* of the timed run, gaps inside the phase left out */

    double model_bytes; /* NaN: the phase has no model */
    double bytes;       /* DRAM, read and written, by counters; else model_bytes */
    double memory_ns;   /* bytes at the measured roof; 0 where not known */
    double math_ns;     /* valid FLOP at the measured roof; 0 where there are none */
    double padded_ns;   /* the same with the operations that the GEMMs do, padding included */
    bool flop_counted;  /* those are by counters; else by the rows that the kernel says */
    double tensor_ns;   /* the longer of padded_ns and the time the tensor pipe was busy */
    double roof_ns;     /* the longer of memory_ns and tensor_ns */

    double active_ns;  /* of the average SM, at the clock of the counter run; NaN: no counters */
    double sm_mhz;     /* of the counter run; NaN: no counters */
    double idle_ns;    /* NaN: neither counters nor a grid that tells */
    bool idle_by_grid; /* estimated from the launch grid */
    double below_ns;   /* NaN: no counters */
    double timed_mhz;  /* SM clock of the timed run that the times imply; NaN: no counters */
    double clock_ns;   /* NaN: a clock is not known */
    bool has_stalls;   /* the counters hold stall reasons (level full) */

    double blocks;           /* of that launch; NaN: none */
    double resident_blocks;  /* that fit the device at once; NaN: not known */
    double resident_threads; /* of those, the share of the device's threads */
};

struct case_terms {
    const struct summary *summary;
    const struct case_summary *summary_case;
    const struct record_counters *counters; /* NULL: no counters line with phases */
    char no_counters[RECORD_TEXT];          /* why */
    bool cpu;
    struct roofs roofs; /* measured; where one is not, the datasheet's; NaN: neither is known */
    bool has_stalls;    /* a phase has stall reasons */
    double pad_factor;  /* rows computed / valid rows; NaN: the kernel does not say */
    double timed_mhz;   /* SM clock of the timed run */
    bool clock_counted; /* by the SMs' cycle counters; else the median of NVML's readings */
    double least_mhz, most_mhz; /* the range in which the clock of a phase may have been */
    double highest_mhz;         /* SM clock seen in the record; infinite: none was */
    struct phase_terms *phases;
    size_t phase_count;
};

/* Returns 0, or -1 with *err; free with case_terms_free(). `summary` must outlive *terms. */
int case_terms_build(const struct summary *summary, const struct case_summary *summary_case,
                     struct case_terms *terms, struct error *err);
void case_terms_free(struct case_terms *terms);

/* A metric's value by its CUPTI name; NaN if it is not there (or `counters` is NULL). */
double metric_value(const struct record_phase_counters *counters, const char *name);

/* The next stall reason from metric *index on (start at 0): its name ("long_scoreboard") and how
 * many warps waited for it, on average, at each issue. False: no more. */
bool next_stall(const struct record_phase_counters *counters, size_t *index, char *name,
                size_t size, double *warps);

#endif
