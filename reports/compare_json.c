/* The comparison as JSON: {"a", "b", "suite", "repeat", "cases"}; null where something is not
 * known. */
#include "../analysis/repeat.h"
#include "compare.h"
#include "json_out.h"

static json_t *parts_array(const struct compared_parts *parts) {
    json_t *array = json_array();

    for (size_t i = 0; i < parts->count; i++) {
        const struct compared_part *part = &parts->list[i];
        json_array_append_new(
            array, json_pack("{s:o, s:o, s:o, s:o}", "name", json_text(part->name), "a_ms",
                             json_number(part->a_ns / 1e6), "b_ms", json_number(part->b_ns / 1e6),
                             "difference_ms", json_number(part->difference_ns / 1e6)));
    }
    return array;
}

static json_t *decisive(const struct compared_parts *parts, double total_ns, enum verdict verdict) {
    const struct compared_part *part = decisive_part(parts, total_ns);

    if (!part || (verdict != VERDICT_FASTER && verdict != VERDICT_SLOWER))
        return json_null();
    return json_text(part->name);
}

static json_t *verdict_object(enum verdict verdict, const char *why, const struct ratio *ratio,
                              double a_ns, double b_ns, const struct compared_parts *phases,
                              const struct compared_parts *steps) {
    return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "verdict",
                     verdict_names[verdict], "reason", json_text(why), "a_ms",
                     json_number(a_ns / 1e6), "b_ms", json_number(b_ns / 1e6), "ratio",
                     json_number(ratio->value), "ratio_low", json_number(ratio->low), "ratio_high",
                     json_number(ratio->high), "phase", decisive(phases, b_ns - a_ns, verdict),
                     "step", decisive(steps, b_ns - a_ns, verdict), "phases", parts_array(phases),
                     "steps", parts_array(steps));
}

static json_t *side_object(const struct summary *summary) {
    const struct record_run *run = &summary->record->run;

    return json_pack("{s:o, s:o, s:o, s:o}", "record", json_text(summary->record->path), "kernel",
                     json_text(run->kernel.name), "device", json_text(run->device.name),
                     "started_at", json_text(run->started_at));
}

/* null unless both are runs of one kernel on one device. */
static json_t *repeat_object(const struct compare_report *report) {
    struct repeat repeat;

    if (!repeat_applies(report->a, report->b))
        return json_null();
    repeat_count(report->comparison, &repeat);
    return json_pack("{s:I, s:I, s:I, s:b, s:o, s:o}", "cases", (json_int_t)repeat.count, "agree",
                     (json_int_t)repeat.agree, "under_2_percent", (json_int_t)repeat.narrow,
                     "repeatable", repeat.repeatable, "widest_interval",
                     json_number(repeat.widest_share), "largest_difference",
                     json_number(repeat.largest_share));
}

static int write_json(FILE *file, const struct compare_report *report) {
    const struct comparison *comparison = report->comparison;
    json_t *cases = json_array();

    for (size_t i = 0; i < comparison->count; i++) {
        const struct compared_case *one = &comparison->cases[i];
        json_t *object =
            verdict_object(one->verdict, one->why, &one->ratio, one->a->latency_ns.median,
                           one->b->latency_ns.median, &one->phases, &one->steps);
        json_object_set_new(object, "case", json_integer(one->number));
        json_object_set_new(object, "batch_seq_len", json_integer(one->a->shape.batch_seq_len));
        json_array_append_new(cases, object);
    }
    json_t *suite = verdict_object(comparison->verdict, comparison->why, &comparison->ratio,
                                   comparison->mean_a_ns, comparison->mean_b_ns,
                                   &comparison->phases, &comparison->steps);
    json_object_set_new(suite, "cases", json_integer((json_int_t)comparison->suite_count));
    return json_write(file, json_pack("{s:o, s:o, s:o, s:o, s:o}", "a", side_object(report->a), "b",
                                      side_object(report->b), "suite", suite, "repeat",
                                      repeat_object(report), "cases", cases));
}

const struct compare_format compare_json = {"json", write_json};
