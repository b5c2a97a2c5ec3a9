/* `moesol roofline`: draws records under their devices' roofs, and writes the points as CSV beside
 * the picture. */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "../core/options.h"
#include "../core/output.h"
#include "commands.h"
#include "gnuplot.h"
#include "report.h"
#include "roofline_picture.h"
#include "roofline_term.h"

static const char *const by_names[] = {"case", "phase", NULL};

/* FILE.svg -> FILE.csv; both have a suffix of four characters. */
static void csv_path(const char *picture, char *path, size_t size) {
    snprintf(path, size, "%.*s.csv", (int)(strlen(picture) - 4), picture);
}

static int write_csv(const struct roofline_picture *picture, const char *output,
                     struct error *err) {
    char path[4096];

    csv_path(output, path, sizeof path);
    FILE *file = output_open(path, err);
    if (!file)
        return -1;
    roofline_write_csv(file, picture);
    return output_close(file, path, err);
}

static int draw(const struct roofline_picture *picture, const char *output, struct error *err) {
    FILE *script = tmpfile();

    if (!script)
        return error_set(err, EXIT_FAILED, "roofline: cannot make a temporary file");
    roofline_write_gnuplot(script, picture, roofline_find_terminal(output));
    int result = gnuplot_run(script, output, err);
    fclose(script);
    return result;
}

/* The width of the terminal that stdout is; 100 where it is none. */
static int terminal_columns(void) {
    struct winsize window = {0};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 1)
        return window.ws_col - 1;
    return 100;
}

/* `output` NULL: in the terminal. */
static int deliver(const struct roofline_picture *picture, const char *output, struct error *err) {
    if (!output)
        return roofline_draw_term(stdout, picture, terminal_columns(), err);
    return write_csv(picture, output, err) == 0 ? draw(picture, output, err) : -1;
}

static int draw_summaries(const struct summary *summaries, size_t count, enum roofline_by by,
                          const char *output, struct error *err) {
    struct roofline_picture picture;
    struct roofline roofline;

    if (roofline_build(summaries, count, by, &roofline, err) != 0)
        return -1;
    int result = -1;
    if (roofline.point_count == 0) {
        error_set(err, EXIT_FAILED, "roofline: no points: no %s of the records has a time",
                  by == ROOFLINE_BY_CASE ? "case" : "phase");
    } else if (roofline_picture_build(summaries, count, &roofline, by, &picture, err) == 0) {
        result = deliver(&picture, output, err);
        roofline_layout_free(&picture.layout);
    }
    roofline_free(&roofline);
    return result;
}

static int draw_records(const struct option_list *paths, enum roofline_by by, const char *output,
                        struct error *err) {
    struct report report;

    if (report_read(paths->values, paths->count, &report, err) != 0)
        return -1;
    struct summary *summaries = malloc((report.count + 1) * sizeof *summaries);
    int result = -1;
    if (summaries) {
        for (size_t i = 0; i < report.count; i++)
            summaries[i] = report.entries[i]->summary; /* borrowed, freed with the report */
        result = draw_summaries(summaries, report.count, by, output, err);
    } else {
        error_set(err, EXIT_FAILED, "out of memory for %zu records", report.count);
    }
    free(summaries);
    report_free(&report);
    return result;
}

static int check_output(const char *output, bool term, struct error *err) {
    if (term && output)
        return error_set(err, EXIT_USAGE, "roofline: --term and -o: give one of them");
    if (term)
        return 0;
    if (!output)
        return error_set(err, EXIT_USAGE,
                         "roofline: no output: give -o FILE.svg, FILE.png or FILE.pdf, or --term");
    if (!roofline_find_terminal(output))
        return error_set(err, EXIT_USAGE,
                         "roofline: unknown suffix: %.200s; end it in .svg, .png or .pdf", output);
    return 0;
}

int cmd_roofline(int argc, char **argv) {
    const char *output = NULL, *by = "case";
    bool term = false;
    const struct option_row rows[] = {
        {.name = "output",
         .letter = 'o',
         .value = "FILE",
         .help = "the picture: FILE.svg, FILE.png or FILE.pdf; FILE.csv gets the points",
         .type = OPTION_TEXT,
         .target.text = &output},
        {.name = "by",
         .letter = 'b',
         .value = "WHAT",
         .help = "one point a case or a phase (default case)",
         .type = OPTION_TEXT,
         .target.text = &by,
         .choices = by_names},
        option_flag("term", "draw in the terminal instead", &term),
    };
    const struct options options = {.command = "roofline",
                                    .arguments = "RECORD... -o FILE|--term [OPTION]...",
                                    .summary = "Draw a roofline of records with gnuplot.",
                                    .rows = rows,
                                    .row_count = sizeof rows / sizeof *rows,
                                    .arguments_least = 1,
                                    .arguments_most = 100000};
    struct option_list records = {0};
    struct error err = {0};
    int code = EXIT_OK;

    if (options_take(&options, argc, argv, &records, &code)) {
        if (check_output(output, term, &err) != 0 ||
            draw_records(&records, strcmp(by, "phase") == 0 ? ROOFLINE_BY_PHASE : ROOFLINE_BY_CASE,
                         output, &err) != 0)
            code = error_print(&err);
        else if (term)
            code = output_finish(EXIT_OK);
    }
    option_list_free(&records);
    return code;
}
