/* Brings counter samples and launches onto one time axis. CUPTI says that both carry the time of
 * the host; whether they do on the device at hand shows in the samples themselves, because the
 * device is idle before and after the iteration that was sampled. */
#include "timeline.h"

/* One SM of some two hundred. */
#define ACTIVE_PERCENT 0.5
/* Copies and memsets at either end do not show as work; clocks that are not one differ by far more.
 */
#define SLACK_LEAST_NS 100000

/* The samples from the first to the last that show work. */
static bool find_work(const struct timeline_sample *samples, size_t count, uint64_t *begin,
                      uint64_t *end) {
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        if (!(samples[i].sm_active_percent >= ACTIVE_PERCENT))
            continue;
        if (!any)
            *begin = samples[i].start_ns;
        *end = samples[i].end_ns;
        any = true;
    }
    return any;
}

static uint64_t distance(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }

int timeline_align(const struct timeline_sample *samples, size_t count, uint64_t begin_ns,
                   double span_ns, uint64_t *origin_ns, const char **alignment, struct error *err) {
    uint64_t begin = 0, end = 0;
    if (!find_work(samples, count, &begin, &end))
        return error_set(err, EXIT_FAILED, "no counter sample shows the SMs at work");
    /* One clock: work begins and ends in the samples about where the launches say. */
    uint64_t slack = 3 * (samples[count / 2].end_ns - samples[count / 2].start_ns);
    if (slack < SLACK_LEAST_NS)
        slack = SLACK_LEAST_NS;
    bool one_clock =
        distance(begin, begin_ns) <= slack && distance(end, begin_ns + (uint64_t)span_ns) <= slack;
    *origin_ns = one_clock ? begin_ns : begin;
    *alignment = one_clock ? "timestamps" : "onset";
    return 0;
}
