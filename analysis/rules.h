/* Diagnosis rules: each looks at one case and says what it sees, what that means, what to try and
 * what that would be worth at most. A rule is a row of `rules`: to add one, write its function
 * (rules_*.c), declare it in rules_all.h and add the row. */
#ifndef MOESOL_ANALYSIS_RULES_H
#define MOESOL_ANALYSIS_RULES_H

#include "waterfall.h"

#define FINDINGS_MOST 7
#define FINDING_TEXT 640

struct finding;

struct rule_context {
    const struct case_terms *terms;
    const struct waterfall *waterfall;
};

struct rule {
    const char *name;
    /* Whether it fires; fills finding->ns and finding->seen, and may replace means and try_. */
    bool (*fires)(const struct rule_context *context, struct finding *finding);
    const char *means;
    const char *try_;
};
extern const struct rule rules[];
extern const size_t rule_count;

struct finding {
    const struct rule *rule;
    double ns; /* what it is worth at most, of the case's latency */
    char seen[FINDING_TEXT];
    const char *means,
        *try_; /* the rule's, or of what the rule found; live as long as the program */
};

struct findings {
    struct finding list[FINDINGS_MOST]; /* most ns first */
    size_t count;
};

/* The findings of one case. */
void find_findings(const struct case_terms *terms, const struct waterfall *waterfall,
                   struct findings *findings);

/* One rule only, for tests: whether it fires. */
bool rule_fires(const char *name, const struct case_terms *terms, const struct waterfall *waterfall,
                struct finding *finding);

/* Joins the findings of `count` cases: a rule's ns is the mean over all cases, its texts are those
 * of the case where it is worth most. numbers[i] is the number of case i. */
void join_findings(const struct findings *cases, const int *numbers, size_t count,
                   struct findings *suite);

#endif
