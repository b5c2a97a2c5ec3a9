/* Runs waterfall and rules over every case of a record, and joins them for the suite. */
#include "diagnosis.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int diagnose_case(const struct summary *summary, const struct case_summary *summary_case,
                         struct case_diagnosis *out, struct error *err) {
    struct case_terms terms;

    if (case_terms_build(summary, summary_case, &terms, err) != 0)
        return -1;
    out->summary_case = summary_case;
    waterfall_build(&terms, &out->waterfall);
    find_findings(&terms, &out->waterfall, &out->findings);
    case_terms_free(&terms);
    return 0;
}

static int join_suite(struct diagnosis *diagnosis, struct error *err) {
    size_t count = diagnosis->count, used = 0;
    struct waterfall *waterfalls = calloc(count + 1, sizeof *waterfalls);
    struct findings *findings = calloc(count + 1, sizeof *findings);
    int *numbers = calloc(count + 1, sizeof *numbers);
    int result = -1;

    if (!waterfalls || !findings || !numbers) {
        error_set(err, EXIT_FAILED, "out of memory for the diagnosis of %zu cases", count);
        goto done;
    }
    for (size_t i = 0; i < count; i++) {
        const struct case_diagnosis *one = &diagnosis->cases[i];
        waterfalls[i] = one->waterfall;
        if (isnan(one->waterfall.latency_ns))
            continue;
        findings[used] = one->findings;
        numbers[used++] = one->summary_case->number;
    }
    waterfall_mean(waterfalls, count, &diagnosis->suite, &diagnosis->suite_count);
    join_findings(findings, numbers, used, &diagnosis->suite_findings);
    result = 0;
done:
    free(waterfalls);
    free(findings);
    free(numbers);
    return result;
}

int diagnose_summary(const struct summary *summary, struct diagnosis *diagnosis,
                     struct error *err) {
    memset(diagnosis, 0, sizeof *diagnosis);
    diagnosis->cases = calloc(summary->case_count + 1, sizeof *diagnosis->cases);
    if (!diagnosis->cases)
        return error_set(err, EXIT_FAILED, "out of memory for the diagnosis of %zu cases",
                         summary->case_count);
    for (; diagnosis->count < summary->case_count; diagnosis->count++)
        if (diagnose_case(summary, &summary->cases[diagnosis->count],
                          &diagnosis->cases[diagnosis->count], err) != 0)
            goto fail;
    if (join_suite(diagnosis, err) != 0)
        goto fail;
    return 0;
fail:
    diagnosis_free(diagnosis);
    return -1;
}

void diagnosis_free(struct diagnosis *diagnosis) {
    free(diagnosis->cases);
    memset(diagnosis, 0, sizeof *diagnosis);
}
