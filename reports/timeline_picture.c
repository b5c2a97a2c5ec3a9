/* Three panels over one time axis. Every name goes through escape_gnuplot(). */
#include "timeline_picture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "escape.h"
#include "export.h"
#include "phase_colours.h"

#define LEFT 100.0
#define RIGHT 1175.0
#define BOTTOM 70.0
#define GAP 38.0  /* has the key of the panel below */
#define TOP 710.0 /* above it: titles, the key of the phases, that of the first panel */
#define LABEL_HEIGHT 21.0
#define ROOF_COLOUR "#B22222"

/* A panel: the metrics that stand in it (titles of sampled_metrics), and its share of the height.
 */
struct panel {
    const char *y_label;
    const char *titles[2];
    const char *colours[2];
    double share;
    bool percent; /* from 0 to 100 */
    bool zero;    /* begins at 0 */
    bool roofs;   /* of the memory */
};

static const struct panel panels[] = {
    {"DRAM, TB/s", {"DRAM read", "DRAM write"}, {"#000000", "#8A5A00"}, 0.45, false, true, true},
    {"activity, %", {"tensor pipe", "SM active"}, {"#000000", "#6A3D9A"}, 0.36, true, true, false},
    {"SM clock, MHz", {"SM clock", NULL}, {"#000000", NULL}, 0.19, false, false, false},
};
enum { PANEL_COUNT = sizeof panels / sizeof *panels };

struct picture {
    FILE *script;
    const struct summary *summary;
    const struct record_timeline *timeline;
    struct phase_run *runs;
    size_t run_count;
    double begin_ms, end_ms;
};

static const struct sampled_metric *find_metric(const char *title) {
    for (size_t m = 0; m < sampled_metric_count; m++)
        if (strcmp(sampled_metrics[m].title, title) == 0)
            return &sampled_metrics[m];
    return NULL;
}

/* --- data and ranges -------------------------------------------------------------------------- */

/* Columns: middle of the sample in ms, then every metric in the order of the table. */
static void write_data(const struct picture *p) {
    fputs("$samples << EOD\n", p->script);
    for (size_t i = 0; i < p->timeline->sample_count; i++) {
        double middle = (p->timeline->sample_start_ns[i] + p->timeline->sample_end_ns[i]) / 2e6;
        if (!isfinite(middle))
            continue;
        fprintf(p->script, "%.9g", middle);
        for (size_t m = 0; m < sampled_metric_count; m++) {
            double value = sampled_value(p->timeline, &sampled_metrics[m], i);
            if (isfinite(value))
                fprintf(p->script, " %.6g", value);
            else
                fputs(" NaN", p->script);
        }
        fputc('\n', p->script);
    }
    fputs("EOD\n", p->script);
}

static void widen(double value, double *least, double *most) {
    if (!isfinite(value))
        return;
    *least = fmin(*least, value);
    *most = fmax(*most, value);
}

static void panel_range(const struct picture *p, const struct panel *panel, double *least,
                        double *most) {
    *least = HUGE_VAL;
    *most = -HUGE_VAL;
    for (size_t t = 0; t < 2 && panel->titles[t]; t++)
        for (size_t i = 0; i < p->timeline->sample_count; i++)
            widen(sampled_value(p->timeline, find_metric(panel->titles[t]), i), least, most);
    if (panel->roofs) {
        widen(p->summary->measured.bytes_per_s / 1e12, least, most);
        widen(p->summary->datasheet.bytes_per_s / 1e12, least, most);
    }
    if (*most < *least || panel->percent) {
        *least = 0;
        *most = panel->percent ? 104 : 1;
        return;
    }
    double room = fmax((*most - *least) * 0.08, *most * 0.02);
    *most += room;
    *least = panel->zero ? 0 : *least - room;
    if (!(*most > *least))
        *most = *least + 1;
}

/* --- pieces ----------------------------------------------------------------------------------- */

