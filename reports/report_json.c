/* The SOL report as JSON: {"reports": [one object a record]}; null where something is not known. */
#include "json_out.h"
#include "report.h"

static json_t *bounds_object(const double *values, double unit) {
    json_t *object = json_object();

    for (int kind = 0; kind < BOUND_COUNT; kind++)
        json_object_set_new(object, bounds[kind].name, json_number(values[kind] / unit));
    return object;
}

static json_t *phase_object(const struct phase_summary *phase) {
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name",
        json_text(phase->name), "latency_ms", json_number(phase->latency_ns.median / 1e6),
        "latency_low_ms", json_number(phase->latency_ns.low / 1e6), "latency_high_ms",
        json_number(phase->latency_ns.high / 1e6), "share", json_number(phase->share), "work_bytes",
        json_number(phase->work.bytes), "work_flop", json_number(phase->work.flop), "bytes_per_s",
        json_number(phase->bytes_per_s), "flop_per_s", json_number(phase->flop_per_s), "t_sol_ms",
        json_number(phase->bound_ns / 1e6), "sol_fraction", json_number(phase->fraction),
        "launches", json_number(phase->launch_count), "gap_ms", json_number(phase->gap_ns / 1e6));
}

static json_t *correctness_object(const struct record_correctness *correctness) {
    if (!correctness->checked)
        return json_null();
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "matched_ratio",
                     json_number(correctness->matched_ratio), "token_matched_ratio_min",
                     json_number(correctness->token_matched_ratio_min), "max_abs_error",
                     json_number(correctness->max_abs_error), "max_rel_error",
                     json_number(correctness->max_rel_error), "tokens_checked",
                     json_count(correctness->tokens_checked), "reference_tokens_checked",
                     json_count(correctness->reference_tokens_checked));
}

static json_t *phases_array(const struct case_summary *c) {
    json_t *array = json_array();

    for (size_t p = 0; p < c->phase_count; p++)
        json_array_append_new(array, phase_object(&c->phases[p]));
    return array;
}

static json_t *routing_object(const struct case_summary *c) {
    if (!isfinite(c->work.bytes))
        return json_null();
    return json_pack(
        "{s:I, s:I, s:o, s:o, s:o, s:o}", "valid_slots", (json_int_t)c->routing.valid_slots,
        "experts_hit", (json_int_t)c->routing.experts_hit, "rows_min",
        json_count(c->routing.rows_min < 0 ? NAN : (double)c->routing.rows_min), "rows_median",
        json_count(c->routing.rows_median < 0 ? NAN : (double)c->routing.rows_median), "rows_max",
        json_count(c->routing.rows_max < 0 ? NAN : (double)c->routing.rows_max), "padded_rows",
        json_count(c->padded_rows));
}

static json_t *case_object(const struct report_entry *entry, size_t i) {
    const struct case_summary *c = &entry->summary.cases[i];
    json_t *object = json_pack(
        "{s:i, s:I, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I}", "case", c->number,
        "batch_seq_len", (json_int_t)c->shape.batch_seq_len, "status",
        record_status_names[c->status], "reason", json_text(c->reason), "latency_ms",
        json_number(c->latency_ns.median / 1e6), "latency_low_ms",
        json_number(c->latency_ns.low / 1e6), "latency_high_ms",
        json_number(c->latency_ns.high / 1e6), "p5_ms", json_number(c->latency_ns.p5 / 1e6),
        "p95_ms", json_number(c->latency_ns.p95 / 1e6), "samples", (json_int_t)c->latency_ns.count,
        "rounds", (json_int_t)c->round_count);

    json_object_set_new(object, "t_sol_ms", bounds_object(c->bound_ns, 1e6));
    json_object_set_new(object, "sol_fraction", bounds_object(c->fraction, 1));
    json_object_set_new(object, "t_baseline_ms", json_number(entry->scored.t_baseline_ms[i]));
    json_object_set_new(object, "sol_score", json_number(entry->scored.score[i]));
    json_object_set_new(object, "event_ms", json_number(c->event_ns / 1e6));
    json_object_set_new(object, "recording_share", json_number(recording_cost(c)));
    json_object_set_new(object, "gap_ms", json_number(c->gap_ns / 1e6));
    json_object_set_new(object, "launches", json_number(c->launch_count));
    json_object_set_new(object, "idle_share", json_number(c->idle_share));
    json_object_set_new(object, "routing", routing_object(c));
    json_object_set_new(object, "correctness", correctness_object(&c->correctness));
    json_object_set_new(object, "phases", phases_array(c));
    return object;
}

static json_t *means_object(const struct report_entry *entry) {
    const struct suite_means *means = &entry->means;

    return json_pack(
        "{s:I, s:b, s:o, s:o, s:o, s:o, s:o}", "cases", (json_int_t)means->case_count, "complete",
        entry->summary.complete, "mean_latency_ms", json_number(means->mean_ns / 1e6),
        "geomean_latency_ms", json_number(means->geomean_ns / 1e6), "t_sol_ms",
        bounds_object(means->bound_mean_ns, 1e6), "sol_fraction", bounds_object(means->fraction, 1),
        "sol_score", json_number(entry->scored.mean_score));
}

static json_t *roofs_object(const struct roofs *roofs) {
    return json_pack("{s:o, s:o}", "bytes_per_s", json_number(roofs->bytes_per_s), "flop_per_s",
                     json_number(roofs->flop_per_s));
}

static json_t *run_object(const struct report_entry *entry) {
    const struct record_run *run = &entry->record.run;

    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:o}", "record",
                     json_text(entry->record.path), "device", json_text(run->device.name),
                     "device_short", json_text(entry->summary.device_short), "suite",
                     json_text(run->suite_name), "kernel", json_text(run->kernel.name), "author",
                     json_text(run->kernel.author), "license", json_text(run->kernel.license),
                     "source", json_text(run->kernel.source), "ranked", run->kernel.ranked,
                     "started_at", json_text(run->started_at), "ended",
                     entry->record.end.present ? json_text(entry->record.end.status) : json_null());
}

static json_t *entry_object(const struct report_entry *entry) {
    json_t *object = run_object(entry), *cases = json_array(), *notes = json_array();

    for (size_t i = 0; i < entry->summary.case_count; i++)
        json_array_append_new(cases, case_object(entry, i));
    for (size_t i = 0; i < entry->notes.count; i++)
        json_array_append_new(notes, json_text(entry->notes.lines[i]));
    json_object_set_new(object, "roofs",
                        json_pack("{s:o, s:o}", "measured", roofs_object(&entry->summary.measured),
                                  "datasheet", roofs_object(&entry->summary.datasheet)));
    json_object_set_new(object, "score_bound", json_string(bounds[entry->scored.bound].name));
    json_object_set_new(object, "baseline", json_text(entry->scored.baseline));
    json_object_set_new(object, "cases", cases);
    json_object_set_new(object, "means", means_object(entry));
    json_object_set_new(object, "notes", notes);
    return object;
}

static int write_json(FILE *file, const struct report *report) {
    json_t *reports = json_array();

    for (size_t i = 0; i < report->count; i++)
        json_array_append_new(reports, entry_object(report->entries[i]));
    return json_write(file, json_pack("{s:o}", "reports", reports));
}

const struct report_format report_json = {.name = "json", .write = write_json};
