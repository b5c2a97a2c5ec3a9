/* What pictures and exports of a timeline have in common. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "export.h"

const struct sampled_metric sampled_metrics[] = {
    {"dram__bytes_read.sum", "DRAM read", "TB/s", 1e-12, true},
    {"dram__bytes_write.sum", "DRAM write", "TB/s", 1e-12, true},
    {"sm__cycles_active.avg.pct_of_peak_sustained_elapsed", "SM active", "%", 1, false},
    {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed", "tensor pipe", "%", 1,
     false},
    {"sm__cycles_elapsed.avg.per_second", "SM clock", "MHz", 1e-6, false},
};
const size_t sampled_metric_count = sizeof sampled_metrics / sizeof *sampled_metrics;

const struct record_timeline *export_find_timeline(const struct record *record, int number) {
    const struct record_timeline *found = NULL;

    for (size_t i = 0; i < record->timeline_count; i++) {
        const struct record_timeline *timeline = &record->timelines[i];
        if ((int)timeline->number != number)
            continue;
        if (!found || timeline->sample_count > 0 ||
            (found->sample_count == 0 && found->launch_count == 0))
            found = timeline;
    }
    return found;
}

double sampled_value(const struct record_timeline *timeline, const struct sampled_metric *metric,
                     size_t i) {
    double seconds = (timeline->sample_end_ns[i] - timeline->sample_start_ns[i]) / 1e9;

    for (size_t s = 0; s < timeline->series_count; s++) {
        if (strcmp(timeline->series[s].name, metric->metric) != 0)
            continue;
        double value = timeline->series[s].values[i] * metric->scale;
        if (!metric->per_second)
            return value;
        return seconds > 0 ? value / seconds : NAN;
    }
    return NAN;
}

struct phase_run *timeline_phase_runs(const struct record_timeline *timeline, size_t *count) {
    struct phase_run *runs = calloc(timeline->launch_count + 1, sizeof *runs);

    *count = 0;
    for (size_t i = 0; runs && i < timeline->launch_count; i++) {
        const char *phase = timeline->phases[(size_t)timeline->launch_phases[i]].name;
        double start = timeline->launch_start_ns[i], end = start + timeline->launch_ns[i];
        struct phase_run *last = *count > 0 ? &runs[*count - 1] : NULL;
        if (last && strcmp(last->phase, phase) == 0) {
            last->end_ns = fmax(last->end_ns, end);
            continue;
        }
        runs[(*count)++] = (struct phase_run){phase, start, end};
    }
    return runs;
}
