/* Everything that was measured as tidy CSV: one value a row. `table` says what it is of: sample (a
 * timed iteration), phase, launch kind, counter, or the timeline's launch and sample. */
#include <math.h>

#include "escape.h"
#include "export.h"

/* What stands in every row of a case. */
struct writer {
    FILE *file;
    const struct record *record;
    double number, tokens;
    double round; /* NaN: not of a round */
};

static void number(FILE *file, double value) {
    fputc(',', file);
    if (!isnan(value))
        fprintf(file, "%.15g", value);
}

/* index NaN: there is one such value. Nothing is written of what was not measured. */
static void row(const struct writer *w, const char *table, const char *phase, const char *name,
                const char *quantity, double index, double value) {
    if (isnan(value))
        return;
    fputs(table, w->file);
    fputc(',', w->file);
    escape_csv(w->file, w->record->run.kernel.name);
    fputc(',', w->file);
    escape_csv(w->file, w->record->run.device.name);
    number(w->file, w->number);
    number(w->file, w->tokens);
    number(w->file, w->round);
    fputc(',', w->file);
    escape_csv(w->file, phase);
    fputc(',', w->file);
    escape_csv(w->file, name);
    fputc(',', w->file);
    escape_csv(w->file, quantity);
    number(w->file, index);
    number(w->file, value);
    fputc('\n', w->file);
}

static void write_case(const struct writer *w, const struct record_case *one) {
    for (size_t i = 0; i < one->sample_count; i++)
        row(w, "sample", "", "", "latency_ns", (double)i, one->samples_ns[i]);
    for (size_t p = 0; p < one->phase_count; p++) {
        const struct record_phase *phase = &one->phases[p];
        for (size_t i = 0; i < phase->sample_count; i++)
            row(w, "phase", phase->name, "", "latency_ns", (double)i, phase->samples_ns[i]);
        row(w, "phase", phase->name, "", "gap_ns", NAN, phase->gap_ns);
        for (size_t l = 0; l < phase->launch_count; l++)
            row(w, "launch_kind", phase->name, phase->launches[l].name, "count", NAN,
                phase->launches[l].count);
    }
}

static void write_counters(const struct writer *w, const struct record_counters *counters) {
    for (size_t p = 0; p < counters->phase_count; p++)
        for (size_t m = 0; m < counters->phases[p].metric_count; m++)
            row(w, "counter", counters->phases[p].name, "", counters->phases[p].metrics[m].name,
                NAN, counters->phases[p].metrics[m].value);
}

static void write_timeline(const struct writer *w, const struct record_timeline *timeline) {
    for (size_t i = 0; i < timeline->launch_count; i++) {
        const char *phase = timeline->phases[(size_t)timeline->launch_phases[i]].name;
        const char *kind = timeline->kinds[(size_t)timeline->launch_kinds[i]].name;
        row(w, "timeline_launch", phase, kind, "start_ns", (double)i, timeline->launch_start_ns[i]);
        row(w, "timeline_launch", phase, kind, "duration_ns", (double)i, timeline->launch_ns[i]);
    }
    for (size_t i = 0; i < timeline->sample_count; i++) {
        row(w, "timeline_sample", "", "", "start_ns", (double)i, timeline->sample_start_ns[i]);
        row(w, "timeline_sample", "", "", "end_ns", (double)i, timeline->sample_end_ns[i]);
        for (size_t s = 0; s < timeline->series_count; s++)
            row(w, "timeline_sample", "", "", timeline->series[s].name, (double)i,
                timeline->series[s].values[i]);
    }
}

static void write_stamps(const struct writer *w, const struct record_timeline *timeline) {
    for (size_t i = 0; i < timeline->stamp_count; i++) {
        const char *phase = timeline->stamp_phases[(size_t)timeline->stamp_indices[i]].name;
        const struct {
            const char *name;
            double value;
        } quantities[] = {
            {"sm", timeline->stamp_sms[i]},
            {"tiles", timeline->stamp_tiles[i]},
            {"start_ns", timeline->stamp_start_ns[i]},
            {"duration_ns", timeline->stamp_ns[i]},
            {"waited_ns", timeline->stamp_waited_ns[i]},
            {"inputs_ns", timeline->stamp_inputs_ns[i]},
        };
        for (size_t q = 0; q < sizeof quantities / sizeof *quantities; q++)
            row(w, "timeline_stamp", phase, "", quantities[q].name, (double)i, quantities[q].value);
    }
}

static double tokens_of(const struct record *record, double number_wanted) {
    for (size_t i = 0; i < record->case_count; i++)
        if (record->cases[i].number == number_wanted)
            return record->cases[i].batch_seq_len;
    return NAN;
}

static int write_csv(FILE *file, const struct record *record, const struct summary *summary) {
    struct writer w = {.file = file, .record = record};

    (void)summary;
    fputs("table,kernel,device,case,batch_seq_len,round,phase,name,quantity,index,value\n", file);
    for (size_t i = 0; i < record->case_count; i++) {
        w.number = record->cases[i].number;
        w.tokens = record->cases[i].batch_seq_len;
        w.round = record->cases[i].round;
        write_case(&w, &record->cases[i]);
    }
    w.round = NAN;
    for (size_t i = 0; i < record->counters_count; i++) {
        w.number = record->counters[i].number;
        w.tokens = tokens_of(record, w.number);
        write_counters(&w, &record->counters[i]);
    }
    for (size_t i = 0; i < record->timeline_count; i++) {
        w.number = record->timelines[i].number;
        w.tokens = tokens_of(record, w.number);
        write_timeline(&w, &record->timelines[i]);
        write_stamps(&w, &record->timelines[i]);
    }
    return 0;
}

const struct export_format export_csv = {
    .name = "csv",
    .help = "tidy CSV, one value a row: samples, phases, counters, timeline",
    .write = write_csv};
