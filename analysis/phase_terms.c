/* Splits the phases of a case into the terms of phase_terms.h. */
#include "phase_terms.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "occupancy.h"

#define DURATION "gpu__time_duration.sum"
#define SM_CLOCK "sm__cycles_elapsed.avg.per_second"
#define SM_ACTIVE "sm__cycles_active.sum"
#define TENSOR_BUSY "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"
#define TENSOR_FLOP "sm__ops_path_tensor_src_fp16.sum"
#define LONG_RANGE_NS 1e6 /* whose clock is to be believed */
#define STALL_HEAD "smsp__average_warps_issue_stalled_"
#define STALL_TAIL "_per_issue_active.ratio"

double metric_value(const struct record_phase_counters *counters, const char *name) {
    for (size_t i = 0; counters && i < counters->metric_count; i++)
        if (strcmp(counters->metrics[i].name, name) == 0)
            return counters->metrics[i].value;
    return NAN;
}

bool next_stall(const struct record_phase_counters *counters, size_t *index, char *name,
                size_t size, double *warps) {
    const size_t head = strlen(STALL_HEAD), tail = strlen(STALL_TAIL);

    while (counters && *index < counters->metric_count) {
        const struct record_metric *metric = &counters->metrics[(*index)++];
        size_t length = strlen(metric->name);
        if (length <= head + tail || strncmp(metric->name, STALL_HEAD, head) != 0 ||
            strcmp(metric->name + length - tail, STALL_TAIL) != 0 || isnan(metric->value))
            continue;
        snprintf(name, size, "%.*s", (int)(length - head - tail), metric->name + head);
        *warps = metric->value;
        return true;
    }
    return false;
}

/* The line with phases; of several, the last, and `full` before `basic`. */
static void find_counters(const struct record *record, int number, struct case_terms *terms) {
    snprintf(terms->no_counters, sizeof terms->no_counters, "%s",
             terms->cpu ? "a CPU has none here" : "the run took none");
    for (size_t i = 0; i < record->counters_count; i++) {
        const struct record_counters *line = &record->counters[i];
        if (line->number != number)
            continue;
        if (line->phase_count == 0 && line->reason[0])
            snprintf(terms->no_counters, sizeof terms->no_counters, "%s", line->reason);
        if (line->phase_count > 0 &&
            (!terms->counters || strcmp(terms->counters->level, "full") != 0 ||
             strcmp(line->level, "full") == 0))
            terms->counters = line;
    }
}

static const struct record_phase_counters *phase_counters(const struct record_counters *counters,
                                                          const char *name) {
    for (size_t i = 0; counters && i < counters->phase_count; i++)
        if (strcmp(counters->phases[i].name, name) == 0 && counters->phases[i].metric_count > 0)
            return &counters->phases[i];
    return NULL;
}

/* The kernel that makes up most of the phase's launches. Copies and fills have no grid. */
static const struct record_launch *main_kernel(const struct record_phase *phase) {
    const struct record_launch *most = NULL;
    double count = 0;

    for (size_t i = 0; i < phase->launch_count; i++) {
        const struct record_launch *launch = &phase->launches[i];
        if (!(launch->grid[0] > 0))
            continue;
        count += launch->count;
        if (!most || launch->count > most->count)
            most = launch;
    }
    return most && most->count > count / 2 ? most : NULL;
}

/* The launch of a phase, from the first round that has the phase. */
static const struct record_launch *find_launch(const struct record *record, int number,
                                               const char *name) {
    for (size_t i = 0; i < record->case_count; i++) {
        const struct record_case *line = &record->cases[i];
        if (line->number != number)
            continue;
        for (size_t p = 0; p < line->phase_count; p++)
            if (strcmp(line->phases[p].name, name) == 0)
                return main_kernel(&line->phases[p]);
    }
    return NULL;
}

static double or_zero(double value) { return isfinite(value) && value > 0 ? value : 0; }

/* Time of the phase's bytes and operations at the measured roofs. */
static void set_roofs(const struct case_terms *terms, struct phase_terms *out) {
    const struct roofs *roofs = &terms->roofs;
    double counted = metric_value(out->counters, "dram__bytes_read.sum") +
                     metric_value(out->counters, "dram__bytes_write.sum");
    double busy_ns =
        metric_value(out->counters, TENSOR_BUSY) / 100 * metric_value(out->counters, DURATION);

    out->model_bytes = out->phase->modelled ? out->phase->work.bytes : NAN;
    out->bytes = isnan(counted) ? out->model_bytes : counted;
    out->memory_ns = or_zero(out->bytes / roofs->bytes_per_s * 1e9);
    out->math_ns = or_zero(out->phase->work.flop / roofs->flop_per_s * 1e9);
    double flop = metric_value(out->counters, TENSOR_FLOP);
    out->flop_counted = out->math_ns > 0 && flop > 0;
    if (out->flop_counted)
        out->padded_ns = fmax(out->math_ns, flop / roofs->flop_per_s * 1e9);
    else
        out->padded_ns = out->math_ns * (isnan(terms->pad_factor) ? 1 : terms->pad_factor);
    out->tensor_ns = fmax(out->padded_ns, or_zero(busy_ns));
    out->roof_ns = fmax(out->memory_ns, out->tensor_ns);
}

