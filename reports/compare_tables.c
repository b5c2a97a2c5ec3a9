/* Tables and lines that the text and the Markdown comparison have in common. */
#include <math.h>
#include <string.h>

#include "../analysis/repeat.h"
#include "compare.h"

const struct compare_format *const compare_formats[] = {&compare_text, &compare_markdown,
                                                        &compare_json, NULL};

static const struct table_column case_columns[] = {
    {"case", false},  {"T", false},      {"A ms", false}, {"B ms", false},
    {"B/A", false},   {"low", false},    {"high", false}, {"A ± %", false},
    {"B ± %", false}, {"verdict", true}, {"phase", true}, {"step", true},
};

/* "gate_up -1.234 ms"; only where there is a difference to explain. */
static void part_cell(const struct compared_case *one, const struct compared_parts *parts,
                      struct table *table) {
    double total_ns = one->b->latency_ns.median - one->a->latency_ns.median;
    const struct compared_part *part = decisive_part(parts, total_ns);

    if (!part || (one->verdict != VERDICT_FASTER && one->verdict != VERDICT_SLOWER))
        table_cell(table, "%s", "");
    else
        table_cell(table, "%s %+.3f ms", part->name, part->difference_ns / 1e6);
}

/* Half of the median's own 95 % interval. */
static void half_width_cell(const struct stats_summary *latency, struct table *table) {
    double half = (latency->high - latency->low) / 2 / latency->median;

    table_cell(table, "%s", number_text(100 * half, 2).s);
}

void compare_case_table(const struct comparison *comparison, struct table *table) {
    table_init(table, case_columns, sizeof case_columns / sizeof *case_columns);
    for (size_t i = 0; i < comparison->count; i++) {
        const struct compared_case *one = &comparison->cases[i];
        table_cell(table, "%d", one->number);
        table_cell(table, "%lld", (long long)one->a->shape.batch_seq_len);
        table_cell(table, "%s", number_text(one->a->latency_ns.median / 1e6, 3).s);
        table_cell(table, "%s", number_text(one->b->latency_ns.median / 1e6, 3).s);
        table_cell(table, "%s", number_text(one->ratio.value, 4).s);
        table_cell(table, "%s", number_text(one->ratio.low, 4).s);
        table_cell(table, "%s", number_text(one->ratio.high, 4).s);
        half_width_cell(&one->a->latency_ns, table);
        half_width_cell(&one->b->latency_ns, table);
        table_cell(table, "%s", verdict_names[one->verdict]);
        part_cell(one, &one->phases, table);
        part_cell(one, &one->steps, table);
    }
}

/* With its sign, unless it is rounded away. */
static void difference_cell(double difference_ns, struct table *table) {
    double ms = difference_ns / 1e6;

    if (isnan(ms))
        table_cell(table, TABLE_UNKNOWN);
    else if (fabs(ms) < 0.0005)
        table_cell(table, "0.000");
    else
        table_cell(table, "%+.3f", ms);
}

void compare_part_table(const struct compared_parts *parts, const char *kind, struct table *table) {
    /* The title of the first column is the caller's. */
    static struct table_column columns[] = {
        {NULL, true}, {"A ms", false}, {"B ms", false}, {"B - A ms", false}};
    double a_ns = 0, b_ns = 0, difference_ns = 0;

    columns[0].title = kind;
    table_init(table, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < parts->count; i++) {
        const struct compared_part *part = &parts->list[i];
        table_cell(table, "%s", part->name);
        table_cell(table, "%s", number_text(part->a_ns / 1e6, 3).s);
        table_cell(table, "%s", number_text(part->b_ns / 1e6, 3).s);
        difference_cell(part->difference_ns, table);
        a_ns += isnan(part->a_ns) ? 0 : part->a_ns;
        b_ns += isnan(part->b_ns) ? 0 : part->b_ns;
        difference_ns += isnan(part->difference_ns) ? 0 : part->difference_ns;
    }
    table_cell(table, "sum");
    table_cell(table, "%s", number_text(a_ns / 1e6, 3).s);
    table_cell(table, "%s", number_text(b_ns / 1e6, 3).s);
    difference_cell(difference_ns, table);
}

void compare_side(const struct summary *summary, char *text, size_t size) {
    const struct record_run *run = &summary->record->run;

    snprintf(text, size, "%s on %s, %s", known_text(run->kernel.name), known_text(run->device.name),
             summary->record->path);
}

static void verdict_line(const struct comparison *comparison, char *line) {
    static const char *const says[VERDICT_COUNT] = {"against A: UNCLEAR", "takes the SAME as A",
                                                    "is FASTER than A", "is SLOWER than A"};

    if (isnan(comparison->ratio.value))
        snprintf(line, COMPARE_LINE, "B %s: no case has a latency in both",
                 says[comparison->verdict]);
    else
        snprintf(line, COMPARE_LINE,
                 "B %s: mean of %zu cases %.3f ms to %.3f ms, ratio %.4f (95 %% interval %.4f to "
                 "%.4f)%s%s",
                 says[comparison->verdict], comparison->suite_count, comparison->mean_a_ns / 1e6,
                 comparison->mean_b_ns / 1e6, comparison->ratio.value, comparison->ratio.low,
                 comparison->ratio.high, comparison->why[0] ? "; " : "", comparison->why);
}

