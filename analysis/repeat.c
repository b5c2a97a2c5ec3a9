/* Counts the cases in which two runs agree. */
#include "repeat.h"

#include <math.h>
#include <string.h>

bool repeat_applies(const struct summary *a, const struct summary *b) {
    const struct record_run *of_a = &a->record->run, *of_b = &b->record->run;

    return strcmp(of_a->kernel.name, of_b->kernel.name) == 0 &&
           strcmp(of_a->kernel.source_hash, of_b->kernel.source_hash) == 0 &&
           strcmp(of_a->device.name, of_b->device.name) == 0 &&
           strcmp(of_a->device.uuid_hash, of_b->device.uuid_hash) == 0 &&
           of_a->back_to_back == of_b->back_to_back;
}

double repeat_difference(const struct stats_summary *a, const struct stats_summary *b) {
    return b->median / a->median - 1;
}

double repeat_allowed(const struct stats_summary *a, const struct stats_summary *b) {
    bool b_is_slower = b->median > a->median;
    double half_a_ns = b_is_slower ? a->high - a->median : a->median - a->low;
    double half_b_ns = b_is_slower ? b->median - b->low : b->high - b->median;

    return fmax(REPEAT_LEAST_SHARE, hypot(half_a_ns, half_b_ns) / a->median);
}

static double width_share(const struct stats_summary *latency) {
    return (latency->high - latency->low) / latency->median;
}

static void add_width(const struct stats_summary *latency, int number, char side,
                      struct repeat *out) {
    double share = width_share(latency);

    if (out->widest_share >= share)
        return;
    out->widest_share = share;
    out->widest_case = number;
    out->widest_side = side;
}

static void add_case(const struct compared_case *one, struct repeat *out) {
    const struct stats_summary *a = &one->a->latency_ns, *b = &one->b->latency_ns;
    double difference = fabs(repeat_difference(a, b));

    if (isnan(one->ratio.value) || isnan(a->low) || isnan(b->low))
        return;
    out->count++;
    out->agree += difference <= repeat_allowed(a, b);
    out->narrow += width_share(a) < REPEAT_WIDE_SHARE && width_share(b) < REPEAT_WIDE_SHARE;
    add_width(a, one->number, 'A', out);
    add_width(b, one->number, 'B', out);
    if (!(out->largest_share >= difference)) {
        out->largest_share = difference;
        out->largest_case = one->number;
    }
}

void repeat_count(const struct comparison *comparison, struct repeat *out) {
    *out = (struct repeat){.widest_share = NAN, .largest_share = NAN};
    for (size_t i = 0; i < comparison->count; i++)
        add_case(&comparison->cases[i], out);
    out->repeatable =
        out->count > 0 && (double)out->agree >= REPEAT_AGREE_SHARE * (double)out->count;
}
