/* SOL-ExecBench's trace, JSON Lines: one object a case with definition, workload, solution and
 * evaluation, as that benchmark's public schema has them (src/sol_execbench/.../data/trace.py and
 * workload.py): correctness only where the status is PASSED or INCORRECT_NUMERICAL, performance
 * only where it is PASSED. What a record does not know has no key. The schema's uuids of workloads
 * are in its data set alone; ours derive from the suite's hash. */
#include <math.h>
#include <string.h>

#include "../core/sha256.h"
#include "export.h"
#include "json_out.h"

/* Names of definitions in the benchmark, by our suites. */
static const struct {
    const char *suite, *definition;
} definitions[] = {
    {"moe-token-repeat", "047_moe_training_token_repeat_and_expert_computation"},
};

static json_t *definition_of(const struct record_run *run) {
    for (size_t i = 0; i < sizeof definitions / sizeof *definitions; i++)
        if (strcmp(run->suite_name, definitions[i].suite) == 0)
            return json_string(definitions[i].definition);
    return json_text(run->suite_name[0] ? run->suite_name : "unknown");
}

/* The shape of a uuid, the same for a case of a suite wherever it is made. */
static json_t *uuid_of(const struct record_run *run, int number) {
    char text[160], hex[65];
    int length = snprintf(text, sizeof text, "%s:%s:%d", run->suite_name, run->suite_hash, number);
    sha256_hex(text, (size_t)length, hex);
    return json_sprintf("%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16, hex + 20);
}

/* All inputs come from the definition's own function there. */
static json_t *inputs_of(void) {
    static const char *const names[] = {"hidden_states",   "topk_idx",
                                        "topk_weight",     "expert_gate_projs",
                                        "expert_up_projs", "expert_down_projs"};
    json_t *inputs = json_object();
    for (size_t i = 0; inputs && i < sizeof names / sizeof *names; i++)
        json_object_set_new(inputs, names[i], json_pack("{s:s}", "type", "custom"));
    return inputs;
}

static json_t *workload_of(const struct record_run *run, const struct case_summary *c) {
    return json_pack("{s:{s:I}, s:o, s:o}", "axes", "batch_seq_len",
                     (json_int_t)c->shape.batch_seq_len, "inputs", inputs_of(), "uuid",
                     uuid_of(run, c->number));
}

/* --- evaluation ------------------------------------------------------------------------------- */

static const char *status_of(const struct case_summary *c) {
    switch (c->status) {
    case STATUS_OK:
    case STATUS_NOISY:
    case STATUS_THROTTLED:
    case STATUS_ABOVE_ROOF:
        return c->correctness.checked && isfinite(c->latency_ns.median) ? "PASSED"
                                                                        : "RUNTIME_ERROR";
    case STATUS_WRONG:
        return c->correctness.checked ? "INCORRECT_NUMERICAL" : "RUNTIME_ERROR";
    case STATUS_TIMEOUT:
        return "TIMEOUT";
    default:
        return "RUNTIME_ERROR";
    }
}

static void set_text(json_t *object, const char *key, const char *text) {
    if (text[0])
        json_object_set_new(object, key, json_text(text));
}

static void set_number(json_t *object, const char *key, double value) {
    if (isfinite(value))
        json_object_set_new(object, key, json_real(value));
}

static json_t *environment_of(const struct record_run *run) {
    char hardware[RECORD_TEXT];
    json_t *libs = json_object();

    snprintf(hardware, sizeof hardware, "%s", run->device.name);
    for (char *c = hardware; *c; c++)
        if (*c == ' ')
            *c = '_';
    set_text(libs, "moesol", run->tool_version);
    set_text(libs, "cuda", run->device.cuda_version);
    set_text(libs, "cupti", run->device.cupti_version);
    set_text(libs, "driver", run->device.driver_version);
    return json_pack("{s:o, s:o}", "hardware", json_text(hardware[0] ? hardware : "unknown"),
                     "libs", libs);
}

static json_t *correctness_of(const struct case_summary *c) {
    const struct record_correctness *found = &c->correctness;
    json_t *correctness = json_object(), *extra = json_object();

    set_number(correctness, "max_relative_error", found->max_rel_error);
    set_number(correctness, "max_absolute_error", found->max_abs_error);
    if (!isnan(found->nan_count))
        json_object_set_new(correctness, "has_nan", json_boolean(found->nan_count > 0));
    if (!isnan(found->inf_count))
        json_object_set_new(correctness, "has_inf", json_boolean(found->inf_count > 0));
    set_number(extra, "matched_ratio", found->matched_ratio);
    set_number(extra, "token_matched_ratio_min", found->token_matched_ratio_min);
    set_number(extra, "atol", c->atol);
    set_number(extra, "rtol", c->rtol);
    set_number(extra, "matched_ratio_needed", c->matched_ratio_needed);
    set_number(extra, "token_matched_ratio_needed", c->token_matched_ratio_needed);
    json_object_set_new(correctness, "extra", extra);
    return correctness;
}

/* The median. The benchmark's own reference was not timed, and its keys have defaults. */
static json_t *performance_of(const struct case_summary *c) {
    return json_pack("{s:f}", "latency_ms", c->latency_ns.median / 1e6);
}

static json_t *log_of(const struct case_summary *c) {
    char log[512];
    snprintf(log, sizeof log, "moesol: status %s%s%s", record_status_names[c->status],
             c->reason[0] ? ": " : "", c->reason);
    if (!isnan(c->latency_ns.low)) {
        size_t used = strlen(log);
        snprintf(log + used, sizeof log - used,
                 "; median of %zu samples, 95 %% interval %.6g to %.6g ms", c->latency_ns.count,
                 c->latency_ns.low / 1e6, c->latency_ns.high / 1e6);
    }
    return json_text(log);
}

static json_t *evaluation_of(const struct record_run *run, const struct case_summary *c) {
    const char *status = status_of(c);
    bool passed = strcmp(status, "PASSED") == 0;
    json_t *evaluation = json_pack(
        "{s:s, s:o, s:o, s:o}", "status", status, "environment", environment_of(run), "timestamp",
        json_text(run->started_at[0] ? run->started_at : "unknown"), "log", log_of(c));

    if (evaluation && (passed || strcmp(status, "INCORRECT_NUMERICAL") == 0))
        json_object_set_new(evaluation, "correctness", correctness_of(c));
    if (evaluation && passed)
        json_object_set_new(evaluation, "performance", performance_of(c));
    return evaluation;
}

static int write_traces(FILE *file, const struct record *record, const struct summary *summary) {
    const struct record_run *run = &record->run;

    for (size_t i = 0; i < summary->case_count; i++) {
        const struct case_summary *c = &summary->cases[i];
        json_t *trace = json_pack("{s:o, s:o, s:o, s:o}", "definition", definition_of(run),
                                  "workload", workload_of(run, c), "solution",
                                  json_text(run->kernel.name), "evaluation", evaluation_of(run, c));
        if (!trace)
            return -1;
        json_dumpf(trace, file, JSON_COMPACT | JSON_REAL_PRECISION(12));
        json_decref(trace);
        fputc('\n', file);
    }
    return 0;
}

const struct export_format export_sol_execbench = {
    .name = "sol-execbench",
    .help = "SOL-ExecBench's trace, JSON Lines, one a case",
    .write = write_traces};
