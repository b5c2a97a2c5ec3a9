/* Tables of a record with one row a case: routing, telemetry, correctness. */
#include <math.h>

#include "report_html.h"

#define INIT(table, columns) table_init(&(table), columns, sizeof columns / sizeof *(columns))

static void case_cells(const struct case_summary *c, struct table *table) {
    table_cell(table, "%d", c->number);
    table_cell(table, "%lld", (long long)c->shape.batch_seq_len);
}

/* --- routing ------------------------------------------------------------------------------------
 */

static const struct table_column routing_columns[] = {
    {"case", false},        {"T", false},         {"token-expert slots", false},
    {"experts hit", false}, {"of", false},        {"rows least", false},
    {"rows median", false}, {"rows most", false}, {"most / mean", false},
    {"padded rows", false},
};

static void count_cell(struct table *table, int64_t count, bool known) {
    table_cell(table, "%s", number_text(known ? (double)count : NAN, 0).s);
}

int html_routing(const struct html_report *html, const struct html_record *record,
                 struct error *err) {
    const struct summary *summary = &record->entry->summary;
    struct table table;

    html_element(html->page, "p", NULL,
                 "Of the first draw of each case. Rows are token-expert slots of one expert, over "
                 "all experts; padded rows are those that the kernel computes beyond the slots.");
    INIT(table, routing_columns);
    for (size_t i = 0; i < summary->case_count; i++) {
        const struct case_summary *c = &summary->cases[i];
        const struct moe_routing *routing = &c->routing;
        bool known = c->work.flop > 0;
        double mean = (double)routing->valid_slots / (double)c->shape.num_experts;
        case_cells(c, &table);
        count_cell(&table, routing->valid_slots, known);
        count_cell(&table, routing->experts_hit, known);
        table_cell(&table, "%lld", (long long)c->shape.num_experts);
        count_cell(&table, routing->rows_min, known);
        count_cell(&table, routing->rows_median, known);
        count_cell(&table, routing->rows_max, known);
        table_cell(&table, "%s", number_text(known ? (double)routing->rows_max / mean : NAN, 2).s);
        table_cell(&table, "%s", number_text(c->padded_rows, 0).s);
    }
    return html_case_table(html, record, &table, "Rows per expert", 0, err);
}

/* --- telemetry ----------------------------------------------------------------------------------
 */

static const struct table_column telemetry_columns[] = {
    {"case", false},           {"T", false},
    {"SM MHz least", false},   {"SM MHz median", false},
    {"SM MHz most", false},    {"SM MHz timed", false},
    {"memory MHz", false},     {"power W median", false},
    {"power W most", false},   {"°C most", false},
    {"idle between %", false}, {"held down by", true},
};

int html_telemetry(const struct html_report *html, const struct html_record *record,
                   struct error *err) {
    const struct summary *summary = &record->entry->summary;
    struct table table;

    html_element(html->page, "p", NULL,
                 "Clocks, power limit and modes are never changed by moesol. Power limit: %s W; "
                 "clocks: %s. Least, median and most are readings of NVML; timed is what the SMs' "
                 "own cycle counters say of the timed iterations.",
                 number_text(record->entry->record.run.device.power_limit_w, 0).s,
                 known_text(record->entry->record.run.clocks_policy));
    INIT(table, telemetry_columns);
    for (size_t i = 0; i < summary->case_count; i++) {
        const struct case_summary *c = &summary->cases[i];
        const struct record_telemetry *seen = &c->telemetry;
        case_cells(c, &table);
        table_cell(&table, "%s", number_text(seen->sm_clock_mhz_min, 0).s);
        table_cell(&table, "%s", number_text(seen->sm_clock_mhz_median, 0).s);
        table_cell(&table, "%s", number_text(seen->sm_clock_mhz_max, 0).s);
        table_cell(&table, "%s", number_text(seen->sm_clock_mhz_timed, 0).s);
        table_cell(&table, "%s", number_text(seen->memory_clock_mhz_median, 0).s);
        table_cell(&table, "%s", number_text(seen->power_w_median, 0).s);
        table_cell(&table, "%s", number_text(seen->power_w_max, 0).s);
        table_cell(&table, "%s", number_text(seen->temperature_c_max, 0).s);
        table_cell(&table, "%s", percent_text(c->idle_share, 1).s);
        table_cell(&table, "%s", known_text(seen->throttle_reasons));
    }
    return html_case_table(html, record, &table, "While the samples were taken", 0, err);
}

/* --- correctness --------------------------------------------------------------------------------
 */

static const struct table_column correctness_columns[] = {
    {"case", false},
    {"T", false},
    {"atol", false},
    {"rtol", false},
    {"matched %", false},
    {"needed %", false},
    {"worst token %", false},
    {"needed there %", false},
    {"largest error", false},
    {"NaN", false},
    {"Inf", false},
    {"tokens checked", false},
    {"against the CPU", false},
    {"matched there %", false},
};

/* A share that is not whole never rounds to 100. */
static struct cell_text matched_text(double share) {
    struct cell_text text = percent_text(share, 3);

    if (share < 1 && share * 100 > 99.9995)
        return percent_text(0.99999, 3);
    return text;
}

static void tolerance_cell(double tolerance, struct table *table) {
    if (isnan(tolerance))
        table_cell(table, "%s", TABLE_UNKNOWN);
    else
        table_cell(table, "%.3g", tolerance);
}

static void correctness_row(const struct case_summary *c, struct table *table) {
    const struct record_correctness *seen = &c->correctness;
    bool checked = seen->checked;

    case_cells(c, table);
    tolerance_cell(c->atol, table);
    tolerance_cell(c->rtol, table);
    table_cell(table, "%s", matched_text(checked ? seen->matched_ratio : NAN).s);
    tolerance_cell(100 * c->matched_ratio_needed, table);
    table_cell(table, "%s", matched_text(checked ? seen->token_matched_ratio_min : NAN).s);
    tolerance_cell(100 * c->token_matched_ratio_needed, table);
    table_cell(table, "%s", number_text(checked ? seen->max_abs_error : NAN, 5).s);
    table_cell(table, "%s", number_text(checked ? seen->nan_count : NAN, 0).s);
    table_cell(table, "%s", number_text(checked ? seen->inf_count : NAN, 0).s);
    table_cell(table, "%s", number_text(checked ? seen->tokens_checked : NAN, 0).s);
    table_cell(table, "%s", number_text(seen->reference_tokens_checked, 0).s);
    table_cell(table, "%s", matched_text(seen->reference_matched_ratio).s);
}

int html_correctness(const struct html_report *html, const struct html_record *record,
                     struct error *err) {
    const struct summary *summary = &record->entry->summary;
    struct table table;

    html_element(html->page, "p", NULL,
                 "An element matches where |x − ref| ≤ atol + rtol · |ref|. A case is accepted "
                 "where enough of all elements and of each token's match (main suite: 99 %% and "
                 "90 %%), and no NaN or Inf stands where the reference is finite.");
    INIT(table, correctness_columns);
    for (size_t i = 0; i < summary->case_count; i++)
        correctness_row(&summary->cases[i], &table);
    return html_case_table(html, record, &table, "Output against the reference", 0, err);
}
