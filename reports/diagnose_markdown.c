/* The diagnosis as Markdown that can be pasted into an issue. */
#include <math.h>

#include "diagnose.h"
#include "escape.h"

static void write_item(FILE *file, const char *head, const char *text) {
    fprintf(file, "   - %s: ", head);
    escape_markdown(file, text);
    fputc('\n', file);
}

static void write_findings(FILE *file, const struct findings *findings, double latency_ns) {
    if (findings->count == 0)
        fputs("\nNo finding is worth half a percent of the latency.\n", file);
    else
        fputs("\nFindings, most first; each with what it is worth at most (they overlap):\n\n",
              file);
    for (size_t i = 0; i < findings->count; i++) {
        const struct finding *finding = &findings->list[i];
        fprintf(file, "%zu. **%s**: %.3f ms (%.1f %%)\n", i + 1, finding->rule->name,
                finding->ns / 1e6, finding->ns / latency_ns * 100);
        write_item(file, "seen", finding->seen);
        write_item(file, "means", finding->means);
        write_item(file, "try", finding->try_);
    }
}

static int write_part(FILE *file, const char *title, const struct waterfall *waterfall,
                      const struct findings *findings) {
    struct table table;
    char gap[256];
    int result = 0;

    diagnose_gap(waterfall, gap, sizeof gap);
    fprintf(file, "\n### %s: %s\n", title, gap);
    if (isnan(waterfall->latency_ns))
        return 0;
    if (!isnan(waterfall->t_sol_ns)) {
        diagnose_step_table(waterfall, &table);
        fputc('\n', file);
        result = table_write_markdown(file, &table);
        table_free(&table);
    }
    write_findings(file, findings, waterfall->latency_ns);
    return result;
}

static int write_cases(FILE *file, const struct diagnose_report *report) {
    for (size_t i = 0; i < report->diagnosis->count; i++) {
        const struct case_diagnosis *one = &report->diagnosis->cases[i];
        char title[96];
        if (!report->wanted[i])
            continue;
        snprintf(title, sizeof title, "Case %d, T = %lld", one->summary_case->number,
                 (long long)one->summary_case->shape.batch_seq_len);
        if (write_part(file, title, &one->waterfall, &one->findings) != 0)
            return -1;
    }
    return 0;
}

static int write_suite(FILE *file, const struct diagnose_report *report) {
    const struct diagnosis *diagnosis = report->diagnosis;
    struct table table;
    char title[96];

    snprintf(title, sizeof title, "Suite, mean of %zu cases", diagnosis->suite_count);
    if (write_part(file, title, &diagnosis->suite, &diagnosis->suite_findings) != 0)
        return -1;
    fputs("\n### Cases, steps in ms\n\n", file);
    diagnose_case_table(report, &table);
    int result = table_write_markdown(file, &table);
    table_free(&table);
    return result;
}

static int write_markdown(FILE *file, const struct diagnose_report *report) {
    char title[1024];

    diagnose_title(report->summary, title, sizeof title);
    fputs("## Diagnosis: ", file);
    escape_markdown(file, title);
    fputc('\n', file);
    return report->some ? write_cases(file, report) : write_suite(file, report);
}

const struct diagnose_format diagnose_markdown = {"markdown", write_markdown};
