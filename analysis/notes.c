/* Notes on a record: how it ended, cases that are not plainly ok, cross-checks that do not agree.
 */
#include "notes.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "../core/stats.h"
#include "sanity.h"

static const char power_cap_reason[] = "sw_power_cap";
static const double cost_share = 0.01; /* that recording may cost */

int notes_add(struct notes *notes, struct error *err, const char *format, ...) {
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

    if (record->cut &&
        notes_add(notes, err,
                  "line %zu of the record is cut short and was left out; the lines before "
                  "it are whole",
                  record->dropped_line) != 0)
        return -1;
    if (!record->end.present)
        return notes_add(notes, err, "the run was cut: the record has no end");
    if (strcmp(record->end.status, "complete") != 0)
        return notes_add(notes, err, "the run ended as: %s", record->end.status);
    return 0;
}

static int note_missing(const struct summary *summary, struct notes *notes, struct error *err) {
    double wanted = summary->record->run.suite_case_count;
    size_t with_latency = 0;

    for (size_t i = 0; i < summary->case_count; i++)
        with_latency += case_has_latency(&summary->cases[i]);
    if (isnan(wanted) || (double)with_latency >= wanted)
        return 0;
    return notes_add(notes, err, "means are over %zu of the suite's %.0f cases", with_latency,
                     wanted);
}

/* The line of a case's round in which events and span of the same iterations are farthest apart,
 * with the span; NULL where no round has both. */
static const struct record_case *worst_events(const struct record *record, int number,
                                              double *span_ns) {
    const struct record_case *worst = NULL;
    double most_ns = -1;

    for (size_t i = 0; i < record->case_count; i++) {
        const struct record_case *line = &record->cases[i];
        if (line->number != number)
            continue;
        double median_ns = stats_quantile(line->samples_ns, line->sample_count, 0.5);
        double apart_ns = fabs(line->collected_event_ns - median_ns);
        if (!(apart_ns > most_ns))
            continue;
        most_ns = apart_ns;
        worst = line;
        *span_ns = median_ns;
    }
    return worst;
}

/* Events around the very iterations that the span is of differ from it by the launches' overhead
 * only, in each round. Those without collection are of other iterations, so that noise comes on
 * top. */
static int note_events(const struct summary *summary, const struct case_summary *c,
                       struct notes *notes, struct error *err) {
    double span_ns = c->latency_ns.median, round_span_ns;
    double allowed_ns = 10e3 + 2e3 * (isnan(c->launch_count) ? 0 : c->launch_count);
    double noise_ns = c->latency_ns.high - c->latency_ns.low;
    double quiet_allowed_ns = fmax(allowed_ns, fmax(cost_share * span_ns, noise_ns));
    const struct record_case *worst = worst_events(summary->record, c->number, &round_span_ns);

    if (worst && fabs(worst->collected_event_ns - round_span_ns) > allowed_ns)
        return notes_add(notes, err,
                         "case %d, round %.0f: CUDA events say %.3f ms, the span of the same "
                         "iterations is %.3f ms: more than %.3f ms apart",
                         c->number, worst->round, worst->collected_event_ns / 1e6,
                         round_span_ns / 1e6, allowed_ns / 1e6);
    if (fabs(c->event_ns - span_ns) > quiet_allowed_ns)
        return notes_add(notes, err,
                         "case %d: CUDA events say %.3f ms without activity records, the span is "
                         "%.3f ms: more than %.3f ms apart",
                         c->number, c->event_ns / 1e6, span_ns / 1e6, quiet_allowed_ns / 1e6);
    return 0;
}

double recording_cost(const struct case_summary *c) {
    return c->collected_event_ns / c->event_ns - 1;
}

/* A difference that the spread of the samples can make is none that can be put down to recording;
 * the report has it all the same, beside the latency. */
static int note_cross_checks(const struct summary *summary, const struct case_summary *c,
                             struct notes *notes, struct error *err) {
    double cost = recording_cost(c);
    double spread = (c->latency_ns.high - c->latency_ns.low) / c->latency_ns.median;

    if (note_events(summary, c, notes, err) != 0)
        return -1;
    if (cost > cost_share && !(cost <= spread))
        return notes_add(notes, err, "case %d: activity records cost %.1f %% of the latency",
                         c->number, cost * 100);
    return 0;
}

