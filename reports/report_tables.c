/* Builds the tables of the SOL report. Every figure comes from analysis; here is only what is
 * shown, and with how many digits. */
#include "report_tables.h"

#include <math.h>
#include <string.h>

static const struct table_column case_columns[] = {
    {"case", false},         {"T", false},           {"latency ms", false},
    {"± %", false},          {"recording %", false}, {"published ms", false},
    {"datasheet ms", false}, {"measured ms", false}, {"phased ms", false},
    {"% datasheet", false},  {"% measured", false},  {"% phased", false},
    {"T_b ms", false},       {"score %", false},     {"status", true},
};

static const struct table_column phase_columns[] = {
    {"case", false},     {"T", false},       {"phase", true},     {"time ms", false},
    {"± %", false},      {"share %", false}, {"TB/s", false},     {"TFLOP/s", false},
    {"bound ms", false}, {"% bound", false}, {"launches", false}, {"gap ms", false},
};

static const struct table_column cpu_phase_columns[] = {
    {"case", false},     {"T", false},       {"phase", true},     {"time ms", false},
    {"± %", false},      {"share %", false}, {"GB/s", false},     {"GFLOP/s", false},
    {"bound ms", false}, {"% bound", false}, {"launches", false}, {"gap ms", false},
};

static const struct table_column mean_columns[] = {
    {"kernel", true},      {"device", true},       {"cases", false},       {"mean ms", false},
    {"geomean ms", false}, {"% published", false}, {"% datasheet", false}, {"% measured", false},
    {"% phased", false},   {"score %", false},
};

#define COLUMNS(array) array, sizeof array / sizeof *array

/* Rates of a CPU are in GB/s and GFLOP/s, those of a GPU in TB/s and TFLOP/s. */
static bool in_giga(const struct report_entry *entry) {
    return strcmp(entry->record.run.device.kind, "cpu") == 0;
}

/* Half the interval's width, in percent of the median. */
static struct cell_text half_width(const struct stats_summary *latency) {
    return percent_text(interval_width(latency) / 2, 2);
}

/* What recording costs, signed: noise makes it negative where it costs next to nothing. */
static void recording_cell(const struct case_summary *c, struct table *table) {
    double cost = recording_cost(c);

    if (isfinite(cost))
        table_cell(table, "%+.2f", 100 * cost);
    else
        table_cell(table, TABLE_UNKNOWN);
}

static void case_row(const struct report_entry *entry, size_t i, struct table *table) {
    const struct case_summary *c = &entry->summary.cases[i];

    table_cell(table, "%d", c->number);
    table_cell(table, "%lld", (long long)c->shape.batch_seq_len);
    table_cell(table, "%s", number_text(c->latency_ns.median / 1e6, 3).s);
    table_cell(table, "%s", half_width(&c->latency_ns).s);
    recording_cell(c, table);
    for (int kind = 0; kind < BOUND_COUNT; kind++)
        table_cell(table, "%s", number_text(c->bound_ns[kind] / 1e6, 3).s);
    table_cell(table, "%s", percent_text(c->fraction[BOUND_DATASHEET], 1).s);
    table_cell(table, "%s", percent_text(c->fraction[BOUND_MEASURED], 1).s);
    table_cell(table, "%s", percent_text(c->fraction[BOUND_PHASED], 1).s);
    table_cell(table, "%s", number_text(entry->scored.t_baseline_ms[i], 3).s);
    table_cell(table, "%s", percent_text(entry->scored.score[i], 1).s);
    table_cell(table, "%s", record_status_names[c->status]);
}

static void mean_rows(const struct report_entry *entry, struct table *table) {
    const struct suite_means *means = &entry->means;

    table_cell(table, "mean");
    table_cell(table, "of %zu", means->case_count);
    table_cell(table, "%s", number_text(means->mean_ns / 1e6, 3).s);
    table_cell(table, "%s", "");
    table_cell(table, "%s", "");
    for (int kind = 0; kind < BOUND_COUNT; kind++)
        table_cell(table, "%s", number_text(means->bound_mean_ns[kind] / 1e6, 3).s);
    table_cell(table, "%s", percent_text(means->fraction[BOUND_DATASHEET], 1).s);
    table_cell(table, "%s", percent_text(means->fraction[BOUND_MEASURED], 1).s);
    table_cell(table, "%s", percent_text(means->fraction[BOUND_PHASED], 1).s);
    table_cell(table, "%s", "");
    table_cell(table, "%s", percent_text(entry->scored.mean_score, 1).s);
    table_cell(table, "%s", "");
    table_cell(table, "geomean");
    table_cell(table, "of %zu", means->case_count);
    table_cell(table, "%s", number_text(means->geomean_ns / 1e6, 3).s);
    for (size_t i = 3; i < sizeof case_columns / sizeof *case_columns; i++)
        table_cell(table, "%s", "");
}

