/* The record: what one kernel did on one device. JSON Lines, append-only, one object a line: a
 * `run`, then `case`, `counters` and `timeline` lines, last an `end`. README.md, "The record",
 * lists the keys.
 *
 * A run has rounds, each a fresh process that goes through all cases, so a case has one `case` line
 * a round: a line is written, and flushed, when its case ends in its round, and a run that is cut
 * loses only the case at hand. Numbers that were not measured are NaN here and have no key in the
 * file; texts that are not known are empty here and have no key in the file.
 *
 * Ownership: record_free() frees what record_read() and the record_*_init() made. Arrays inside a
 * struct that a caller fills for the writer stay the caller's. */
#ifndef MOESOL_CORE_RECORD_H
#define MOESOL_CORE_RECORD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RECORD_SCHEMA_MAJOR 1
#define RECORD_SCHEMA_MINOR 0
#define RECORD_TEXT 256

enum record_status {
    STATUS_OK = 0,
    STATUS_NOISY,
    STATUS_THROTTLED,
    STATUS_ABOVE_ROOF,
    STATUS_WRONG,
    STATUS_CRASHED,
    STATUS_TIMEOUT,
    STATUS_UNSUPPORTED,
    STATUS_IMPOSSIBLE,
    STATUS_COUNT
};
/* "ok", "noisy", ... , the spelling of the file. */
extern const char *const record_status_names[STATUS_COUNT];

/* One measured roof: `what` is dram_read, dram_write, dram_copy, l2_read (bytes/s; a copy counts
 * bytes read and written) or fp16_dense, fp32 (FLOP/s); `variant` how it was measured. */
struct record_ceiling {
    char what[32];
    char variant[64];
    double value;
};

struct record_device {
    char kind[8]; /* "cuda" or "cpu" */
    char name[RECORD_TEXT];
    char uuid_hash[65]; /* SHA-256 of the UUID */
    char compute_capability[8];
    double sm_count; /* CPU: cores */
    double l2_bytes;
    double memory_bytes;
    char driver_version[32];
    char cuda_version[32];
    char cupti_version[32];
    double power_limit_w;
    char ecc[8]; /* "on", "off" or empty */
    char mig[8];
};

struct record_kernel {
    char name[64];
    char author[64];
    char license[64];
    char source[RECORD_TEXT];
    char source_hash[65]; /* SHA-256 of the source file as built */
    char value_type[16];
    bool ranked;
    bool library_only;
    bool plugin; /* from a shared object of its own, which source_hash is of */
};

struct record_run {
    char tool_version[32];
    char source_revision[64]; /* git commit, "-dirty" appended if the tree had changes */
    char host[RECORD_TEXT];
    char command[1024];
    char started_at[32]; /* ISO 8601, UTC */
    char suite_name[64];
    char suite_hash[65];
    double suite_case_count;
    double seed;
    char table_hash[65]; /* of the normal table, draw.h */
    char clocks_policy[64];
    char counters_level[8]; /* none, basic, full */
    double round_count;
    double samples_asked;      /* timed iterations of a case and round; NaN: the default */
    double time_limit_asked_s; /* of a case in a round; NaN: from the work */
    bool back_to_back;
    struct record_device device;
    struct record_kernel kernel;
    struct record_ceiling *ceilings;
    size_t ceiling_count;
};

/* One kind of launch inside a phase. */
struct record_launch {
    char name[RECORD_TEXT];
    double count; /* per iteration */
    double grid[3], block[3];
    double registers_per_thread;
    double shared_memory_bytes; /* static + dynamic, a block */
};

struct record_phase {
    char name[64];
    double *samples_ns; /* union of the phase's activities, one an iteration, in the order of the
                           case's samples_ns */
    size_t sample_count;
    double gap_ns; /* median idle time inside the phase, between its own activities */
    struct record_launch *launches;
    size_t launch_count;
};