static int note_recording(const struct summary *summary, struct notes *notes, struct error *err) {
    double sum = 0, most = -INFINITY;
    size_t measured = 0;
    int number = 0;

    for (size_t i = 0; i < summary->case_count; i++) {
        double cost = recording_cost(&summary->cases[i]);
        if (!isfinite(cost))
            continue;
        measured++;
        sum += cost;
        if (cost > most) {
            most = cost;
            number = summary->cases[i].number;
        }
    }
    if (measured == 0)
        return 0;
    return notes_add(notes, err,
                     "recording costs %+.2f %% of the latency on average over %zu cases, at most "
                     "%+.2f %% (case %d)",
                     100 * sum / (double)measured, measured, 100 * most, number);
}

static int note_case(const struct summary *summary, const struct case_summary *c,
                     struct notes *notes, struct error *err) {
    if ((c->status != STATUS_OK || c->reason[0]) &&
        notes_add(notes, err, "case %d: %s%s%s", c->number, record_status_names[c->status],
                  c->reason[0] ? ": " : "", c->reason) != 0)
        return -1;
    if (case_has_latency(c) && !c->correctness.checked &&
        notes_add(notes, err, "case %d: the output was not checked", c->number) != 0)
        return -1;
    return note_cross_checks(summary, c, notes, err);
}

/* Adds each of a comma-separated list's words that is of the kind asked for and not there yet. */
static bool add_reasons(const char *reasons, bool power_cap, char *out, size_t size) {
    char copy[RECORD_TEXT], *rest = copy;
    bool any = false;

    snprintf(copy, sizeof copy, "%s", reasons);
    for (char *word; (word = strsep(&rest, ","));) {
        size_t used = strlen(out);
        if (*word == '\0' || (strcmp(word, power_cap_reason) == 0) != power_cap)
            continue;
        any = true;
        if (!strstr(out, word))
            snprintf(out + used, size - used, "%s%s", used > 0 ? ", " : "", word);
    }
    return any;
}

static int note_throttling(const struct summary *summary, struct notes *notes, struct error *err) {
    char reasons[2 * RECORD_TEXT] = "", cap[64] = "", limit[48] = "", clocks[64] = "";
    size_t held = 0, capped = 0, count = summary->case_count;
    double limit_w = summary->record->run.device.power_limit_w, slowest_mhz = NAN;

    for (size_t i = 0; i < count; i++) {
        const struct record_telemetry *t = &summary->cases[i].telemetry;
        held += add_reasons(t->throttle_reasons, false, reasons, sizeof reasons);
        if (!add_reasons(t->throttle_reasons, true, cap, sizeof cap))
            continue;
        capped++;
        slowest_mhz = fmin(slowest_mhz, t->sm_clock_mhz_min); /* of NaN and x: x */
    }
    if (!isnan(limit_w))
        snprintf(limit, sizeof limit, " of %.0f W", limit_w);
    if (!isnan(slowest_mhz))
        snprintf(clocks, sizeof clocks, ", down to an SM clock of %.0f MHz", slowest_mhz);
    if (held > 0 && notes_add(notes, err, "clocks were held down in %zu of %zu cases: %s", held,
                              count, reasons) != 0)
        return -1;
    if (capped == 0)
        return 0;
    return notes_add(notes, err,
                     "the power cap%s was active in %zu of %zu cases%s: the device runs so by "
                     "itself; it is no fault of the run",
                     limit, capped, count, clocks);
}

int notes_collect(const struct summary *summary, struct notes *notes, struct error *err) {
    memset(notes, 0, sizeof *notes);
    if (note_end(summary, notes, err) != 0 || note_missing(summary, notes, err) != 0)
        goto fail;
    for (size_t i = 0; i < summary->case_count; i++)
        if (note_case(summary, &summary->cases[i], notes, err) != 0)
            goto fail;
    if (note_throttling(summary, notes, err) != 0 || note_recording(summary, notes, err) != 0 ||
        sanity_note_counters(summary, notes, err) != 0)
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