void report_case_table(const struct report_entry *entry, struct table *table) {
    table_init(table, COLUMNS(case_columns));
    for (size_t i = 0; i < entry->summary.case_count; i++)
        case_row(entry, i, table);
    mean_rows(entry, table);
}

static void phase_row(const struct case_summary *c, size_t index, double unit,
                      struct table *table) {
    const struct phase_summary *phase = &c->phases[index];

    if (index == 0) {
        table_cell(table, "%d", c->number);
        table_cell(table, "%lld", (long long)c->shape.batch_seq_len);
    } else {
        table_cell(table, "%s", "");
        table_cell(table, "%s", "");
    }
    table_cell(table, "%s", phase->name);
    table_cell(table, "%s", number_text(phase->latency_ns.median / 1e6, 3).s);
    table_cell(table, "%s", half_width(&phase->latency_ns).s);
    table_cell(table, "%s", percent_text(phase->share, 1).s);
    table_cell(table, "%s", rate_text(phase->bytes_per_s / unit).s);
    table_cell(table, "%s", rate_text(phase->flop_per_s / unit).s);
    table_cell(table, "%s", number_text(phase->bound_ns / 1e6, 3).s);
    table_cell(table, "%s", percent_text(phase->fraction, 1).s);
    table_cell(table, "%s", number_text(phase->launch_count, 0).s);
    table_cell(table, "%s", number_text(phase->gap_ns / 1e6, 3).s);
}

/* The idle time between a case's phases, as a row of its own. */
static void gap_row(const struct case_summary *c, struct table *table) {
    table_cell(table, "%s", "");
    table_cell(table, "%s", "");
    table_cell(table, "(idle inside)");
    table_cell(table, "%s", number_text(c->gap_ns / 1e6, 3).s);
    table_cell(table, "%s", "");
    table_cell(table, "%s", percent_text(c->gap_ns / c->latency_ns.median, 1).s);
    for (size_t i = 6; i < sizeof phase_columns / sizeof *phase_columns; i++)
        table_cell(table, "%s", "");
}

void report_phase_table(const struct report_entry *entry, struct table *table) {
    double unit = in_giga(entry) ? 1e9 : 1e12;

    table_init(table, in_giga(entry) ? cpu_phase_columns : phase_columns,
               sizeof phase_columns / sizeof *phase_columns);
    for (size_t i = 0; i < entry->summary.case_count; i++) {
        const struct case_summary *c = &entry->summary.cases[i];
        for (size_t p = 0; p < c->phase_count; p++)
            phase_row(c, p, unit, table);
        if (c->phase_count > 0 && !isnan(c->gap_ns))
            gap_row(c, table);
    }
}

void report_mean_table(const struct report *report, struct table *table) {
    table_init(table, COLUMNS(mean_columns));
    for (size_t i = 0; i < report->count; i++) {
        const struct report_entry *entry = report->entries[i];
        const struct record_run *run = &entry->record.run;
        table_cell(table, "%s", known_text(run->kernel.name));
        table_cell(table, "%s", known_text(run->device.name));
        table_cell(table, "%zu/%s", entry->means.case_count,
                   number_text(run->suite_case_count, 0).s);
        table_cell(table, "%s", number_text(entry->means.mean_ns / 1e6, 3).s);
        table_cell(table, "%s", number_text(entry->means.geomean_ns / 1e6, 3).s);
        for (int kind = 0; kind < BOUND_COUNT; kind++)
            table_cell(table, "%s", percent_text(entry->means.fraction[kind], 1).s);
        table_cell(table, "%s", percent_text(entry->scored.mean_score, 1).s);
    }
}

/* --- facts ------------------------------------------------------------------------------------ */

static void device_fact(const struct record_device *device, char *text, size_t size) {
    bool cpu = strcmp(device->kind, "cpu") == 0;
    char units[48] = "", power[48] = "", memory[48] = "";

    if (!isnan(device->sm_count))
        snprintf(units, sizeof units, ", %.0f %s", device->sm_count, cpu ? "cores" : "SMs");
    if (!isnan(device->power_limit_w))
        snprintf(power, sizeof power, ", power limit %.0f W", device->power_limit_w);
    if (!isnan(device->memory_bytes))
        snprintf(memory, sizeof memory, ", %.1f GB", device->memory_bytes / 1e9);
    snprintf(text, size, "%s%s%s%s%s%s%s%s%s%s", known_text(device->name), units, memory, power,
             device->driver_version[0] ? ", driver " : "", device->driver_version,
             device->cuda_version[0] ? ", CUDA " : "", device->cuda_version,
             device->cupti_version[0] ? ", CUPTI " : "", device->cupti_version);
}