static void decisive_line(const struct comparison *comparison, const struct compared_parts *parts,
                          const char *kind, char *line) {
    double total_ns = comparison->mean_b_ns - comparison->mean_a_ns;
    const struct compared_part *part = decisive_part(parts, total_ns);

    line[0] = '\0';
    if (part && (comparison->verdict == VERDICT_FASTER || comparison->verdict == VERDICT_SLOWER))
        snprintf(line, COMPARE_LINE,
                 "The %s that made most of the difference: %s, %+.3f of %+.3f ms (%.0f %%)%s", kind,
                 part->name, part->difference_ns / 1e6, total_ns / 1e6,
                 part->difference_ns / total_ns * 100,
                 strcmp(part->name, waterfall_rows[STEP_UNEXPLAINED].name) == 0
                     ? "; runs with --counters full explain more"
                     : "");
}

/* Of two runs of one kernel on one device: whether they agree. Returns how many lines. */
static size_t repeat_lines(const struct compare_report *report, char (*lines)[COMPARE_LINE]) {
    struct repeat repeat;

    if (!repeat_applies(report->a, report->b))
        return 0;
    repeat_count(report->comparison, &repeat);
    if (repeat.count == 0)
        return 0;
    snprintf(lines[0], COMPARE_LINE,
             "Two runs of one kernel on one device: the medians agree in %zu of %zu cases, within "
             "the larger of %g %% and their joint 95 %% interval (15 of 16 are asked for)",
             repeat.agree, repeat.count, 100 * REPEAT_LEAST_SHARE);
    snprintf(lines[1], COMPARE_LINE,
             "They differ by %.2f %% at most (case %d); both intervals are under %g %% wide in %zu "
             "of %zu cases, the widest is %.2f %% (%c, case %d)",
             100 * repeat.largest_share, repeat.largest_case, 100 * REPEAT_WIDE_SHARE,
             repeat.narrow, repeat.count, 100 * repeat.widest_share, repeat.widest_side,
             repeat.widest_case);
    return 2;
}

/* Of one kind of device; by so much that a step shows it. */
static bool roofs_differ(const struct roofs *a, const struct roofs *b) {
    const double share = 0.005;

    return fabs(a->bytes_per_s / b->bytes_per_s - 1) > share ||
           fabs(a->flop_per_s / b->flop_per_s - 1) > share;
}

/* What keeps the two from being like for like. */
static size_t caution_lines(const struct compare_report *report, char (*lines)[COMPARE_LINE]) {
    const struct record_run *a = &report->a->record->run, *b = &report->b->record->run;
    const struct comparison *comparison = report->comparison;
    size_t n = 0;

    if (strcmp(a->device.name, b->device.name) != 0)
        snprintf(lines[n++], COMPARE_LINE, "The devices differ: %s and %s",
                 known_text(a->device.name), known_text(b->device.name));
    else if (strcmp(a->device.uuid_hash, b->device.uuid_hash) != 0)
        snprintf(lines[n++], COMPARE_LINE, "Not the same device, but two of one kind");
    const struct roofs *roofs_a = &report->a->measured, *roofs_b = &report->b->measured;
    if (strcmp(a->device.name, b->device.name) == 0 && roofs_differ(roofs_a, roofs_b))
        snprintf(
            lines[n++], COMPARE_LINE,
            "The roofs were measured as %.4g and %.4g TB/s, %.4g and %.4g TFLOP/s: each side's "
            "steps stand on its own",
            roofs_a->bytes_per_s / 1e12, roofs_b->bytes_per_s / 1e12, roofs_a->flop_per_s / 1e12,
            roofs_b->flop_per_s / 1e12);
    if (a->back_to_back != b->back_to_back)
        snprintf(lines[n++], COMPARE_LINE, "One of the runs was back to back");
    if (strcmp(a->counters_level, b->counters_level) != 0)
        snprintf(lines[n++], COMPARE_LINE,
                 "Counters differ (%s and %s): steps that one side lacks are in unexplained",
                 known_text(a->counters_level), known_text(b->counters_level));
    if (comparison->only_a + comparison->only_b > 0)
        snprintf(lines[n++], COMPARE_LINE, "%zu cases are in A only, %zu in B only",
                 comparison->only_a, comparison->only_b);
    if (a->round_count < 2 || b->round_count < 2)
        snprintf(lines[n++], COMPARE_LINE,
                 "A record with one round cannot show what a fresh process changes: its intervals "
                 "are widened by %g %%",
                 COMPARE_ONE_ROUND_SHARE * 100);
    return n;
}

size_t compare_lines(const struct compare_report *report, char (*lines)[COMPARE_LINE]) {
    const struct comparison *comparison = report->comparison;
    size_t n = 0;

    verdict_line(comparison, lines[n++]);
    snprintf(lines[n++], COMPARE_LINE, "Cases: %zu FASTER, %zu SLOWER, %zu SAME, %zu UNCLEAR",
             comparison->verdicts[VERDICT_FASTER], comparison->verdicts[VERDICT_SLOWER],
             comparison->verdicts[VERDICT_SAME], comparison->verdicts[VERDICT_UNCLEAR]);
    n += repeat_lines(report, lines + n);
    decisive_line(comparison, &comparison->phases, "phase", lines[n]);
    n += lines[n][0] != '\0';
    decisive_line(comparison, &comparison->steps, "step", lines[n]);
    n += lines[n][0] != '\0';
    return n + caution_lines(report, lines + n);
}
