/* A row a multiprocessor over the time of one launch. The pale part of a row's height is the share
 * of the time that went by waiting, so that every rectangle lies where it was in time. */
#include <math.h>
#include <string.h>

#include "escape.h"
#include "gantt.h"
#include "phase_colours.h"

#define LEFT 80.0
#define RIGHT 1175.0
#define BOTTOM 66.0
#define TOP 722.0
#define ROW_HALF 0.5 /* of the distance between two rows */

struct picture {
    FILE *script;
    const struct gantt *gantt;
    bool joined;
};

/* Stamps first .. *next - 1 are drawn as one. */
static size_t last_of(const struct picture *p, size_t first) {
    const struct record_timeline *t = p->gantt->timeline;
    size_t last = first;
    while (p->joined && last + 1 < t->stamp_count &&
           t->stamp_sms[last + 1] == t->stamp_sms[first] &&
           t->stamp_indices[last + 1] == t->stamp_indices[first])
        last++;
    return last;
}

/* Columns: x, y, x low, x high, y low, y middle (above it: waiting), y high. In µs. */
static void write_phase_data(const struct picture *p, size_t phase) {
    const struct record_timeline *t = p->gantt->timeline;
    fprintf(p->script, "$phase%zu << EOD\n", phase);
    for (size_t i = 0, last; i < t->stamp_count; i = last + 1) {
        last = last_of(p, i);
        if ((size_t)t->stamp_indices[i] != phase)
            continue;
        double start = t->stamp_start_ns[i], end = t->stamp_start_ns[last] + t->stamp_ns[last];
        double waited = 0, y = t->stamp_sms[i];
        for (size_t s = i; s <= last; s++)
            waited += t->stamp_waited_ns[s];
        double share = end > start ? fmin(waited / (end - start), 1) : 0;
        fprintf(p->script, "%.7g %.7g %.7g %.7g %.5g %.5g %.5g\n", start / 1e3, y, start / 1e3,
                end / 1e3, y - ROW_HALF, y + ROW_HALF - 2 * ROW_HALF * share, y + ROW_HALF);
    }
    fputs("EOD\n", p->script);
}

static void write_text(const struct picture *p, double x, double y, const char *text,
                       const char *font) {
    fputs("set label ", p->script);
    escape_gnuplot(p->script, text);
    fprintf(p->script, " at screen %.5f,%.5f left noenhanced%s\n", x / GANTT_WIDTH,
            y / GANTT_HEIGHT, font);
}

/* Squares in the colours of the phases above the rows, then what pale and empty mean. */
static void write_key(const struct picture *p) {
    double x = LEFT, y = TOP + 26;
    for (size_t i = 0; i < p->gantt->phase_count; i++) {
        const char *phase = p->gantt->phases[i].name;
        fprintf(p->script,
                "set object %zu rectangle from screen %.5f,%.5f to screen %.5f,%.5f fc rgb '%s' "
                "fs solid 1 noborder\n",
                i + 1, x / GANTT_WIDTH, (y - 7) / GANTT_HEIGHT, (x + 14) / GANTT_WIDTH,
                (y + 7) / GANTT_HEIGHT, phase_colour(phase));
        write_text(p, x + 20, y, phase, "");
        x += 38 + 9.2 * (double)strlen(phase);
    }
    write_text(p, x, y, "pale share of a row: waiting for operands; empty: done, the tail", "");
}

static void write_titles(const struct picture *p, const struct summary *summary,
                         const struct case_summary *c) {
    const struct record_run *run = &summary->record->run;
    char text[512];
    snprintf(text, sizeof text,
             "%s on %s: case %d, T = %lld, one launch of %.3f ms from the inside", run->kernel.name,
             run->device.name, c->number, (long long)c->shape.batch_seq_len,
             p->gantt->span_ns / 1e6);
    write_text(p, LEFT, TOP + 132, text, " font ',14.2'");
    for (enum gantt_line line = GANTT_SHARES; line < GANTT_LINES; line++) {
        gantt_sentence(p->gantt, line, text, sizeof text);
        write_text(p, LEFT, TOP + 104 - 22 * (double)line, text, "");
    }
    write_key(p);
}

static void write_axes(const struct picture *p) {
    const struct record_timeline *t = p->gantt->timeline;
    double most = 0;
    for (size_t i = 0; i < t->stamp_count; i++)
        most = fmax(most, t->stamp_sms[i]);
    fprintf(p->script,
            "set encoding utf8\nset lmargin at screen %.5f\nset rmargin at screen %.5f\n"
            "set bmargin at screen %.5f\nset tmargin at screen %.5f\n",
            LEFT / GANTT_WIDTH, RIGHT / GANTT_WIDTH, BOTTOM / GANTT_HEIGHT, TOP / GANTT_HEIGHT);
    fprintf(p->script,
            "set xrange [0:%.7g]\nset yrange [-1:%.7g]\nset format x '%%g'\n"
            "set xlabel 'time since the first stamp of the launch, µs'\nset ylabel 'SM' "
            "offset 0.5,0\nset tics nomirror scale 0.5\nset border 3 lc rgb '#444444'\n"
            "unset key\n",
            fmax(p->gantt->span_ns * 1.01, 1) / 1e3, most + 1);
}

static void write_plot(const struct picture *p) {
    fputs("plot ", p->script);
    for (size_t i = 0; i < p->gantt->phase_count; i++) {
        const char *colour = phase_colour(p->gantt->phases[i].name);
        fprintf(p->script,
                "%s$phase%zu using 1:2:3:4:5:6 with boxxyerror fs solid 1 noborder lc rgb '%s', "
                "$phase%zu using 1:2:3:4:6:7 with boxxyerror fs transparent solid 0.3 noborder "
                "lc rgb '%s'",
                i ? ", " : "", i, colour, i, colour);
    }
    fputc('\n', p->script);
}

void gantt_write_gnuplot(FILE *script, const struct summary *summary,
                         const struct case_summary *case_summary, const struct gantt *gantt,
                         bool joined, const struct roofline_terminal *terminal) {
    struct picture p = {script, gantt, joined};
    fprintf(script, terminal->format, GANTT_WIDTH * terminal->unit_per_pixel,
            GANTT_HEIGHT * terminal->unit_per_pixel);
    write_axes(&p);
    for (size_t i = 0; i < gantt->phase_count; i++)
        write_phase_data(&p, i);
    write_titles(&p, summary, case_summary);
    write_plot(&p);
}
