/* A launch's stamps in words. */
#include <math.h>
#include <string.h>

#include "escape.h"
#include "gantt.h"

static const struct table_column columns[] = {
    {"phase", true}, {"tiles", false},        {"ms per SM: least", false}, {"median", false},
    {"most", false}, {"% of SM time", false}, {"% of it waiting", false}};

static void add_row(struct table *table, const struct gantt_phase *phase, bool tiles) {
    table_cell(table, "%s", phase->name);
    table_cell(table, "%s", number_text(tiles ? phase->tiles : NAN, 0).s);
    table_cell(table, "%s", number_text(phase->least_ns / 1e6, 3).s);
    table_cell(table, "%s", number_text(phase->median_ns / 1e6, 3).s);
    table_cell(table, "%s", number_text(phase->most_ns / 1e6, 3).s);
    table_cell(table, "%s", percent_text(phase->share, 1).s);
    table_cell(table, "%s", percent_text(tiles ? phase->waited_share : NAN, 1).s);
}

void gantt_table(const struct gantt *gantt, struct table *table) {
    table_init(table, columns, sizeof columns / sizeof *columns);
    for (size_t p = 0; p < gantt->phase_count; p++)
        add_row(table, &gantt->phases[p], strcmp(gantt->phases[p].name, GANTT_START) != 0);
    add_row(table, &gantt->tail, false);
}

void gantt_sentence(const struct gantt *gantt, enum gantt_line line, char *text, size_t size) {
    const struct record_timeline *t = gantt->timeline;
    switch (line) {
    case GANTT_SHARES:
        snprintf(text, size,
                 "Of the SMs' time: working %.1f %%, waiting for operands %.1f %%, start %.1f %%, "
                 "tail %.1f %%, not stamped %.1f %%",
                 100 * gantt->working_share, 100 * gantt->waited_share, 100 * gantt->start_share,
                 100 * gantt->tail.share, fabs(100 * gantt->unstamped_share));
        return;
    case GANTT_ENDS:
        snprintf(text, size,
                 "The last SM ends %.0f µs after the median one, the first %.0f µs before it; "
                 "copies waited for other blocks' rows %.0f µs an SM (median; most %.0f)",
                 (gantt->span_ns - gantt->median_end_ns) / 1e3,
                 (gantt->median_end_ns - gantt->first_end_ns) / 1e3, gantt->inputs_median_ns / 1e3,
                 gantt->inputs_most_ns / 1e3);
        return;
    default:
        snprintf(text, size,
                 "What the stamps cost: %+.1f %% (an iteration: %.3f ms with them, %.3f ms "
                 "without; medians of %.0f each, in turn); clock step %.0f ns",
                 100 * gantt->overhead, t->stamped_ns / 1e6, t->unstamped_ns / 1e6, t->stamp_runs,
                 t->stamp_step_ns);
    }
}

int gantt_write_text(FILE *file, const struct summary *summary,
                     const struct case_summary *case_summary, const struct gantt *gantt) {
    const struct record_run *run = &summary->record->run;
    struct table table;
    char text[512];

    snprintf(text, sizeof text, "%s on %s: case %d, T = %lld, one launch of %.3f ms on %zu SMs",
             run->kernel.name, run->device.name, case_summary->number,
             (long long)case_summary->shape.batch_seq_len, gantt->span_ns / 1e6, gantt->sm_count);
    escape_text(file, text);
    fputs("\n\n", file);
    gantt_table(gantt, &table);
    int result = table_write_text(file, &table);
    table_free(&table);
    fputc('\n', file);
    for (enum gantt_line line = GANTT_SHARES; line < GANTT_LINES; line++) {
        gantt_sentence(gantt, line, text, sizeof text);
        fprintf(file, "%s.\n", text);
    }
    return result;
}
