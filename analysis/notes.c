/* Notes on a record: how it ended, cases that are not plainly ok, cross-checks that do not agree.
 */
#include "notes.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static int __attribute__((format(printf, 3, 4)))
add(struct notes *notes, struct error *err, const char *format, ...) {
    va_list arguments;
    char(*grown)[NOTE_TEXT] = realloc(notes->lines, (notes->count + 1) * sizeof *grown);

    if (!grown)
        return error_set(err, EXIT_FAILED, "out of memory for notes");
    notes->lines = grown;
    va_start(arguments, format);
    vsnprintf(grown[notes->count++], NOTE_TEXT, format, arguments);
    va_end(arguments);
    return 0;
}

static int note_end(const struct summary *summary, struct notes *notes, struct error *err) {
    const struct record *record = summary->record;

    if (record->cut && add(notes, err,
                           "line %zu of the record is cut short and was left out; the lines before "
                           "it are whole",
                           record->dropped_line) != 0)
        return -1;
    if (!record->end.present)
        return add(notes, err, "the run was cut: the record has no end");
    if (strcmp(record->end.status, "complete") != 0)
        return add(notes, err, "the run ended as: %s", record->end.status);
    return 0;
}

static int note_missing(const struct summary *summary, struct notes *notes, struct error *err) {
    double wanted = summary->record->run.suite_case_count;
    size_t with_latency = 0;

    for (size_t i = 0; i < summary->case_count; i++)
        with_latency += case_has_latency(&summary->cases[i]);
    if (isnan(wanted) || (double)with_latency >= wanted)
        return 0;
    return add(notes, err, "means are over %zu of the suite's %.0f cases", with_latency, wanted);
}

/* Event time and span may differ by the launch overhead only; collecting may cost 1 %. */
static int note_cross_checks(const struct case_summary *c, struct notes *notes, struct error *err) {
    double span_ns = c->latency_ns.median;
    double allowed_ns = 10e3 + 2e3 * (isnan(c->launch_count) ? 0 : c->launch_count);

    if (fabs(c->event_ns - span_ns) > allowed_ns &&
        add(notes, err,
            "case %d: CUDA events say %.3f ms without activity records, the span %.3f ms: more "
            "than %.3f ms apart",
            c->number, c->event_ns / 1e6, span_ns / 1e6, allowed_ns / 1e6) != 0)
        return -1;
    double cost = c->collected_event_ns / c->event_ns - 1;
    if (cost > 0.01)
        return add(notes, err, "case %d: activity records cost %.1f %% of the latency", c->number,
                   cost * 100);
    return 0;
}

static int note_case(const struct case_summary *c, struct notes *notes, struct error *err) {
    if (c->status != STATUS_OK &&
        add(notes, err, "case %d: %s%s%s", c->number, record_status_names[c->status],
            c->reason[0] ? ": " : "", c->reason) != 0)
        return -1;
    if (case_has_latency(c) && !c->correctness.checked &&
        add(notes, err, "case %d: the output was not checked", c->number) != 0)
        return -1;
    return note_cross_checks(c, notes, err);
}

static int note_throttling(const struct summary *summary, struct notes *notes, struct error *err) {
    char reasons[2 * RECORD_TEXT] = "";
    size_t cases = 0;

    for (size_t i = 0; i < summary->case_count; i++) {
        const char *of_case = summary->cases[i].telemetry.throttle_reasons;
        if (!of_case[0])
            continue;
        cases++;
        size_t used = strlen(reasons);
        if (!strstr(reasons, of_case) && used + strlen(of_case) + 2 < sizeof reasons)
            sprintf(reasons + used, "%s%s", used > 0 ? "; " : "", of_case);
    }
    if (cases == 0)
        return 0;
    return add(notes, err, "clocks were held down in %zu of %zu cases: %s", cases,
               summary->case_count, reasons);
}

int notes_collect(const struct summary *summary, struct notes *notes, struct error *err) {
    memset(notes, 0, sizeof *notes);
    if (note_end(summary, notes, err) != 0 || note_missing(summary, notes, err) != 0)
        goto fail;
    for (size_t i = 0; i < summary->case_count; i++)
        if (note_case(&summary->cases[i], notes, err) != 0)
            goto fail;
    if (note_throttling(summary, notes, err) != 0)
        goto fail;
    return 0;
fail:
    notes_free(notes);
    return -1;
}

void notes_free(struct notes *notes) {
    free(notes->lines);
    memset(notes, 0, sizeof *notes);
}
