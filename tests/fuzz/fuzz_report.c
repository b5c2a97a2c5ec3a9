/* Fuzz target: everything behind the reader. A record from a stranger goes through the analysis and
 * all formats of report, diagnose and export and the roofline's script; no output holds a control
 * character of it, and the JSON is JSON. */
#include <jansson.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../reports/diagnose.h"
#include "../../reports/export.h"
#include "../../reports/report.h"
#include "../../reports/roofline_picture.h"
#include "fuzz.h"

static void check_text(const char *text, size_t length, const char *format) {
    for (size_t i = 0; i < length; i++)
        fuzz_check((unsigned char)text[i] >= 0x20 || text[i] == '\n', "a control character",
                   format);
}

static void write_formats(const struct report *report) {
    for (size_t i = 0; report_formats[i]; i++) {
        char *text;
        size_t length;
        if (!report_formats[i]->write) /* a page with pictures: tests/test_hostile.sh */
            continue;
        FILE *file = open_memstream(&text, &length);
        fuzz_check(report_formats[i]->write(file, report) == 0, "not written",
                   report_formats[i]->name);
        fclose(file);
        check_text(text, length, report_formats[i]->name);
        if (strcmp(report_formats[i]->name, "json") == 0) {
            json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
            fuzz_check(root != NULL, "not JSON", text);
            json_decref(root);
        }
        free(text);
    }
}

static void write_picture(const struct roofline_picture *picture, bool script) {
    char *text;
    size_t length;
    FILE *file = open_memstream(&text, &length);
    if (script)
        roofline_write_gnuplot(file, picture, &roofline_terminals[0]);
    else
        roofline_write_csv(file, picture);
    fclose(file);
    check_text(text, length, script ? "gnuplot" : "CSV");
    fuzz_check(!script || !strchr(text, '`'), "a backquote in a gnuplot script", text);
    free(text);
}

static void draw(const struct summary *summary, enum roofline_by by) {
    struct roofline roofline;
    struct roofline_picture picture;
    struct error err = {0};
    if (roofline_build(summary, 1, by, &roofline, &err))
        return;
    if (roofline_picture_build(summary, 1, &roofline, by, &picture, &err) == 0) {
        write_picture(&picture, true);
        write_picture(&picture, false);
        roofline_layout_free(&picture.layout);
    }
    roofline_free(&roofline);
}

static void diagnose(const struct summary *summary) {
    struct diagnosis diagnosis;
    struct error err = {0};
    if (diagnose_summary(summary, &diagnosis, &err)) {
        fuzz_check_refused(&err);
        return;
    }
    bool *wanted = calloc(diagnosis.count + 1, sizeof *wanted);
    for (size_t i = 0; i < diagnosis.count; i++)
        wanted[i] = true;
    struct diagnose_report report = {summary, &diagnosis, wanted, true};
    for (size_t i = 0; diagnose_formats[i]; i++) {
        char *text;
        size_t length;
        FILE *file = open_memstream(&text, &length);
        fuzz_check(diagnose_formats[i]->write(file, &report) == 0, "not written",
                   diagnose_formats[i]->name);
        fclose(file);
        check_text(text, length, diagnose_formats[i]->name);
        free(text);
    }
    free(wanted);
    diagnosis_free(&diagnosis);
}

/* The formats but CSV are JSON, a line each or as a whole. */
static void check_json_lines(const char *text, size_t length, const char *format) {
    json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
    for (const char *line = text; !root && *line; line += strcspn(line, "\n") + 1) {
        json_t *one = json_loadb(line, strcspn(line, "\n"), JSON_REJECT_DUPLICATES, NULL);
        fuzz_check(one != NULL, "not JSON", format);
        json_decref(one);
    }
    json_decref(root);
}

static void export_record(const struct report_entry *entry) {
    for (size_t i = 0; export_formats[i]; i++) {
        char *text;
        size_t length;
        FILE *file = open_memstream(&text, &length);
        fuzz_check(export_formats[i]->write(file, &entry->record, &entry->summary) == 0,
                   "not written", export_formats[i]->name);
        fclose(file);
        check_text(text, length, export_formats[i]->name);
        if (strcmp(export_formats[i]->name, "csv") != 0)
            check_json_lines(text, length, export_formats[i]->name);
        free(text);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct error err = {0};
    struct report report;
    char record[64];
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    fuzz_check(fd >= 0 && write(fd, data, size) == (ssize_t)size, "no file in memory", "");
    snprintf(record, sizeof record, "/proc/self/fd/%d", fd);
    const char *const paths[] = {record};
    if (report_read(paths, 1, &report, &err)) {
        fuzz_check_refused(&err);
    } else {
        report.explain = true;
        write_formats(&report);
        draw(&report.entries[0]->summary, ROOFLINE_BY_CASE);
        draw(&report.entries[0]->summary, ROOFLINE_BY_PHASE);
        diagnose(&report.entries[0]->summary);
        export_record(report.entries[0]);
        report_free(&report);
    }
    close(fd);
    return 0;
}
