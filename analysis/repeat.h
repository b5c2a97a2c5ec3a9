/* Do two runs of the same kernel on one device agree? Each case by one rule, from the medians and
 * their 95 % intervals as the reports show them, with nothing added for comparison's sake. */
#ifndef MOESOL_ANALYSIS_REPEAT_H
#define MOESOL_ANALYSIS_REPEAT_H

#include "compare.h"

/* Medians that differ by no more than this share agree whatever their intervals are. */
#define REPEAT_LEAST_SHARE 0.005
/* An interval (its whole width, by the median) wider than this is not narrow: case_status.h's
 * `noisy`. */
#define REPEAT_WIDE_SHARE 0.02
/* Of 16 cases so many must agree for a suite to be repeatable. */
#define REPEAT_AGREE_SHARE (15.0 / 16.0)

struct repeat {
    size_t count;         /* cases with a latency and an interval on both sides */
    size_t agree;         /* medians within the larger of 0.5 % and their joint interval */
    size_t narrow;        /* both intervals under 2 % */
    double widest_share;  /* of all intervals; NaN where there is none */
    int widest_case;      /* its number */
    char widest_side;     /* 'A' or 'B' */
    bool repeatable;      /* enough of the cases agree */
    double largest_share; /* difference of the medians, of A's; NaN as above */
    int largest_case;
};

/* Whether this is what the records are: the same kernel and source, on the same device. */
bool repeat_applies(const struct summary *a, const struct summary *b);

/* The medians' difference, as a share of A's, and how much of one agrees. The joint interval is the
 * half widths of both, towards each other, added as squares. */
double repeat_difference(const struct stats_summary *a, const struct stats_summary *b);
double repeat_allowed(const struct stats_summary *a, const struct stats_summary *b);

void repeat_count(const struct comparison *comparison, struct repeat *out);

#endif
