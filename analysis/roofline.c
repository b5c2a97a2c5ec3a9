/* Points of a roofline: by case from the whole case's work, by phase from the phase model. */
#include "roofline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void finish_point(struct roofline_point *point) {
    double seconds = point->latency_ns / 1e9;

    point->intensity = point->work.flop / point->work.bytes;
    point->flop_per_s = point->work.flop / seconds;
    point->bytes_per_s = point->work.bytes / seconds;
}

static void add_cases(const struct summary *summary, size_t record, struct roofline *out) {
    for (size_t i = 0; i < summary->case_count; i++) {
        const struct case_summary *c = &summary->cases[i];
        if (!case_has_latency(c) || isnan(c->work.bytes))
            continue;
        struct roofline_point *point = &out->points[out->point_count++];
        *point = (struct roofline_point){.record = record,
                                         .case_number = c->number,
                                         .batch_seq_len = (double)c->shape.batch_seq_len,
                                         .case_count = 1,
                                         .work = c->work,
                                         .latency_ns = c->latency_ns.median,
                                         .fraction = c->fraction[BOUND_MEASURED]};
        snprintf(point->name, sizeof point->name, "case %d", c->number);
        finish_point(point);
    }
}

static struct roofline_point *phase_point(struct roofline *out, size_t first, size_t record,
                                          const char *name) {
    for (size_t i = first; i < out->point_count; i++)
        if (strcmp(out->points[i].name, name) == 0)
            return &out->points[i];
    struct roofline_point *point = &out->points[out->point_count++];
    *point = (struct roofline_point){.record = record, .batch_seq_len = NAN};
    snprintf(point->name, sizeof point->name, "%s", name);
    return point;
}

/* While the sums grow, `fraction` holds the sum of the bounds. */
static void add_phases(const struct summary *summary, size_t record, struct roofline *out) {
    size_t first = out->point_count;

    for (size_t i = 0; i < summary->case_count; i++) {
        const struct case_summary *c = &summary->cases[i];
        for (size_t p = 0; case_has_latency(c) && p < c->phase_count; p++) {
            const struct phase_summary *phase = &c->phases[p];
            if (!phase->modelled || !(phase->latency_ns.median > 0))
                continue;
            struct roofline_point *point = phase_point(out, first, record, phase->name);
            point->case_count++;
            point->work.flop += phase->work.flop;
            point->work.bytes += phase->work.bytes;
            point->latency_ns += phase->latency_ns.median;
            point->fraction += phase->bound_ns;
        }
    }
    for (size_t i = first; i < out->point_count; i++) {
        finish_point(&out->points[i]);
        out->points[i].fraction /= out->points[i].latency_ns;
    }
}

static double best_of(double a, double b) { return isnan(a) || b > a ? b : a; }

static void add_device(const struct summary *summary, struct roofline *out) {
    const char *name = summary->record->run.device.name;
    struct roofline_device *device = NULL;

    for (size_t i = 0; i < out->device_count && !device; i++)
        if (strcmp(out->devices[i].name, name) == 0)
            device = &out->devices[i];
    if (!device) {
        device = &out->devices[out->device_count++];
        snprintf(device->name, sizeof device->name, "%s", name);
        snprintf(device->short_name, sizeof device->short_name, "%s", summary->device_short);
        device->datasheet = summary->datasheet;
        device->measured = summary->measured;
        return;
    }
    device->measured.bytes_per_s =
        best_of(device->measured.bytes_per_s, summary->measured.bytes_per_s);
    device->measured.flop_per_s =
        best_of(device->measured.flop_per_s, summary->measured.flop_per_s);
}

int roofline_build(const struct summary *summaries, size_t count, enum roofline_by by,
                   struct roofline *roofline, struct error *err) {
    size_t most = 1;

    memset(roofline, 0, sizeof *roofline);
    for (size_t r = 0; r < count; r++)
        for (size_t i = 0; i < summaries[r].case_count; i++)
            most += by == ROOFLINE_BY_CASE ? 1 : summaries[r].cases[i].phase_count;
    roofline->points = calloc(most, sizeof *roofline->points);
    roofline->devices = calloc(count + 1, sizeof *roofline->devices);
    if (!roofline->points || !roofline->devices) {
        roofline_free(roofline);
        return error_set(err, EXIT_FAILED, "out of memory for %zu roofline points", most);
    }
    for (size_t r = 0; r < count; r++) {
        add_device(&summaries[r], roofline);
        if (by == ROOFLINE_BY_CASE)
            add_cases(&summaries[r], r, roofline);
        else
            add_phases(&summaries[r], r, roofline);
    }
    return 0;
}

void roofline_free(struct roofline *roofline) {
    free(roofline->points);
    free(roofline->devices);
    memset(roofline, 0, sizeof *roofline);
}