static void roofs_fact(const struct report_entry *entry, char *text, size_t size) {
    const struct record_run *run = &entry->record.run;
    const struct record_ceiling *read = best_ceiling(run, "dram_read");
    const struct record_ceiling *flop = best_ceiling(run, flop_ceiling_name(run));
    const struct roofs *datasheet = &entry->summary.datasheet;
    const struct roofs *measured = &entry->summary.measured;

    bool giga = in_giga(entry);
    double unit = giga ? 1e9 : 1e12;
    const char *prefix = giga ? "G" : "T";

    snprintf(text, size,
             "measured %s %sB/s%s%s%s, %s %sFLOP/s%s%s%s; datasheet %s %sB/s, %s %sFLOP/s",
             rate_text(measured->bytes_per_s / unit).s, prefix, read ? " (" : "",
             read ? read->variant : "", read ? ")" : "", rate_text(measured->flop_per_s / unit).s,
             prefix, flop ? " (" : "", flop ? flop->variant : "", flop ? ")" : "",
             rate_text(datasheet->bytes_per_s / unit).s, prefix,
             rate_text(datasheet->flop_per_s / unit).s, prefix);
}

static void correctness_fact(const struct summary *summary, char *text, size_t size) {
    size_t checked = 0;
    double worst = NAN, worst_token = NAN, max_abs = NAN;

    for (size_t i = 0; i < summary->case_count; i++) {
        const struct record_correctness *correctness = &summary->cases[i].correctness;
        if (!correctness->checked)
            continue;
        checked++;
        worst = fmin(worst, correctness->matched_ratio);
        worst_token = fmin(worst_token, correctness->token_matched_ratio_min);
        max_abs = fmax(max_abs, correctness->max_abs_error);
    }
    snprintf(text, size,
             "%zu of %zu cases checked; elements within tolerance: at least %s %% of a case, %s %% "
             "of a token; largest absolute error %s",
             checked, summary->case_count, percent_text(worst, 3).s, percent_text(worst_token, 2).s,
             number_text(max_abs, 6).s);
}

static void score_fact(const struct report_entry *entry, char *text, size_t size) {
    if (entry->scored.baseline[0])
        snprintf(text, size, "against the %s bound and baseline %s",
                 bounds[entry->scored.bound].name, entry->scored.baseline);
    else
        snprintf(text, size, "none: %s", entry->scored.missing);
}

size_t report_facts(const struct report_entry *entry, struct report_fact *facts) {
    const struct record_run *run = &entry->record.run;
    size_t n = 0;

    facts[n].name = "kernel";
    snprintf(facts[n].text, sizeof facts->text, "%s, by %s, license %s, %s, %s%s",
             known_text(run->kernel.name), known_text(run->kernel.author),
             known_text(run->kernel.license), known_text(run->kernel.source),
             known_text(run->kernel.value_type), run->kernel.ranked ? "" : ", never ranked");
    facts[++n].name = "device";
    device_fact(&run->device, facts[n].text, sizeof facts->text);
    facts[++n].name = "suite";
    snprintf(facts[n].text, sizeof facts->text, "%s, %s cases, seed %s",
             known_text(run->suite_name), number_text(run->suite_case_count, 0).s,
             number_text(run->seed, 0).s);
    facts[++n].name = "run";
    snprintf(facts[n].text, sizeof facts->text, "%s, %s rounds%s, clocks %s, moesol %s (%s)",
             known_text(run->started_at), number_text(run->round_count, 0).s,
             run->back_to_back ? ", back to back" : "", known_text(run->clocks_policy),
             known_text(run->tool_version), known_text(run->source_revision));
    facts[++n].name = "roofs";
    roofs_fact(entry, facts[n].text, sizeof facts->text);
    facts[++n].name = "score";
    score_fact(entry, facts[n].text, sizeof facts->text);
    facts[++n].name = "output";
    correctness_fact(&entry->summary, facts[n].text, sizeof facts->text);
    facts[++n].name = "record";
    snprintf(facts[n].text, sizeof facts->text, "%s", entry->record.path);
    return n + 1;
}