static void write_shades(const struct picture *p) {
    for (size_t i = 0; i < p->run_count; i++) {
        if (!isfinite(p->runs[i].start_ns) || !isfinite(p->runs[i].end_ns))
            continue;
        fprintf(p->script,
                "set object %zu rectangle from first %.9g,graph 0 to first %.9g,graph 1 "
                "fc rgb '%s' fs transparent solid 0.28 noborder behind\n",
                i + 1, p->runs[i].start_ns / 1e6, p->runs[i].end_ns / 1e6,
                phase_colour(p->runs[i].phase));
    }
}

/* The phases in the order in which they first come, as squares above the first panel. */
static void write_phase_key(const struct picture *p) {
    double x = LEFT, y = TOP + 62;

    for (size_t i = 0; i < p->timeline->phase_count; i++) {
        const char *phase = p->timeline->phases[i].name;
        double width = 34 + 9.2 * (double)strlen(phase);
        if (x + width > RIGHT)
            break;
        fprintf(p->script,
                "set object %zu rectangle from screen %.5f,%.5f to screen %.5f,%.5f fc rgb '%s' fs "
                "transparent solid 0.45 noborder\n",
                p->run_count + 1 + i, x / TIMELINE_WIDTH, (y - 7) / TIMELINE_HEIGHT,
                (x + 14) / TIMELINE_WIDTH, (y + 7) / TIMELINE_HEIGHT, phase_colour(phase));
        fputs("set label ", p->script);
        escape_gnuplot(p->script, phase);
        fprintf(p->script, " at screen %.5f,%.5f left noenhanced\n", (x + 20) / TIMELINE_WIDTH,
                y / TIMELINE_HEIGHT);
        x += width;
    }
}

static void write_text(const struct picture *p, double y, const char *text, const char *font) {
    fputs("set label ", p->script);
    escape_gnuplot(p->script, text);
    fprintf(p->script, " at screen %.5f,%.5f left noenhanced%s\n", LEFT / TIMELINE_WIDTH,
            y / TIMELINE_HEIGHT, font);
}

static void write_titles(const struct picture *p, const struct case_summary *c) {
    const struct record_run *run = &p->summary->record->run;
    const struct record_timeline *t = p->timeline;
    char text[512];

    snprintf(text, sizeof text, "%s on %s: case %d, T = %lld, one iteration of %.3f ms",
             run->kernel.name, run->device.name, c->number, (long long)c->shape.batch_seq_len,
             t->span_ns / 1e6);
    write_text(p, TOP + 134, text, " font ',14.2'");
    int used = snprintf(text, sizeof text,
                        "a sample every %.3g µs (%.3g µs asked for); phases placed by %s",
                        t->interval_ns / 1e3, t->interval_asked_ns / 1e3,
                        strcmp(t->alignment, "timestamps") == 0
                            ? "the launches' own timestamps"
                            : "the first sample with work, to within one sample");
    if (t->launch_total > (double)t->launch_count && used > 0 && (size_t)used < sizeof text)
        snprintf(text + used, sizeof text - (size_t)used, "; the first %zu of %.0f launches shaded",
                 t->launch_count, t->launch_total);
    write_text(p, TOP + 98, text, "");
    write_phase_key(p);
}

/* A roof as a line across the panel, with its figure in the key. */
static void write_roof(const struct picture *p, double bytes_per_s, const char *name, int dash) {
    if (!isnan(bytes_per_s))
        fprintf(p->script, ", %.6g with lines lw 1.6 dt %d lc rgb '%s' title '%s %.2f TB/s'",
                bytes_per_s / 1e12, dash, ROOF_COLOUR, name, bytes_per_s / 1e12);
}

static void write_curves(const struct picture *p, const struct panel *panel) {
    fputs("plot ", p->script);
    for (size_t t = 0; t < 2 && panel->titles[t]; t++) {
        const struct sampled_metric *metric = find_metric(panel->titles[t]);
        fprintf(p->script, "%s$samples using 1:%zu with histeps lw 1.6 lc rgb '%s' title '%s'",
                t ? ", " : "", (size_t)(metric - sampled_metrics) + 2, panel->colours[t],
                panel->titles[t]);
    }
    if (panel->roofs) {
        write_roof(p, p->summary->measured.bytes_per_s, "measured roof", 1);
        write_roof(p, p->summary->datasheet.bytes_per_s, "datasheet roof", 2);
    }
    fputc('\n', p->script);
}

