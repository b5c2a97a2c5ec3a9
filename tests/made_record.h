/* Makes records of a simulated kernel, for tests of the analysis: what each phase moves and
 * computes and how well is given, times and counters follow from that. Written and read like real
 * ones. */
#ifndef MOESOL_TESTS_MADE_RECORD_H
#define MOESOL_TESTS_MADE_RECORD_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../cases/case.h"
#include "../core/record.h"

#define MADE_BYTES_PER_S 4.58e12
#define MADE_FLOP_PER_S 7.2e14
#define MADE_SMS 132
#define MADE_SAMPLES 31
#define MADE_PHASES 8
/* A range of the counter run holds this much more than its launches. */
#define MADE_RANGE_NS 9000

struct made {
    /* The problem: E 256, K 8, H 8192, I 2048. */
    double tokens;
    double rows_max;
    /* The kernel. */
    const char *phases[MADE_PHASES]; /* NULL-terminated; default: the six of the model */
    double bytes_factor;             /* DRAM bytes of gate_up and down over their model's */
    double pad_factor;               /* rows computed / valid; NaN: not said */
    double done_factor;              /* operations counted / valid */
    double mma_factor;               /* tensor pipe's time over that of its rows at the roof */
    double reached;                  /* share of its roof that a phase reaches while its SMs work */
    double idle_share;               /* of gate_up and down in which the average SM has no work */
    double gap_ns;
    double launches;
    double blocks;         /* of gate_up and down */
    double warps_percent;  /* active */
    bool mma_sync;         /* no wgmma, so that nothing waits for it */
    double spilled_bytes;  /* of gate_up */
    const char *top_stall; /* has 60 % of the waiting warps */
    /* The device. */
    const char *device, *kind;
    bool no_ceilings;
    double timed_mhz, counted_mhz; /* SM clock */
    double said_mhz;               /* what the telemetry makes of timed_mhz; 0: the same */
    bool clock_counted;            /* the record also has timed_mhz by cycle counters */
    const char *throttle_reasons;
    double power_w;
    /* The run. */
    const char *level;     /* of counters */
    const char *uncounted; /* a phase that the counters lack */
    const char *suite, *kernel;
    int rounds, cases;         /* cases: numbers 1.., all of the same shape */
    double speed;              /* all times are multiplied with this */
    double noise, round_noise; /* relative, of a sample and of a round */
    unsigned seed;
    enum record_status status;
};

/* A kernel near its roofs on an H200, memory-bound. */
static inline struct made made_good(void) {
    return (struct made){.tokens = 2048,
                         .rows_max = 90,
                         .phases = {"route", "gather", "gate_up", "swiglu", "down", "combine"},
                         .bytes_factor = 1,
                         .pad_factor = 1.05,
                         .done_factor = 1.05,
                         .mma_factor = 0.95,
                         .reached = 0.95,
                         .idle_share = 0.005,
                         .gap_ns = 20e3,
                         .launches = 8,
                         .blocks = 132,
                         .warps_percent = 60,
                         .top_stall = "long_scoreboard",
                         .device = "NVIDIA H200",
                         .kind = "cuda",
                         .timed_mhz = 1900,
                         .counted_mhz = 1900,
                         .throttle_reasons = "",
                         .power_w = 500,
                         .level = "full",
                         .suite = "made",
                         .kernel = "made-kernel",
                         .rounds = 3,
                         .cases = 1,
                         .speed = 1,
                         .noise = 0.001,
                         .round_noise = 0.001,
                         .seed = 1,
                         .status = STATUS_OK};
}

/* What a phase is made of; the same for times and counters. */
struct made_phase {
    double bytes, busy_ns, duration_ns, timed_ns, tensor_ns;
};

static inline bool made_is_gemm(const char *name) {
    return strstr(name, "gate_up") != NULL || strstr(name, "down") != NULL;
}

