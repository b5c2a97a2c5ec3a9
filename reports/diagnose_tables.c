/* Tables and lines that the text and the Markdown diagnosis have in common. */
#include <math.h>

#include "diagnose.h"

const struct diagnose_format *const diagnose_formats[] = {&diagnose_text, &diagnose_markdown,
                                                          &diagnose_json, NULL};

static const struct table_column step_columns[] = {
    {"step", true}, {"ms", false}, {"% latency", false}, {"bound ms", false}, {"from", true},
};

static const char *const short_titles[STEP_COUNT] = {
    [STEP_MEASURED_ROOF] = "roof",  [STEP_EXTRA_BYTES] = "bytes", [STEP_PADDING] = "padding",
    [STEP_TENSOR] = "tensor",       [STEP_IDLE_SMS] = "idle SMs", [STEP_PHASES] = "phases",
    [STEP_BELOW_ROOFS] = "below",   [STEP_CLOCK] = "clock",       [STEP_GAPS] = "gaps",
    [STEP_UNEXPLAINED] = "unexpl.",
};

void diagnose_step_table(const struct waterfall *waterfall, struct table *table) {
    double bound_ns = waterfall->t_sol_ns;

    table_init(table, step_columns, sizeof step_columns / sizeof *step_columns);
    table_cell(table, "%s bound", waterfall->bound);
    table_cell(table, "%s", number_text(bound_ns / 1e6, 3).s);
    table_cell(table, "%s", percent_text(bound_ns / waterfall->latency_ns, 1).s);
    table_cell(table, "%s", number_text(bound_ns / 1e6, 3).s);
    table_cell(table, "%s", "");
    for (int s = 0; s < STEP_COUNT; s++) {
        const struct waterfall_step_size *step = &waterfall->steps[s];
        bound_ns += isnan(step->ns) ? 0 : step->ns;
        table_cell(table, "+ %s", waterfall_rows[s].title);
        table_cell(table, "%s", number_text(step->ns / 1e6, 3).s);
        table_cell(table, "%s", percent_text(step->ns / waterfall->latency_ns, 1).s);
        table_cell(table, "%s", number_text(bound_ns / 1e6, 3).s);
        table_cell(table, "%s%s", isnan(step->ns) ? "not computed: " : "", step->from);
    }
}

void diagnose_case_table(const struct diagnose_report *report, struct table *table) {
    static struct table_column columns[4 + STEP_COUNT] = {
        {"case", false}, {"T", false}, {"latency ms", false}, {"T_SOL ms", false}};

    for (int s = 0; s < STEP_COUNT; s++)
        columns[4 + s] = (struct table_column){short_titles[s], false};
    table_init(table, columns, 4 + STEP_COUNT);
    for (size_t i = 0; i < report->diagnosis->count; i++) {
        const struct case_diagnosis *one = &report->diagnosis->cases[i];
        if (!report->wanted[i])
            continue;
        table_cell(table, "%d", one->summary_case->number);
        table_cell(table, "%lld", (long long)one->summary_case->shape.batch_seq_len);
        table_cell(table, "%s", number_text(one->waterfall.latency_ns / 1e6, 3).s);
        table_cell(table, "%s", number_text(one->waterfall.t_sol_ns / 1e6, 3).s);
        for (int s = 0; s < STEP_COUNT; s++)
            table_cell(table, "%s", number_text(one->waterfall.steps[s].ns / 1e6, 3).s);
    }
}

void diagnose_title(const struct summary *summary, char *text, size_t size) {
    const struct record_run *run = &summary->record->run;

    snprintf(text, size, "%s on %s, suite %s", known_text(run->kernel.name),
             known_text(run->device.name), known_text(run->suite_name));
}

void diagnose_gap(const struct waterfall *waterfall, char *text, size_t size) {
    double latency_ms = waterfall->latency_ns / 1e6, t_sol_ms = waterfall->t_sol_ns / 1e6;

    if (isnan(latency_ms))
        snprintf(text, size, "no latency");
    else if (isnan(t_sol_ms))
        snprintf(text, size, "%.3f ms; no roof of this device is known, so no bound", latency_ms);
    else
        snprintf(text, size, "%.3f ms, %.3f ms above the %s bound of %.3f ms (%.1f %% of it)",
                 latency_ms, latency_ms - t_sol_ms, waterfall->bound, t_sol_ms,
                 t_sol_ms / latency_ms * 100);
}