/* How much longer the phase's cycles took in the timed run than while counted: the ratio of the
 * times, as far as a clock within the range of the telemetry can explain it. */
static double clock_stretch(const struct case_terms *terms, const struct phase_terms *out,
                            double duration_ns) {
    double times = out->time_ns / duration_ns;
    double least = fmin(1, out->sm_mhz / terms->most_mhz);
    double most = fmax(1, out->sm_mhz / terms->least_mhz);

    if (isnan(terms->timed_mhz) || !isfinite(times) || !isfinite(least) || !isfinite(most))
        return 1;
    return fmin(fmax(times, least), most);
}

/* A range of the counter run holds some microseconds more than its launches, so the timed run's
 * figure counts where it is shorter. */
static void split_by_counters(const struct case_terms *terms, struct phase_terms *out) {
    double sms = terms->summary->record->run.device.sm_count;
    double duration_ns = metric_value(out->counters, DURATION);

    out->sm_mhz = metric_value(out->counters, SM_CLOCK) / 1e6;
    if (out->sm_mhz > terms->highest_mhz)
        out->sm_mhz = terms->highest_mhz;
    out->active_ns = metric_value(out->counters, SM_ACTIVE) / sms / out->sm_mhz * 1e3;
    if (!isfinite(out->active_ns) || !isfinite(duration_ns))
        return;
    double stretch = clock_stretch(terms, out, duration_ns);
    double covered_ns = fmin(out->time_ns, duration_ns * stretch);
    double busy_ns = out->active_ns * stretch;
    double room_ns = fmax(0, covered_ns - out->roof_ns);

    out->idle_ns = fmin(room_ns, fmax(0, covered_ns - busy_ns));
    room_ns -= out->idle_ns;
    double lost_ns = fmax(0, busy_ns - fmax(out->roof_ns, out->active_ns));
    out->timed_mhz = out->sm_mhz / stretch;
    out->clock_ns = isfinite(terms->timed_mhz) ? fmin(room_ns, lost_ns) : NAN;
    out->below_ns = room_ns - or_zero(out->clock_ns);
}

/* Without counters: blocks of equal length in waves. That says something where the operations are
 * the limit, or where there are fewer blocks than SMs; in a memory-bound phase the blocks of a full
 * wave only wait for each other. */
static void split_by_grid(const struct case_terms *terms, struct phase_terms *out) {
    double sms = terms->summary->record->run.device.sm_count;
    double busy_share = NAN;

    if (out->blocks < sms)
        busy_share = out->blocks / sms;
    else if (out->tensor_ns >= out->memory_ns && out->tensor_ns > 0)
        busy_share =
            out->blocks / (ceil(out->blocks / out->resident_blocks) * out->resident_blocks);
    if (isnan(busy_share))
        return;
    out->idle_by_grid = true;
    out->idle_ns = fmin(out->time_ns * (1 - busy_share), fmax(0, out->time_ns - out->roof_ns));
}

static void set_launch(const struct case_terms *terms, struct phase_terms *out) {
    const struct record_device *device = &terms->summary->record->run.device;

    out->blocks = out->resident_blocks = out->resident_threads = NAN;
    out->launch =
        find_launch(terms->summary->record, terms->summary_case->number, out->phase->name);
    if (!out->launch)
        return;
    const double *grid = out->launch->grid, *block = out->launch->block;
    double per_sm = resident_blocks_per_sm(device->compute_capability, out->launch);

    out->blocks = grid[0] * grid[1] * grid[2];
    out->resident_blocks = per_sm * device->sm_count;
    out->resident_threads =
        per_sm * block[0] * block[1] * block[2] / threads_per_sm(device->compute_capability);
}

