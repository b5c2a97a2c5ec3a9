/* SOL scores of a summarised record: its device's baseline and the bound that scores are against.
 */
#ifndef MOESOL_ANALYSIS_SCORED_H
#define MOESOL_ANALYSIS_SCORED_H

#include "baseline.h"
#include "summary.h"

struct scored {
    enum bound_kind bound;
    char baseline[160]; /* empty: none, `missing` says why */
    char missing[RECORD_TEXT];
    double *t_baseline_ms; /* by position in the summary */
    double *score;
    double mean_score; /* over the cases that have a latency; NaN if one has no score */
};

/* Remembers suites and baselines that it has read, so that many records cost one reading. */
struct scorer;
struct scorer *scorer_new(void);
void scorer_free(struct scorer *scorer);

/* Returns 0, or -1 with *err (a baseline that is there and wrong). A suite that is not found here,
 * or is another version than the record's, gives no scores and says so. */
int score_summary(struct scorer *scorer, const struct summary *summary, struct scored *scored,
                  struct error *err);
void scored_free(struct scored *scored);

#endif