static inline struct moe_shape made_shape(const struct made *made) {
    return (struct moe_shape){(int64_t)made->tokens, 8192, 2048, 256, 8};
}

static inline struct moe_routing made_routing(const struct made *made) {
    return (struct moe_routing){.valid_slots = (int64_t)made->tokens * 8,
                                .experts_hit = 256,
                                .rows_min = 1,
                                .rows_median = (int64_t)made->tokens / 32,
                                .rows_max = (int64_t)made->rows_max};
}

static inline struct made_phase made_phase_of(const struct made *made, const char *name) {
    struct moe_shape shape = made_shape(made);
    struct moe_routing routing = made_routing(made);
    struct moe_work work = {0, 0};
    struct made_phase out = {0};
    bool gemm = made_is_gemm(name);

    if (!moe_phase_work(name, &shape, &routing, &work)) {
        out.busy_ns = out.duration_ns = out.timed_ns = 10e3;
        return out;
    }
    double pad = made->done_factor;
    out.bytes = work.bytes * (gemm ? made->bytes_factor : 1);
    out.tensor_ns = work.flop * pad * made->mma_factor / MADE_FLOP_PER_S * 1e9;
    double math_ns = fmax(work.flop * pad / MADE_FLOP_PER_S * 1e9, out.tensor_ns);
    out.busy_ns = fmax(out.bytes / MADE_BYTES_PER_S * 1e9, math_ns) / made->reached;
    out.duration_ns = out.busy_ns / (1 - (gemm ? made->idle_share : 0));
    out.timed_ns = out.duration_ns * made->counted_mhz / made->timed_mhz;
    return out;
}

/* Deterministic noise: sum of uniforms, about normal, standard deviation 1. */
static inline double made_normal(unsigned *state) {
    double sum = 0;
    for (int i = 0; i < 12; i++) {
        *state = *state * 1664525u + 1013904223u;
        sum += (double)(*state >> 8) / 16777216.0;
    }
    return sum - 6;
}

static inline void made_fill_run(const struct made *made, struct record_run *run) {
    static struct record_ceiling ceilings[] = {{"dram_read", "made", MADE_BYTES_PER_S},
                                               {"fp16_dense", "made", MADE_FLOP_PER_S},
                                               {"fp32", "made", MADE_FLOP_PER_S}};

    record_run_init(run);
    snprintf(run->suite_name, sizeof run->suite_name, "%s", made->suite);
    snprintf(run->counters_level, sizeof run->counters_level, "%s", made->level);
    snprintf(run->kernel.name, sizeof run->kernel.name, "%s", made->kernel);
    snprintf(run->device.kind, sizeof run->device.kind, "%s", made->kind);
    snprintf(run->device.name, sizeof run->device.name, "%s", made->device);
    snprintf(run->device.compute_capability, sizeof run->device.compute_capability, "9.0");
    run->suite_case_count = made->cases;
    run->round_count = made->rounds;
    run->device.sm_count = MADE_SMS;
    run->device.power_limit_w = 700;
    run->ceilings = ceilings;
    run->ceiling_count = made->no_ceilings ? 0 : 3;
}

struct made_case {
    struct record_case line;
    double samples[MADE_SAMPLES], phase_samples[MADE_PHASES][MADE_SAMPLES];
    struct record_phase phases[MADE_PHASES];
    struct record_launch launches[MADE_PHASES];
};

static inline void made_fill_launch(const struct made *made, const char *name,
                                    struct record_launch *launch) {
    memset(launch, 0, sizeof *launch);
    snprintf(launch->name, sizeof launch->name, "kernel_of_%s", name);
    launch->count = 1;
    launch->grid[0] = made_is_gemm(name) ? made->blocks : 8192;
    launch->grid[1] = launch->grid[2] = launch->block[1] = launch->block[2] = 1;
    launch->block[0] = 256;
    launch->registers_per_thread = 128;
    launch->shared_memory_bytes = made_is_gemm(name) ? 200000 : 0;
}

