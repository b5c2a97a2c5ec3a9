/* The SOL report as tidy CSV: one row a case, and one a phase of it (column `phase` filled). Empty
 * fields are not known. */
#include <math.h>

#include "csv.h"
#include "escape.h"
#include "report.h"

static void write_names(FILE *file, const struct report_entry *entry, const struct case_summary *c,
                        const char *phase) {
    escape_csv(file, entry->record.path);
    csv_text(file, entry->record.run.kernel.name);
    csv_text(file, entry->record.run.device.name);
    csv_text(file, entry->record.run.suite_name);
    fprintf(file, ",%d,%lld", c->number, (long long)c->shape.batch_seq_len);
    csv_text(file, phase);
    csv_text(file, record_status_names[c->status]);
}

static void write_latency(FILE *file, const struct stats_summary *latency) {
    csv_number(file, latency->median / 1e6);
    csv_number(file, latency->low / 1e6);
    csv_number(file, latency->high / 1e6);
    csv_number(file, latency->p5 / 1e6);
    csv_number(file, latency->p95 / 1e6);
    fprintf(file, ",%zu", latency->count);
}

static void write_case(FILE *file, const struct report_entry *entry, size_t i) {
    const struct case_summary *c = &entry->summary.cases[i];
    double seconds = c->latency_ns.median / 1e9;

    write_names(file, entry, c, "");
    write_latency(file, &c->latency_ns);
    for (int kind = 0; kind < BOUND_COUNT; kind++)
        csv_number(file, c->bound_ns[kind] / 1e6);
    for (int kind = 0; kind < BOUND_COUNT; kind++)
        csv_number(file, c->fraction[kind]);
    csv_number(file, entry->scored.t_baseline_ms[i]);
    csv_number(file, entry->scored.score[i]);
    csv_number(file, NAN);
    csv_number(file, c->work.bytes);
    csv_number(file, c->work.flop);
    csv_number(file, c->work.bytes / seconds);
    csv_number(file, c->work.flop / seconds);
    fputc('\n', file);
}

/* A phase has one bound: its term of `phased`. */
static void write_phase(FILE *file, const struct report_entry *entry, const struct case_summary *c,
                        const struct phase_summary *phase) {
    write_names(file, entry, c, phase->name);
    write_latency(file, &phase->latency_ns);
    for (int kind = 0; kind < BOUND_COUNT; kind++)
        csv_number(file, kind == BOUND_PHASED ? phase->bound_ns / 1e6 : NAN);
    for (int kind = 0; kind < BOUND_COUNT; kind++)
        csv_number(file, kind == BOUND_PHASED ? phase->fraction : NAN);
    csv_number(file, NAN);
    csv_number(file, NAN);
    csv_number(file, phase->share);
    csv_number(file, phase->work.bytes);
    csv_number(file, phase->work.flop);
    csv_number(file, phase->bytes_per_s);
    csv_number(file, phase->flop_per_s);
    fputc('\n', file);
}

static int write_csv(FILE *file, const struct report *report) {
    fputs("record,kernel,device,suite,case,batch_seq_len,phase,status,latency_ms,latency_low_ms,"
          "latency_high_ms,p5_ms,p95_ms,samples",
          file);
    for (int kind = 0; kind < BOUND_COUNT; kind++)
        fprintf(file, ",t_sol_%s_ms", bounds[kind].name);
    for (int kind = 0; kind < BOUND_COUNT; kind++)
        fprintf(file, ",sol_fraction_%s", bounds[kind].name);
    fputs(",t_baseline_ms,sol_score,share,work_bytes,work_flop,bytes_per_s,flop_per_s\n", file);
    for (size_t r = 0; r < report->count; r++) {
        const struct report_entry *entry = report->entries[r];
        for (size_t i = 0; i < entry->summary.case_count; i++) {
            const struct case_summary *c = &entry->summary.cases[i];
            write_case(file, entry, i);
            for (size_t p = 0; p < c->phase_count; p++)
                write_phase(file, entry, c, &c->phases[p]);
        }
    }
    return 0;
}

const struct report_format report_csv = {.name = "csv", .write = write_csv};