static void fill_phase(struct case_terms *terms, const struct phase_summary *phase,
                       struct phase_terms *out) {
    size_t index = 0;
    char reason[96];
    double warps;

    *out = (struct phase_terms){.phase = phase, .time_ns = or_zero(phase->latency_ns.median)};
    out->active_ns = out->sm_mhz = out->timed_mhz = NAN;
    out->idle_ns = out->below_ns = out->clock_ns = NAN;
    out->counters = phase_counters(terms->counters, phase->name);
    out->has_stalls = next_stall(out->counters, &index, reason, sizeof reason, &warps);
    terms->has_stalls |= out->has_stalls;
    set_roofs(terms, out);
    set_launch(terms, out);
    split_by_counters(terms, out);
    if (isnan(out->active_ns))
        split_by_grid(terms, out);
}

static struct roofs usable_roofs(const struct summary *summary) {
    struct roofs roofs = summary->measured;

    if (isnan(roofs.bytes_per_s))
        roofs.bytes_per_s = summary->datasheet.bytes_per_s;
    if (isnan(roofs.flop_per_s))
        roofs.flop_per_s = summary->datasheet.flop_per_s;
    return roofs;
}

/* The clock of a phase may lie so far from that of its iteration. */
#define PHASE_CLOCK_SPREAD 0.02

/* Counted by the SMs over the timed iterations, where the record has that. Else by NVML: a
 * throttled device moves its clock about, and NVML reads it between kernels too, so that the clock
 * of a phase may be anything in the range seen; elsewhere the median holds. */
static void set_clocks(const struct record_telemetry *telemetry, struct case_terms *terms) {
    bool throttled = telemetry->throttle_reasons[0] != '\0';

    terms->clock_counted = telemetry->sm_clock_mhz_timed > 0;
    if (terms->clock_counted) {
        terms->timed_mhz = telemetry->sm_clock_mhz_timed;
        terms->least_mhz = (1 - PHASE_CLOCK_SPREAD) * terms->timed_mhz;
        terms->most_mhz = (1 + PHASE_CLOCK_SPREAD) * terms->timed_mhz;
        return;
    }
    terms->timed_mhz = terms->least_mhz = terms->most_mhz = telemetry->sm_clock_mhz_median;
    if (throttled && telemetry->sm_clock_mhz_min > 0)
        terms->least_mhz = telemetry->sm_clock_mhz_min;
    if (throttled && telemetry->sm_clock_mhz_max > 0)
        terms->most_mhz = telemetry->sm_clock_mhz_max;
}

/* By telemetry in any case of the record, and by the case's long ranges of counters. Cycles and
 * time of a short range come from passes that differ by more than they last, which gives clocks
 * that no device has: those are cut to what was seen elsewhere. */
static double highest_mhz(const struct summary *summary, const struct record_counters *counters) {
    double highest = 0;

    for (size_t i = 0; i < summary->case_count; i++) {
        const struct record_telemetry *seen = &summary->cases[i].telemetry;
        highest =
            fmax(highest, fmax(or_zero(seen->sm_clock_mhz_max), or_zero(seen->sm_clock_mhz_timed)));
    }
    for (size_t i = 0; counters && i < counters->phase_count; i++)
        if (metric_value(&counters->phases[i], DURATION) >= LONG_RANGE_NS)
            highest = fmax(highest, or_zero(metric_value(&counters->phases[i], SM_CLOCK) / 1e6));
    return highest > 0 ? highest : INFINITY;
}

int case_terms_build(const struct summary *summary, const struct case_summary *summary_case,
                     struct case_terms *terms, struct error *err) {
    double valid = (double)summary_case->routing.valid_slots;

    memset(terms, 0, sizeof *terms);
    terms->summary = summary;
    terms->summary_case = summary_case;
    terms->roofs = usable_roofs(summary);
    terms->cpu = strcmp(summary->record->run.device.kind, "cpu") == 0;
    terms->pad_factor = valid > 0 ? fmax(1, summary_case->padded_rows / valid) : NAN;
    if (isnan(summary_case->padded_rows))
        terms->pad_factor = NAN;
    set_clocks(&summary_case->telemetry, terms);
    find_counters(summary->record, summary_case->number, terms);
    terms->highest_mhz = highest_mhz(summary, terms->counters);
    terms->phases = calloc(summary_case->phase_count + 1, sizeof *terms->phases);
    if (!terms->phases)
        return error_set(err, EXIT_FAILED, "out of memory for the phases of a case");
    for (; terms->phase_count < summary_case->phase_count; terms->phase_count++)
        fill_phase(terms, &summary_case->phases[terms->phase_count],
                   &terms->phases[terms->phase_count]);
    return 0;
}

void case_terms_free(struct case_terms *terms) {
    free(terms->phases);
    memset(terms, 0, sizeof *terms);
}