static inline void made_fill_case(const struct made *made, int number, int round, unsigned *state,
                                  struct made_case *out) {
    struct record_case *c = &out->line;
    struct moe_routing routing = made_routing(made);
    double scale = made->speed * (1 + made->round_noise * made_normal(state));

    record_case_init(c);
    c->number = number;
    c->round = round;
    c->batch_seq_len = made->tokens;
    c->hidden_size = 8192;
    c->moe_intermediate_size = 2048;
    c->num_experts = 256;
    c->num_experts_per_tok = 8;
    c->valid_slots = (double)routing.valid_slots;
    c->experts_hit = 256;
    c->rows_min = 1;
    c->rows_median = (double)routing.rows_median;
    c->rows_max = (double)routing.rows_max;
    c->padded_rows = nearbyint(made->pad_factor * c->valid_slots);
    c->status = made->status;
    c->gap_ns = made->gap_ns * made->speed;
    c->launch_count = made->launches;
    c->telemetry.sm_clock_mhz_median = made->said_mhz > 0 ? made->said_mhz : made->timed_mhz;
    if (made->clock_counted)
        c->telemetry.sm_clock_mhz_timed = made->timed_mhz;
    c->telemetry.sm_clock_mhz_min = fmin(made->timed_mhz, c->telemetry.sm_clock_mhz_median);
    c->telemetry.sm_clock_mhz_max = fmax(made->timed_mhz, c->telemetry.sm_clock_mhz_median);
    c->telemetry.power_w_median = made->power_w;
    snprintf(c->telemetry.throttle_reasons, sizeof c->telemetry.throttle_reasons, "%s",
             made->throttle_reasons);
    if (made->status == STATUS_CRASHED)
        return;
    for (size_t p = 0; made->phases[p]; p++) {
        struct record_phase *phase = &out->phases[c->phase_count++];
        memset(phase, 0, sizeof *phase);
        snprintf(phase->name, sizeof phase->name, "%s", made->phases[p]);
        phase->samples_ns = out->phase_samples[p];
        phase->sample_count = MADE_SAMPLES;
        phase->gap_ns = 0;
        phase->launches = &out->launches[p];
        phase->launch_count = 1;
        made_fill_launch(made, made->phases[p], &out->launches[p]);
    }
    for (size_t s = 0; s < MADE_SAMPLES; s++) {
        double factor = scale * (1 + made->noise * made_normal(state));
        out->samples[s] = made->gap_ns * factor;
        for (size_t p = 0; made->phases[p]; p++) {
            out->phase_samples[p][s] = made_phase_of(made, made->phases[p]).timed_ns * factor;
            out->samples[s] += out->phase_samples[p][s];
        }
    }
    c->samples_ns = out->samples;
    c->sample_count = MADE_SAMPLES;
    c->phases = out->phases;
}

#define MADE_METRICS 32

static inline void made_metric(struct record_phase_counters *phase, const char *name,
                               double value) {
    struct record_metric *metric = &phase->metrics[phase->metric_count++];
    snprintf(metric->name, sizeof metric->name, "%s", name);
    metric->value = value;
}

static inline void made_stalls(const struct made *made, struct record_phase_counters *phase) {
    static const char *const reasons[] = {"long_scoreboard", "barrier", "wait", "gmma",
                                          "math_pipe_throttle"};

    made_metric(phase, "smsp__issue_active.sum", 1e7);
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
        char name[96];
        snprintf(name, sizeof name, "smsp__average_warps_issue_stalled_%s_per_issue_active.ratio",
                 reasons[i]);
        double warps = strcmp(reasons[i], made->top_stall) == 0 ? 6 : 1;
        made_metric(phase, name, made->mma_sync && strcmp(reasons[i], "gmma") == 0 ? 0 : warps);
    }
    /* More than all others: what issues does not wait. */
    made_metric(phase, "smsp__average_warps_issue_stalled_selected_per_issue_active.ratio", 50);
}

