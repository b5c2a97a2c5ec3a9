/* Where a record comes from: environment, roofs, and how to measure it again. */
#include <math.h>
#include <string.h>

#include "../core/build_info.h"
#include "report_html.h"
#include "report_tables.h"

static const struct table_column ceiling_columns[] = {
    {"roof", true}, {"how it was measured", true}, {"value", false}, {"unit", true}};

static int write_ceilings(const struct html_report *html, const struct html_record *record,
                          struct error *err) {
    const struct record_run *run = &record->entry->record.run;
    const struct html_table how = {.caption = "Roofs measured on this very device"};
    bool giga = html_in_giga(record->entry);
    struct table table;

    if (run->ceiling_count == 0) {
        html_element(html->page, "p", "note", "No roof was measured.");
        return 0;
    }
    table_init(&table, ceiling_columns, sizeof ceiling_columns / sizeof *ceiling_columns);
    for (size_t i = 0; i < run->ceiling_count; i++) {
        const struct record_ceiling *ceiling = &run->ceilings[i];
        bool flop = strncmp(ceiling->what, "fp", 2) == 0;
        table_cell(&table, "%s", ceiling->what);
        table_cell(&table, "%s", known_text(ceiling->variant));
        table_cell(&table, "%s", rate_text(ceiling->value / (giga ? 1e9 : 1e12)).s);
        table_cell(&table, "%s%s", giga ? "G" : "T", flop ? "FLOP/s" : "B/s");
    }
    return html_any_table(html->page, &table, &how, err);
}

static void write_hash(FILE *page, const char *name, const char *hash) {
    if (hash[0])
        html_fact(page, name, hash);
}

int html_environment(const struct html_report *html, const struct html_record *record,
                     struct error *err) {
    const struct record_run *run = &record->entry->record.run;
    struct report_fact facts[REPORT_FACTS];
    size_t count = report_facts(record->entry, facts);
    char text[256];

    html_facts_begin(html->page);
    for (size_t i = 0; i < count; i++)
        html_fact(html->page, facts[i].name, facts[i].text);
    html_fact(html->page, "host", known_text(run->host));
    write_hash(html->page, "kernel source SHA-256", run->kernel.source_hash);
    write_hash(html->page, "suite SHA-256", run->suite_hash);
    write_hash(html->page, "normal table SHA-256", run->table_hash);
    write_hash(html->page, "device UUID SHA-256", run->device.uuid_hash);
    snprintf(text, sizeof text, "moesol %s (%s)", build_version, build_revision);
    html_fact(html->page, "this page made by", text);
    html_facts_end(html->page);
    return write_ceilings(html, record, err);
}

int html_reproduce(const struct html_report *html, const struct html_record *record,
                   struct error *err) {
    const struct record_run *run = &record->entry->record.run;

    (void)err;
    html_element(html->page, "p", NULL,
                 "The command that made the record, with moesol %s (%s), on %s:",
                 known_text(run->tool_version), known_text(run->source_revision),
                 known_text(run->device.name));
    html_element(html->page, "pre", NULL, "%s", known_text(run->command));
    html_element(html->page, "p", NULL, "This page from that record:");
    html_element(html->page, "pre", NULL, "moesol report %s --format html -o DIR",
                 record->entry->record.path);
    return 0;
}