/* 1, 2 or 5 times a power of ten, so that a panel's numbers stand LABEL_HEIGHT apart at least. */
static double tick_step(double range, double height) {
    double least = range * LABEL_HEIGHT / height, power = pow(10, floor(log10(least)));

    for (double factor = 1; factor < 6; factor = factor == 2 ? 5 : 2 * factor)
        if (factor * power >= least)
            return factor * power;
    return 10 * power;
}

static void write_panel(const struct picture *p, size_t index, double top, double height) {
    const struct panel *panel = &panels[index];
    bool last = index == PANEL_COUNT - 1;
    double least, most;

    panel_range(p, panel, &least, &most);
    fprintf(p->script, "set tmargin at screen %.5f\nset bmargin at screen %.5f\n",
            top / TIMELINE_HEIGHT, (top - height) / TIMELINE_HEIGHT);
    fprintf(p->script, "set yrange [%.6g:%.6g]\nset ytics %.6g\nset ylabel '%s' offset 0.5,0\n",
            least, most, tick_step(most - least, height), panel->y_label);
    fputs(last ? "set format x '%g'\nset xlabel 'time since the first launch, ms'\n"
               : "set format x ''\nunset xlabel\n",
          p->script);
    fprintf(p->script, "set key at screen %.5f,%.5f right top horizontal samplen 2\n",
            RIGHT / TIMELINE_WIDTH, (top + (panel->roofs ? 42 : 24)) / TIMELINE_HEIGHT);
    write_shades(p);
    write_curves(p, panel);
    fputs("unset object\nunset label\n", p->script);
}

static void write_panels(const struct picture *p) {
    double room = TOP - BOTTOM - GAP * (PANEL_COUNT - 1), top = TOP;

    for (size_t i = 0; i < PANEL_COUNT; i++) {
        double height = panels[i].share * room;
        write_panel(p, i, top, height);
        top -= height + GAP;
    }
}

/* Samples before and after the iteration show that the device was idle. */
static void find_time_range(struct picture *p) {
    const struct record_timeline *t = p->timeline;
    p->begin_ms = p->end_ms = 0;
    widen(t->span_ns / 1e6, &p->begin_ms, &p->end_ms);
    for (size_t i = 0; i < t->sample_count; i++) {
        widen(t->sample_start_ns[i] / 1e6, &p->begin_ms, &p->end_ms);
        widen(t->sample_end_ns[i] / 1e6, &p->begin_ms, &p->end_ms);
    }
    if (!(p->end_ms > p->begin_ms))
        p->end_ms = p->begin_ms + 1;
}

int timeline_write_gnuplot(FILE *script, const struct summary *summary,
                           const struct case_summary *case_summary,
                           const struct record_timeline *timeline,
                           const struct roofline_terminal *terminal) {
    struct picture p = {.script = script, .summary = summary, .timeline = timeline};

    p.runs = timeline_phase_runs(timeline, &p.run_count);
    if (!p.runs)
        return -1;
    find_time_range(&p);
    fprintf(script, terminal->format, TIMELINE_WIDTH * terminal->unit_per_pixel,
            TIMELINE_HEIGHT * terminal->unit_per_pixel);
    fprintf(script,
            "set encoding utf8\nset lmargin at screen %.5f\nset rmargin at screen %.5f\n"
            "set xrange [%.9g:%.9g]\n"
            "set tics nomirror scale 0.5\nset border 3 lc rgb '#444444'\n"
            "set grid ytics lt 1 lc rgb '#B8B8B8' lw 0.6\n",
            LEFT / TIMELINE_WIDTH, RIGHT / TIMELINE_WIDTH, p.begin_ms, p.end_ms);
    write_data(&p);
    fputs("set multiplot\n", script);
    write_titles(&p, case_summary);
    write_panels(&p);
    fputs("unset multiplot\n", script);
    free(p.runs);
    return 0;
}