static inline void made_fill_counters(const struct made *made, const char *name,
                                      struct record_phase_counters *out) {
    struct made_phase phase = made_phase_of(made, name);
    double duration_ns = phase.duration_ns + MADE_RANGE_NS;

    memset(out, 0, sizeof *out);
    snprintf(out->name, sizeof out->name, "%s", name);
    out->metrics = calloc(MADE_METRICS, sizeof *out->metrics);
    made_metric(out, "gpu__time_duration.sum", duration_ns);
    made_metric(out, "sm__cycles_elapsed.avg.per_second", made->counted_mhz * 1e6);
    made_metric(out, "sm__cycles_active.sum", phase.busy_ns * made->counted_mhz / 1e3 * MADE_SMS);
    made_metric(out, "dram__bytes_read.sum", phase.bytes * 0.9);
    made_metric(out, "dram__bytes_write.sum", phase.bytes * 0.1);
    made_metric(out, "lts__t_bytes.sum", phase.bytes * 2);
    made_metric(out, "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
                phase.tensor_ns / duration_ns * 100);
    made_metric(out, "sm__warps_active.avg.pct_of_peak_sustained_active", made->warps_percent);
    if (strcmp(made->level, "full") != 0)
        return;
    made_metric(out, "lts__t_sector_hit_rate.pct", 55);
    struct moe_shape shape = made_shape(made);
    struct moe_routing routing = made_routing(made);
    struct moe_work work = {0, 0};
    if (moe_phase_work(name, &shape, &routing, &work))
        made_metric(out, "sm__ops_path_tensor_src_fp16.sum", work.flop * made->done_factor);
    double spilled = strcmp(name, "gate_up") == 0 ? made->spilled_bytes : 0;
    made_metric(out, "l1tex__t_bytes_pipe_lsu_mem_local_op_ld.sum", spilled / 2);
    made_metric(out, "l1tex__t_bytes_pipe_lsu_mem_local_op_st.sum", spilled / 2);
    made_stalls(made, out);
}

static inline int made_write_counters(FILE *file, const struct made *made, int number,
                                      struct error *err) {
    struct record_phase_counters phases[MADE_PHASES];
    struct record_counters line;

    if (strcmp(made->level, "none") == 0)
        return 0;
    record_counters_init(&line);
    line.number = number;
    line.pass_count = 1;
    line.phases = phases;
    snprintf(line.level, sizeof line.level, "%s", made->level);
    for (size_t p = 0; made->phases[p]; p++)
        if (!made->uncounted || strcmp(made->phases[p], made->uncounted) != 0)
            made_fill_counters(made, made->phases[p], &phases[line.phase_count++]);
    int result = record_write_counters(file, &line, err);
    for (size_t p = 0; p < line.phase_count; p++)
        free(phases[p].metrics);
    return result;
}

/* Writes the record to `path`. Returns 0, or -1 with *err. */
static inline int made_write(const struct made *made, const char *path, struct error *err) {
    static struct made_case made_case;
    struct record_end end = {true, "complete", "2026-12-01T00:00:00Z"};
    struct record_run run;
    unsigned state = made->seed * 2654435761u + 17;
    FILE *file = fopen(path, "w");

    if (!file)
        return error_set(err, EXIT_FAILED, "cannot write %s", path);
    made_fill_run(made, &run);
    int result = record_write_run(file, &run, err);
    for (int round = 0; round < made->rounds && result == 0; round++) {
        for (int number = 1; number <= made->cases && result == 0; number++) {
            memset(&made_case, 0, sizeof made_case);
            made_fill_case(made, number, round, &state, &made_case);
            result = record_write_case(file, &made_case.line, err);
        }
    }
    for (int number = 1; number <= made->cases && result == 0; number++)
        result = made_write_counters(file, made, number, err);
    if (result == 0)
        result = record_write_end(file, &end, err);
    fclose(file);
    return result;
}

#endif
