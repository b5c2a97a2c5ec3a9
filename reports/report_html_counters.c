/* Hardware counters: a row a metric, a column a phase; the mean over the cases, then each case. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report_html.h"

#define PHASES_MOST 24
#define METRICS_MOST 256

/* Names in the order in which they first appear. */
struct names {
    const char *list[METRICS_MOST];
    size_t count;
};

static size_t add_name(struct names *names, size_t most, const char *name) {
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->list[i], name) == 0)
            return i;
    if (names->count < most)
        names->list[names->count++] = name;
    return names->count - 1;
}

static void collect_names(const struct record_counters *list, size_t count, struct names *phases,
                          struct names *metrics) {
    for (size_t i = 0; i < count; i++) {
        for (size_t p = 0; p < list[i].phase_count; p++) {
            const struct record_phase_counters *phase = &list[i].phases[p];
            add_name(phases, PHASES_MOST, phase->name);
            for (size_t m = 0; m < phase->metric_count; m++)
                add_name(metrics, METRICS_MOST, phase->metrics[m].name);
        }
    }
}

static double value_of(const struct record_counters *counters, const char *phase,
                       const char *metric) {
    for (size_t p = 0; p < counters->phase_count; p++) {
        const struct record_phase_counters *found = &counters->phases[p];
        for (size_t m = 0; strcmp(found->name, phase) == 0 && m < found->metric_count; m++)
            if (strcmp(found->metrics[m].name, metric) == 0)
                return found->metrics[m].value;
    }
    return NAN;
}

/* Mean over the lines that have the metric. */
static double mean_value(const struct record_counters *list, size_t count, const char *phase,
                         const char *metric) {
    double sum = 0;
    size_t used = 0;

    for (size_t i = 0; i < count; i++) {
        double value = value_of(&list[i], phase, metric);
        if (isnan(value))
            continue;
        sum += value;
        used++;
    }
    return used > 0 ? sum / (double)used : NAN;
}

/* What a metric is counted in, from its name; plain counts have none. */
static const char *base_unit(const char *metric) {
    if (strstr(metric, ".pct"))
        return "%";
    if (strstr(metric, "per_second"))
        return strstr(metric, "bytes") ? "B/s" : strstr(metric, "cycles") ? "Hz" : "/s";
    if (strstr(metric, "time_duration"))
        return "ns";
    return strstr(metric, "bytes") ? "B" : "";
}

/* The whole row in one unit, so that its numbers compare: the power of 1000 of its largest. */
static double row_scale(double most, const char *unit, const char **prefix) {
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P"};
    double scale = 1;
    size_t power = 0;

    while (strcmp(unit, "%") != 0 && most / scale >= 1000 && power + 1 < 6) {
        scale *= 1000;
        power++;
    }
    *prefix = prefixes[power];
    return scale;
}

static void write_unit(struct table *table, const char *unit, const char *prefix) {
    /* "Gns" is no unit. */
    if (strcmp(unit, "ns") == 0)
        table_cell(table, "%s",
                   prefix[0] == 'k'   ? "µs"
                   : prefix[0] == 'M' ? "ms"
                   : prefix[0] == 'G' ? "s"
                                      : "ns");
    else
        table_cell(table, "%s%s", prefix, unit);
}

/* Four digits; what is small beside the row's largest keeps two. */
static struct cell_text counter_text(double value) {
    struct cell_text text;

    if (value == 0)
        return number_text(0, 0);
    if (isnan(value) || fabs(value) >= 0.1)
        return rate_text(value);
    snprintf(text.s, sizeof text.s, "%.2g", value);
    return text;
}

static void metric_row(const struct record_counters *list, size_t count, const char *metric,
                       const struct names *phases, struct table *table) {
    const char *unit = base_unit(metric), *prefix;
    double most = 0;

    for (size_t p = 0; p < phases->count; p++)
        most = fmax(most, fabs(mean_value(list, count, phases->list[p], metric)));
    double scale = row_scale(most, unit, &prefix);
    table_cell(table, "%s", metric);
    write_unit(table, unit, prefix);
    for (size_t p = 0; p < phases->count; p++)
        table_cell(table, "%s",
                   counter_text(mean_value(list, count, phases->list[p], metric) / scale).s);
}

static int write_counters(const struct html_report *html, const struct record_counters *list,
                          size_t count, const char *caption, struct error *err) {
    struct table_column columns[PHASES_MOST + 2] = {{"metric", true}, {"unit", true}};
    struct names phases = {0}, metrics = {0};
    const struct html_table how = {.caption = caption, .unsorted = true};
    struct table table;

    collect_names(list, count, &phases, &metrics);
    for (size_t p = 0; p < phases.count; p++)
        columns[p + 2] = (struct table_column){phases.list[p], false};
    table_init(&table, columns, phases.count + 2);
    for (size_t m = 0; m < metrics.count; m++)
        metric_row(list, count, metrics.list[m], &phases, &table);
    return html_any_table(html->page, &table, &how, err);
}

static int write_each(const struct html_report *html, const struct record *record,
                      struct error *err) {
    char caption[64];

    fputs("<details><summary>Counters of each case</summary>\n", html->page);
    for (size_t i = 0; i < record->counters_count; i++) {
        const struct record_counters *one = &record->counters[i];
        snprintf(caption, sizeof caption, "Case %.0f", one->number);
        if (one->phase_count == 0)
            html_element(html->page, "p", "note", "%s: none: %s", caption, known_text(one->reason));
        else if (write_counters(html, one, 1, caption, err) != 0)
            return -1;
    }
    fputs("</details>\n", html->page);
    return 0;
}

int html_counters(const struct html_report *html, const struct html_record *record,
                  struct error *err) {
    const struct record *of = &record->entry->record;
    size_t with = 0;
    double passes = NAN;

    for (size_t i = 0; i < of->counters_count; i++) {
        with += of->counters[i].phase_count > 0;
        passes = fmax(passes, of->counters[i].pass_count);
    }
    if (with == 0) {
        html_element(html->page, "p", "note", "None were taken%s%s.",
                     of->counters_count > 0 ? ": " : "",
                     of->counters_count > 0 ? known_text(of->counters[0].reason) : "");
        return 0;
    }
    html_element(html->page, "p", NULL,
                 "Level %s, passes: %s, taken in executions of their own with the phases one after "
                 "the other, and not in those that were timed; %zu cases have them. Names are "
                 "CUPTI's.",
                 known_text(of->run.counters_level), number_text(passes, 0).s, with);
    if (write_counters(html, of->counters, of->counters_count,
                       with > 1 ? "Mean over the cases, by phase" : "By phase", err) != 0)
        return -1;
    return with > 1 ? write_each(html, of, err) : 0;
}
