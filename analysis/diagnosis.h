/* The diagnosis of a record: for each case and for the suite the waterfall and the findings. */
#ifndef MOESOL_ANALYSIS_DIAGNOSIS_H
#define MOESOL_ANALYSIS_DIAGNOSIS_H

#include "rules.h"
#include "waterfall.h"

struct case_diagnosis {
    const struct case_summary *summary_case; /* the summary's */
    struct waterfall waterfall;
    struct findings findings;
};

struct diagnosis {
    struct case_diagnosis *cases; /* one for each of the summary's, in its order */
    size_t count;
    struct waterfall suite; /* means over the cases that have a bound and a latency */
    size_t suite_count;     /* how many those are */
    struct findings suite_findings;
};

/* Returns 0, or -1 with *err; then nothing is to be freed. `summary` must outlive *diagnosis. */
int diagnose_summary(const struct summary *summary, struct diagnosis *diagnosis, struct error *err);
void diagnosis_free(struct diagnosis *diagnosis);

#endif
