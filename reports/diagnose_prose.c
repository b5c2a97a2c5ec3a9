/* The diagnosis as plain text for a terminal, and as Markdown that can be pasted into an issue. */
#include <math.h>

#include "diagnose.h"
#include "prose.h"

static void write_findings(FILE *file, const struct prose *prose, const struct findings *findings,
                           double latency_ns) {
    bool markdown = prose->markdown;

    if (findings->count == 0) {
        fputs(markdown ? "\nNo finding is worth half a percent of the latency.\n"
                       : "Findings: none worth half a percent of the latency\n",
              file);
        return;
    }
    fputs(markdown
              ? "\nFindings, most first; each with what it is worth at most (they overlap):\n\n"
              : "Findings, most first (worth at most; they overlap)\n",
          file);
    for (size_t i = 0; i < findings->count; i++) {
        const struct finding *finding = &findings->list[i];
        fprintf(file,
                markdown ? "%zu. **%s**: %.3f ms (%.1f %%)\n" : "%zu. %s: %.3f ms (%.1f %%)\n",
                i + 1, finding->rule->name, finding->ns / 1e6, finding->ns / latency_ns * 100);
        prose_line(file, prose, markdown ? "   - seen: " : "   seen   ", finding->seen);
        prose_line(file, prose, markdown ? "   - means: " : "   means  ", finding->means);
        prose_line(file, prose, markdown ? "   - try: " : "   try    ", finding->try_);
    }
}

static int write_part(FILE *file, const struct prose *prose, const char *title,
                      const struct waterfall *waterfall, const struct findings *findings) {
    struct table table;
    char gap[256];
    int result = 0;

    diagnose_gap(waterfall, gap, sizeof gap);
    fprintf(file, prose->markdown ? "\n### %s: %s\n" : "\n%s: %s\n", title, gap);
    if (isnan(waterfall->latency_ns))
        return 0;
    if (!isnan(waterfall->t_sol_ns)) {
        diagnose_step_table(waterfall, &table);
        fputs(prose->markdown ? "\n" : "", file);
        result = prose->write_table(file, &table);
        table_free(&table);
    }
    fputs(prose->markdown ? "" : "\n", file);
    write_findings(file, prose, findings, waterfall->latency_ns);
    return result;
}

static int write_cases(FILE *file, const struct prose *prose,
                       const struct diagnose_report *report) {
    for (size_t i = 0; i < report->diagnosis->count; i++) {
        const struct case_diagnosis *one = &report->diagnosis->cases[i];
        char title[96];
        if (!report->wanted[i])
            continue;
        snprintf(title, sizeof title, "Case %d, T = %lld", one->summary_case->number,
                 (long long)one->summary_case->shape.batch_seq_len);
        if (write_part(file, prose, title, &one->waterfall, &one->findings) != 0)
            return -1;
    }
    return 0;
}

static int write_suite(FILE *file, const struct prose *prose,
                       const struct diagnose_report *report) {
    const struct diagnosis *diagnosis = report->diagnosis;
    struct table table;
    char title[96];

    snprintf(title, sizeof title, "Suite, mean of %zu case%s", diagnosis->suite_count,
             diagnosis->suite_count == 1 ? "" : "s");
    if (write_part(file, prose, title, &diagnosis->suite, &diagnosis->suite_findings) != 0)
        return -1;
    diagnose_case_table(report, &table);
    return prose_table(file, prose,
                       prose->markdown
                           ? "Cases, steps in ms"
                           : "Cases: steps in ms (`--case C` gives one with its findings)",
                       &table);
}

static int write_all(FILE *file, const struct prose *prose, const struct diagnose_report *report) {
    char title[1024];

    diagnose_title(report->summary, title, sizeof title);
    prose_line(file, prose, prose->markdown ? "## Diagnosis: " : "Diagnosis: ", title);
    return report->some ? write_cases(file, prose, report) : write_suite(file, prose, report);
}

static int write_text(FILE *file, const struct diagnose_report *report) {
    return write_all(file, &prose_text, report);
}

static int write_markdown(FILE *file, const struct diagnose_report *report) {
    return write_all(file, &prose_markdown, report);
}

const struct diagnose_format diagnose_text = {"text", write_text};
const struct diagnose_format diagnose_markdown = {"markdown", write_markdown};