struct record_correctness {
    bool checked;
    double matched_ratio;           /* of all elements */
    double token_matched_ratio_min; /* of the worst token */
    double max_abs_error, max_rel_error;
    double first_failing_token, first_failing_element; /* NaN: none failed */
    double nan_count, inf_count;                       /* where the reference is finite */
    double tokens_checked;                             /* against the device oracle */
    double reference_tokens_checked;                   /* against the CPU reference */
    double reference_matched_ratio;
};

struct record_telemetry {
    double sm_clock_mhz_min, sm_clock_mhz_median, sm_clock_mhz_max; /* as NVML reads it */
    double sm_clock_mhz_timed; /* by the SMs' cycle counters over each timed iteration; median */
    double memory_clock_mhz_median;
    double power_w_median, power_w_max;
    double temperature_c_max;
    char throttle_reasons[RECORD_TEXT]; /* comma-separated: sw_power_cap, hw_thermal, ... */
};

struct record_case {
    double number; /* 1-based in the suite */
    double round;  /* 0-based */
    double batch_seq_len, hidden_size, moe_intermediate_size, num_experts, num_experts_per_tok;
    double atol, rtol;
    double matched_ratio_needed, token_matched_ratio_needed; /* shares of elements, as the suite
                                                                asks; NaN: an older record */
    /* routing of draw 0 */
    double valid_slots, experts_hit, rows_min, rows_median, rows_max, padded_rows;
    enum record_status status;
    char reason[RECORD_TEXT]; /* empty for ok, unless its process had to be replaced */
    double *samples_ns;       /* the latency of each timed iteration */
    size_t sample_count;
    double warmup_count;
    double event_ns;           /* median of CUDA event times, collection off */
    double collected_event_ns; /* the same with collection on: the difference is its cost */
    double idle_share;         /* of the wall time between first and last iteration */
    double gap_ns;             /* median time inside the span in which nothing ran */
    double launch_count;       /* activities an iteration */
    struct record_correctness correctness;
    /* The worst of three timed iterations that were chosen in secret: which ones, from 0, and the
     * draw of their inputs (fewer iterations: the last one repeats). */
    struct record_correctness timed_correctness;
    double checked_iterations[3], checked_draws[3];
    /* The parent's clock over the timed iterations, as a share of their samples; about 1. */
    double parent_clock_ratio;
    struct record_telemetry telemetry;
    struct record_phase *phases;
    size_t phase_count;
};

struct record_metric {
    char name[96]; /* the metric's own CUPTI name */
    double value;
};

/* Counters of one phase: metrics summed or averaged over the phase's launches by CUPTI's rollup. */
struct record_phase_counters {
    char name[64];
    struct record_metric *metrics;
    size_t metric_count;
};

struct record_counters {
    double number; /* of the case */
    char level[8];
    double pass_count;
    char reason[RECORD_TEXT]; /* why there are none; empty otherwise */
    struct record_phase_counters *phases;
    size_t phase_count;
};

struct record_name {
    char name[RECORD_TEXT];
};

/* One metric over the samples of a timeline. */
struct record_series {
    char name[96]; /* the metric's own CUPTI name */
    double *values;
    size_t value_count; /* as many as there are samples */
};

/* One iteration over time. Times count from its first launch. A case has one line of source
 * `activity`, the launches of an iteration of its first round, and with --timeline one of source
 * `sampling`, an iteration of its own with the device's counters as it went. */
