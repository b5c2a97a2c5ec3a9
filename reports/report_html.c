/* The HTML report as its steps: headline, contents, then the sections of its table; several records
 * make a comparison page with the sections of each record below. */
#include "report_html.h"

#include <stdlib.h>
#include <string.h>

#include "../core/output.h"
#include "escape.h"

/* The sections of a record in the order of the page. */
static const struct section_row {
    const char *id, *title;
    html_section *write;
} sections[] = {
    {"measured", "What was measured, and how sure", html_cases},
    {"notes", "Notes", html_notes},
    {"bounds", "Against the speed of light", html_bounds},
    {"roofline", "Roofline", html_rooflines},
    {"latency", "Latency against T", html_latency},
    {"shares", "Where the time goes", html_shares},
    {"phases", "Phases", html_phases},
    {"timeline", "One iteration over time", html_timeline},
    {"waterfall", "From the speed of light to the latency", html_waterfall},
    {"findings", "Findings", html_findings},
    {"counters", "Hardware counters", html_counters},
    {"routing", "Routing", html_routing},
    {"telemetry", "Clocks, power, temperature", html_telemetry},
    {"correctness", "Correctness", html_correctness},
    {"environment", "Environment", html_environment},
    {"reproduce", "How to reproduce it", html_reproduce},
};
#define SECTION_COUNT (sizeof sections / sizeof *sections)

static const char *kernel_of(const struct report_entry *entry) {
    return known_text(entry->record.run.kernel.name);
}

static const char *device_of(const struct report_entry *entry) {
    return known_text(entry->record.run.device.name);
}

static void section_id(const struct html_report *html, const struct html_record *record,
                       const char *id, char *text, size_t size) {
    if (html->report->count > 1)
        snprintf(text, size, "r%zu-%s", record->index + 1, id);
    else
        snprintf(text, size, "%s", id);
}

static void write_contents(const struct html_report *html, const struct html_record *record) {
    char id[64];

    fprintf(html->page, "<nav aria-label=\"Contents%s\"><ol>\n",
            html->report->count > 1 ? " of this record" : "");
    for (size_t s = 0; s < SECTION_COUNT; s++) {
        section_id(html, record, sections[s].id, id, sizeof id);
        fprintf(html->page, "<li><a href=\"#%s\">%s</a></li>\n", id, sections[s].title);
    }
    fputs("</ol></nav>\n", html->page);
}

static int write_record(const struct html_report *html, const struct html_record *record,
                        struct error *err) {
    char id[64];

    if (html_headline(html, record, err) != 0)
        return -1;
    write_contents(html, record);
    for (size_t s = 0; s < SECTION_COUNT; s++) {
        section_id(html, record, sections[s].id, id, sizeof id);
        html_section_begin(html->page, id, record->level, sections[s].title);
        if (sections[s].write(html, record, err) != 0)
            return -1;
        html_section_end(html->page);
    }
    return 0;
}

static void write_record_list(const struct html_report *html) {
    fputs("<nav aria-label=\"Records\"><ol>\n", html->page);
    for (size_t r = 0; r < html->report->count; r++) {
        const struct report_entry *entry = html->report->entries[r];
        fprintf(html->page, "<li><a href=\"#r%zu\">%zu. ", r + 1, r + 1);
        escape_html(html->page, kernel_of(entry));
        fputs(" on ", html->page);
        escape_html(html->page, device_of(entry));
        fputs("</a></li>\n", html->page);
    }
    fputs("</ol></nav>\n", html->page);
}

static int write_comparison_page(const struct html_report *html, struct error *err) {
    char id[32], title[512];

    html_element(html->page, "h1", NULL, "%zu records compared", html->report->count);
    write_record_list(html);
    if (html_comparison(html, err) != 0)
        return -1;
    for (size_t r = 0; r < html->report->count; r++) {
        const struct report_entry *entry = html->report->entries[r];
        snprintf(id, sizeof id, "r%zu", r + 1);
        snprintf(title, sizeof title, "%zu. %s on %s", r + 1, kernel_of(entry), device_of(entry));
        html_section_begin(html->page, id, 2, title);
        if (write_record(html, &html->records[r], err) != 0)
            return -1;
        html_section_end(html->page);
    }
    return 0;
}

static int write_page(const struct html_report *html, struct error *err) {
    const struct report_entry *first = html->report->entries[0];
    char title[512];
    int result;

    if (html->report->count > 1)
        snprintf(title, sizeof title, "moesol: %zu records compared", html->report->count);
    else
        snprintf(title, sizeof title, "moesol: %s on %s", kernel_of(first), device_of(first));
    html_begin(html->page, title);
    if (html->report->count > 1) {
        result = write_comparison_page(html, err);
    } else {
        html_element(html->page, "h1", NULL, "%s on %s", kernel_of(first), device_of(first));
        result = write_record(html, &html->records[0], err);
    }
    html_end(html->page);
    return result;
}

/* --- what the page is made from ----------------------------------------------------------------
 */

static void html_free(struct html_report *html) {
    for (size_t r = 0; html->records && r < html->report->count; r++)
        diagnosis_free(&html->records[r].diagnosis);
    free(html->records);
    free(html->summaries);
}

static int analyse(struct html_report *html, struct error *err) {
    size_t count = html->report->count;

    html->records = calloc(count + 1, sizeof *html->records);
    html->summaries = malloc((count + 1) * sizeof *html->summaries);
    if (!html->records || !html->summaries)
        return error_set(err, EXIT_FAILED, "out of memory for the report");
    for (size_t r = 0; r < count; r++) {
        struct html_record *record = &html->records[r];
        record->entry = html->report->entries[r];
        record->index = r;
        record->level = count > 1 ? 3 : 2;
        html->summaries[r] = record->entry->summary; /* borrowed, freed with the report */
        if (diagnose_summary(&record->entry->summary, &record->diagnosis, err) != 0 ||
            board_best_find(&record->entry->summary, &record->best, err) != 0)
            return -1;
    }
    return 0;
}

static int write_file(struct html_report *html, const char *folder, struct error *err) {
    char path[4096];

    if (snprintf(path, sizeof path, "%s/index.html", folder) >= (int)sizeof path)
        return error_set(err, EXIT_FAILED, "cannot write: %.80s...: the name is too long", folder);
    if (output_make_directory(folder, err) != 0)
        return -1;
    html->page = output_open(path, err);
    if (!html->page)
        return -1;
    int result = write_page(html, err);
    if (output_close(html->page, path, err) != 0)
        result = -1;
    return result;
}

int report_html_write(const char *folder, const struct report *report, struct error *err) {
    struct html_report html = {.report = report};
    int result = analyse(&html, err);

    if (result == 0)
        result = write_file(&html, folder, err);
    html_free(&html);
    return result;
}

const struct report_format report_html = {.name = "html", .write_folder = report_html_write};
