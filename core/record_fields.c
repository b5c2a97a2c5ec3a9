/* The tables, one row a key: type, range, and whether the key must be there. */
#include "record_fields.h"

#include <math.h>

/* A row needs offsetof() and sizeof of a member, which no function can take. */
#define AT(owner, member) .offset = offsetof(struct owner, member)
#define SIZE(owner, member) .size = sizeof(((struct owner *)0)->member)
#define TEXT(owner, member)                                                                        \
    { .key = #member, .type = FIELD_TEXT, AT(owner, member), SIZE(owner, member) }
#define TEXT_REQUIRED(owner, member)                                                               \
    { .key = #member, .type = FIELD_TEXT, .required = true, AT(owner, member), SIZE(owner, member) }
#define NUMBER(owner, member, low, high)                                                           \
    { .key = #member, .type = FIELD_NUMBER, AT(owner, member), .least = (low), .most = (high) }
#define INTEGER(owner, member, low, high)                                                          \
    { .key = #member, .type = FIELD_INTEGER, AT(owner, member), .least = (low), .most = (high) }
#define INTEGER_REQUIRED(owner, member, low, high)                                                 \
    {                                                                                              \
        .key = #member, .type = FIELD_INTEGER, .required = true, AT(owner, member),                \
        .least = (low), .most = (high)                                                             \
    }
#define BOOL(owner, member)                                                                        \
    { .key = #member, .type = FIELD_BOOL, AT(owner, member) }
#define TRIPLE(owner, member)                                                                      \
    { .key = #member, .type = FIELD_TRIPLE, AT(owner, member), .least = 0, .most = COUNT_MOST }
#define OBJECT(owner, member, table)                                                               \
    { .key = #member, .type = FIELD_OBJECT, AT(owner, member), .inner = &(table) }
#define ARRAY(kind, owner, member, count, limit, table)                                            \
    {                                                                                              \
        .key = #member, .type = kind, AT(owner, member),                                           \
        .count_offset = offsetof(struct owner, count), .count_most = (limit), .least = 0,          \
        .most = LARGEST, .inner = (table)                                                          \
    }
#define NUMBERS(owner, member, count, limit, low)                                                  \
    {                                                                                              \
        .key = #member, .type = FIELD_NUMBERS, AT(owner, member),                                  \
        .count_offset = offsetof(struct owner, count), .count_most = (limit), .least = (low),      \
        .most = LARGEST                                                                            \
    }
#define TABLE(name, line_type, owner, rows)                                                        \
    const struct field_table name = {line_type, rows, sizeof(rows) / sizeof((rows)[0]),            \
                                     sizeof(struct owner)}

/* Ranges. Whole numbers go as far as a double counts without gaps. */
#define COUNT_MOST 9007199254740992.0
#define LARGEST HUGE_VAL

/* Limits on arrays: far above what a run makes, low enough that a hostile file stays small. */
enum {
    SAMPLES_MOST = 1000000,
    PHASES_MOST = 256,
    LAUNCHES_MOST = 4096,
    STAMPS_MOST = 65536,
    CEILINGS_MOST = 256,
    METRICS_MOST = 1024,
    CASE_MOST = 1000000,
    ROUND_MOST = 1000000
};

static const struct field ceiling_rows[] = {
    TEXT_REQUIRED(record_ceiling, what),
    TEXT(record_ceiling, variant),
    {.key = "value",
     .type = FIELD_NUMBER,
     .required = true,
     AT(record_ceiling, value),
     .least = 0,
     .most = LARGEST},
};
static TABLE(ceiling_fields, NULL, record_ceiling, ceiling_rows);

static const struct field device_rows[] = {
    TEXT_REQUIRED(record_device, kind),
    TEXT_REQUIRED(record_device, name),
    TEXT(record_device, uuid_hash),
    TEXT(record_device, compute_capability),
    INTEGER(record_device, sm_count, 0, COUNT_MOST),
    INTEGER(record_device, l2_bytes, 0, COUNT_MOST),
    INTEGER(record_device, memory_bytes, 0, COUNT_MOST),
    TEXT(record_device, driver_version),
    TEXT(record_device, cuda_version),
    TEXT(record_device, cupti_version),
    NUMBER(record_device, power_limit_w, 0, LARGEST),
    TEXT(record_device, ecc),
    TEXT(record_device, mig),
};
static TABLE(device_fields, NULL, record_device, device_rows);

static const struct field kernel_rows[] = {
    TEXT_REQUIRED(record_kernel, name), TEXT(record_kernel, author),
    TEXT(record_kernel, license),       TEXT(record_kernel, source),
    TEXT(record_kernel, source_hash),   TEXT(record_kernel, value_type),
    BOOL(record_kernel, ranked),        BOOL(record_kernel, library_only),
    BOOL(record_kernel, plugin),
};
static TABLE(kernel_fields, NULL, record_kernel, kernel_rows);

static const struct field run_rows[] = {
    TEXT(record_run, tool_version),
    TEXT(record_run, source_revision),
    TEXT(record_run, host),
    TEXT(record_run, command),
    TEXT(record_run, started_at),
    TEXT_REQUIRED(record_run, suite_name),
    TEXT(record_run, suite_hash),
    INTEGER(record_run, suite_case_count, 0, CASE_MOST),
    INTEGER(record_run, seed, 0, COUNT_MOST),
    TEXT(record_run, table_hash),
    TEXT(record_run, clocks_policy),
    TEXT(record_run, counters_level),
    INTEGER(record_run, round_count, 0, ROUND_MOST),
    INTEGER(record_run, samples_asked, 1, SAMPLES_MOST),
    NUMBER(record_run, time_limit_asked_s, 0, LARGEST),
    BOOL(record_run, back_to_back),
    {.key = "device",
     .type = FIELD_OBJECT,
     .required = true,
     AT(record_run, device),
     .inner = &device_fields},
    {.key = "kernel",
     .type = FIELD_OBJECT,
     .required = true,
     AT(record_run, kernel),
     .inner = &kernel_fields},
    ARRAY(FIELD_ARRAY, record_run, ceilings, ceiling_count, CEILINGS_MOST, &ceiling_fields),
};
TABLE(record_run_fields, "run", record_run, run_rows);

static const struct field launch_rows[] = {
    TEXT_REQUIRED(record_launch, name),
    NUMBER(record_launch, count, 0, COUNT_MOST),
    TRIPLE(record_launch, grid),
    TRIPLE(record_launch, block),
    INTEGER(record_launch, registers_per_thread, 0, COUNT_MOST),
    INTEGER(record_launch, shared_memory_bytes, 0, COUNT_MOST),
};
static TABLE(launch_fields, NULL, record_launch, launch_rows);

static const struct field phase_rows[] = {
    TEXT_REQUIRED(record_phase, name),
    ARRAY(FIELD_NUMBERS, record_phase, samples_ns, sample_count, SAMPLES_MOST, NULL),
    NUMBER(record_phase, gap_ns, 0, LARGEST),
    ARRAY(FIELD_ARRAY, record_phase, launches, launch_count, LAUNCHES_MOST, &launch_fields),
};
static TABLE(phase_fields, NULL, record_phase, phase_rows);

static const struct field correctness_rows[] = {
    BOOL(record_correctness, checked),
    NUMBER(record_correctness, matched_ratio, 0, 1),
    NUMBER(record_correctness, token_matched_ratio_min, 0, 1),
    NUMBER(record_correctness, max_abs_error, 0, LARGEST),
    NUMBER(record_correctness, max_rel_error, 0, LARGEST),
    INTEGER(record_correctness, first_failing_token, 0, COUNT_MOST),
    INTEGER(record_correctness, first_failing_element, 0, COUNT_MOST),
    INTEGER(record_correctness, nan_count, 0, COUNT_MOST),
    INTEGER(record_correctness, inf_count, 0, COUNT_MOST),
    INTEGER(record_correctness, tokens_checked, 0, COUNT_MOST),
    INTEGER(record_correctness, reference_tokens_checked, 0, COUNT_MOST),
    NUMBER(record_correctness, reference_matched_ratio, 0, 1),
};
static TABLE(correctness_fields, NULL, record_correctness, correctness_rows);

static const struct field telemetry_rows[] = {
    NUMBER(record_telemetry, sm_clock_mhz_min, 0, LARGEST),
    NUMBER(record_telemetry, sm_clock_mhz_median, 0, LARGEST),
    NUMBER(record_telemetry, sm_clock_mhz_max, 0, LARGEST),
    NUMBER(record_telemetry, sm_clock_mhz_timed, 0, LARGEST),
    NUMBER(record_telemetry, memory_clock_mhz_median, 0, LARGEST),
    NUMBER(record_telemetry, power_w_median, 0, LARGEST),
    NUMBER(record_telemetry, power_w_max, 0, LARGEST),
    NUMBER(record_telemetry, temperature_c_max, -273.15, LARGEST),
    TEXT(record_telemetry, throttle_reasons),
};
static TABLE(telemetry_fields, NULL, record_telemetry, telemetry_rows);

/* The shape is required: every bound and every FLOP comes from it. */
static const struct field case_rows[] = {
    {.key = "case",
     .type = FIELD_INTEGER,
     .required = true,
     AT(record_case, number),
     .least = 1,
     .most = CASE_MOST},
    INTEGER_REQUIRED(record_case, round, 0, ROUND_MOST),
    INTEGER_REQUIRED(record_case, batch_seq_len, 1, 2147483647.0),
    INTEGER_REQUIRED(record_case, hidden_size, 1, 2147483647.0),
    INTEGER_REQUIRED(record_case, moe_intermediate_size, 1, 2147483647.0),
    INTEGER_REQUIRED(record_case, num_experts, 1, 1048576.0),
    INTEGER_REQUIRED(record_case, num_experts_per_tok, 1, 1048576.0),
    NUMBER(record_case, atol, 0, LARGEST),
    NUMBER(record_case, rtol, 0, LARGEST),
    NUMBER(record_case, matched_ratio_needed, 0, 1),
    NUMBER(record_case, token_matched_ratio_needed, 0, 1),
    INTEGER(record_case, valid_slots, 0, COUNT_MOST),
    INTEGER(record_case, experts_hit, 0, COUNT_MOST),
    INTEGER(record_case, rows_min, 0, COUNT_MOST),
    INTEGER(record_case, rows_median, 0, COUNT_MOST),
    INTEGER(record_case, rows_max, 0, COUNT_MOST),
    INTEGER(record_case, padded_rows, 0, COUNT_MOST),
    {.key = "status", .type = FIELD_STATUS, .required = true, AT(record_case, status)},
    TEXT(record_case, reason),
    ARRAY(FIELD_NUMBERS, record_case, samples_ns, sample_count, SAMPLES_MOST, NULL),
    INTEGER(record_case, warmup_count, 0, COUNT_MOST),
    NUMBER(record_case, event_ns, 0, LARGEST),
    NUMBER(record_case, collected_event_ns, 0, LARGEST),
    NUMBER(record_case, idle_share, 0, 1),
    NUMBER(record_case, gap_ns, 0, LARGEST),
    NUMBER(record_case, launch_count, 0, COUNT_MOST),
    OBJECT(record_case, correctness, correctness_fields),
    OBJECT(record_case, timed_correctness, correctness_fields),
    TRIPLE(record_case, checked_iterations),
    TRIPLE(record_case, checked_draws),
    NUMBER(record_case, parent_clock_ratio, 0, LARGEST),
    OBJECT(record_case, telemetry, telemetry_fields),
    ARRAY(FIELD_ARRAY, record_case, phases, phase_count, PHASES_MOST, &phase_fields),
};
TABLE(record_case_fields, "case", record_case, case_rows);

static const struct field phase_counters_rows[] = {
    TEXT_REQUIRED(record_phase_counters, name),
    {.key = "metrics",
     .type = FIELD_METRICS,
     AT(record_phase_counters, metrics),
     .count_offset = offsetof(struct record_phase_counters, metric_count),
     .count_most = METRICS_MOST,
     .least = -LARGEST,
     .most = LARGEST},
};
static TABLE(phase_counters_fields, NULL, record_phase_counters, phase_counters_rows);

static const struct field counters_rows[] = {
    {.key = "case",
     .type = FIELD_INTEGER,
     .required = true,
     AT(record_counters, number),
     .least = 1,
     .most = CASE_MOST},
    TEXT(record_counters, level),
    INTEGER(record_counters, pass_count, 0, COUNT_MOST),
    TEXT(record_counters, reason),
    ARRAY(FIELD_ARRAY, record_counters, phases, phase_count, PHASES_MOST, &phase_counters_fields),
};
TABLE(record_counters_fields, "counters", record_counters, counters_rows);

static const struct field name_rows[] = {
    TEXT_REQUIRED(record_name, name),
};
static TABLE(name_fields, NULL, record_name, name_rows);

static const struct field series_rows[] = {
    TEXT_REQUIRED(record_series, name),
    NUMBERS(record_series, values, value_count, SAMPLES_MOST, -LARGEST),
};
static TABLE(series_fields, NULL, record_series, series_rows);

static const struct field timeline_rows[] = {
    {.key = "case",
     .type = FIELD_INTEGER,
     .required = true,
     AT(record_timeline, number),
     .least = 1,
     .most = CASE_MOST},
    TEXT_REQUIRED(record_timeline, source),
    TEXT(record_timeline, reason),
    NUMBER(record_timeline, span_ns, 0, LARGEST),
    INTEGER(record_timeline, launch_total, 0, COUNT_MOST),
    ARRAY(FIELD_ARRAY, record_timeline, phases, phase_count, PHASES_MOST, &name_fields),
    ARRAY(FIELD_ARRAY, record_timeline, kinds, kind_count, LAUNCHES_MOST, &name_fields),
    NUMBERS(record_timeline, launch_phases, launch_phases_count, LAUNCHES_MOST, 0),
    NUMBERS(record_timeline, launch_kinds, launch_kinds_count, LAUNCHES_MOST, 0),
    NUMBERS(record_timeline, launch_start_ns, launch_count, LAUNCHES_MOST, 0),
    NUMBERS(record_timeline, launch_ns, launch_ns_count, LAUNCHES_MOST, 0),
    NUMBER(record_timeline, interval_asked_ns, 0, LARGEST),
    NUMBER(record_timeline, interval_ns, 0, LARGEST),
    TEXT(record_timeline, alignment),
    NUMBERS(record_timeline, sample_start_ns, sample_count, SAMPLES_MOST, -LARGEST),
    NUMBERS(record_timeline, sample_end_ns, sample_end_count, SAMPLES_MOST, -LARGEST),
    ARRAY(FIELD_ARRAY, record_timeline, series, series_count, METRICS_MOST, &series_fields),
    TEXT(record_timeline, stamp_reason),
    NUMBER(record_timeline, stamped_ns, 0, LARGEST),
    NUMBER(record_timeline, unstamped_ns, 0, LARGEST),
    INTEGER(record_timeline, stamp_runs, 0, COUNT_MOST),
    NUMBER(record_timeline, stamp_step_ns, 0, LARGEST),
    ARRAY(FIELD_ARRAY, record_timeline, stamp_phases, stamp_phase_count, PHASES_MOST, &name_fields),
    NUMBERS(record_timeline, stamp_sms, stamp_sms_count, STAMPS_MOST, 0),
    NUMBERS(record_timeline, stamp_indices, stamp_indices_count, STAMPS_MOST, 0),
    NUMBERS(record_timeline, stamp_tiles, stamp_tiles_count, STAMPS_MOST, 0),
    NUMBERS(record_timeline, stamp_start_ns, stamp_count, STAMPS_MOST, 0),
    NUMBERS(record_timeline, stamp_ns, stamp_ns_count, STAMPS_MOST, 0),
    NUMBERS(record_timeline, stamp_waited_ns, stamp_waited_count, STAMPS_MOST, 0),
    NUMBERS(record_timeline, stamp_inputs_ns, stamp_inputs_count, STAMPS_MOST, 0),
};
TABLE(record_timeline_fields, "timeline", record_timeline, timeline_rows);

static const struct field end_rows[] = {
    TEXT_REQUIRED(record_end, status),
    TEXT(record_end, finished_at),
};
TABLE(record_end_fields, "end", record_end, end_rows);