struct record_timeline {
    double number;            /* of the case */
    char source[16];          /* activity, sampling */
    char reason[RECORD_TEXT]; /* why there are no samples; empty otherwise */
    double span_ns;           /* first launch to last end */
    double launch_total; /* of the iteration; the line has no more than TIMELINE_LAUNCHES_MOST */
    struct record_name *phases, *kinds; /* what the launches index; kinds: names of kernels */
    size_t phase_count, kind_count;
    double *launch_phases, *launch_kinds, *launch_start_ns, *launch_ns; /* one a launch, by start */
    size_t launch_phases_count, launch_kinds_count, launch_count, launch_ns_count;
    /* Source `sampling`. The interval got is the median of what the samples span. */
    double interval_asked_ns, interval_ns;
    /* How samples and launches came onto one axis: `timestamps` of one clock; or `onset`, by the
     * first sample in which the SMs worked, which is as near as an interval. */
    char alignment[16];
    double *sample_start_ns, *sample_end_ns;
    size_t sample_count, sample_end_count;
    struct record_series *series;
    size_t series_count;
    /* Source `sampling`, of a kernel that has an instrumented build: one more iteration, its one
     * launch from the inside. Consecutive tiles of a phase on a multiprocessor are one stamp until
     * they span 1/STAMP_PARTS of the launch. Times count from the launch's first stamp. waited: of
     * the stamp's time, waiting for operands. inputs: how long copies waited for rows that other
     * blocks of the launch make, which may lie beside the tile before. */
    char stamp_reason[RECORD_TEXT];  /* why there are none although the build is there */
    double stamped_ns, unstamped_ns; /* an iteration with and without stamps, medians of */
    double stamp_runs;               /* so many each, taken in turn */
    double stamp_step_ns;            /* of the device's clock, as seen in the stamps */
    struct record_name *stamp_phases;
    size_t stamp_phase_count;
    double *stamp_sms, *stamp_indices, *stamp_tiles; /* indices: into stamp_phases */
    double *stamp_start_ns, *stamp_ns, *stamp_waited_ns, *stamp_inputs_ns;
    size_t stamp_sms_count, stamp_indices_count, stamp_tiles_count, stamp_count, stamp_ns_count,
        stamp_waited_count, stamp_inputs_count;
};
#define TIMELINE_LAUNCHES_MOST 2000
#define STAMP_PARTS 40
#define STAMP_SMS_MOST 4096

struct record_end {
    bool present;    /* false: the record was cut */
    char status[16]; /* complete, interrupted, failed */
    char finished_at[32];
};

struct record {
    char path[1024];
    struct record_run run;
    struct record_case *cases; /* in file order, one a case and round */
    size_t case_count;
    struct record_counters *counters;
    size_t counters_count;
    struct record_timeline *timelines;
    size_t timeline_count;
    struct record_end end;
    bool cut;            /* the last line was incomplete and was left out */
    size_t dropped_line; /* its number */
};

/* Set every number to NaN and every text to "". */
void record_run_init(struct record_run *run);
void record_case_init(struct record_case *record_case);
void record_counters_init(struct record_counters *counters);
void record_timeline_init(struct record_timeline *timeline);

/* Reads a whole file. Unknown keys and unknown line types are ignored (newer minor). Errors name
 * file and line number: not JSON, a wrong type, a negative time, an unknown status, a newer major,
 * no `run` line, an empty file. A last line without a newline that does not parse is dropped
 * (record->cut); everything before it stays. Returns 0 or -1; on -1 nothing is to be freed. */
int record_read(const char *path, struct record *record, struct error *err);
/* The same from memory, for tests and fuzzing; `path` is only for messages. */
int record_parse(const char *text, size_t length, const char *path, struct record *record,
                 struct error *err);
void record_free(struct record *record);

/* Each writes one whole line and flushes it to the disk's cache. Return 0, or -1 with *err (full
 * disk, closed file). */
int record_write_run(FILE *file, const struct record_run *run, struct error *err);
int record_write_case(FILE *file, const struct record_case *record_case, struct error *err);
int record_write_counters(FILE *file, const struct record_counters *counters, struct error *err);
int record_write_timeline(FILE *file, const struct record_timeline *timeline, struct error *err);
int record_write_end(FILE *file, const struct record_end *end, struct error *err);

/* One case, counters or timeline line from memory, as the worker's pipe carries them; the caller
 * frees with record_case_free(), record_counters_free() or record_timeline_free(). */
int record_parse_case(const char *line, size_t length, struct record_case *record_case,
                      struct error *err);
int record_parse_counters(const char *line, size_t length, struct record_counters *counters,
                          struct error *err);
int record_parse_timeline(const char *line, size_t length, struct record_timeline *timeline,
                          struct error *err);
void record_timeline_free(struct record_timeline *timeline);
void record_case_free(struct record_case *record_case);
void record_counters_free(struct record_counters *counters);

#ifdef __cplusplus
}
#endif
#endif
