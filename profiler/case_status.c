/* One rule a function, in the order in which they count. */
#include "case_status.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../core/drift.h"
#include "../core/stats.h"
#include "compare.h"

static void set(struct record_case *record_case, enum record_status status, const char *reason) {
    record_case->status = status;
    snprintf(record_case->reason, sizeof record_case->reason, "%s", reason);
}

static bool incomplete(struct record_case *record_case) {
    const char *reason = record_case->sample_count == 0      ? "no sample was taken"
                         : !record_case->correctness.checked ? "the output was not checked"
                         : !record_case->timed_correctness.checked
                             ? "no timed iteration was checked"
                             : NULL;
    if (!reason)
        return false;
    set(record_case, STATUS_CRASHED, reason);
    return true;
}

/* `of` names the runs that were compared. */
static bool mismatches(const struct suite *suite, const struct record_correctness *c,
                       const char *of, struct record_case *record_case) {
    double matched_ratio = suite_matched_ratio(suite, record_case->number);
    char reason[RECORD_TEXT];
    if (compare_accepted(c, matched_ratio, suite->token_matched_ratio))
        return false;
    if (c->nan_count > 0 || c->inf_count > 0)
        snprintf(reason, sizeof reason,
                 "%s%.0f NaN and %.0f Inf where the reference is finite; first failing: token "
                 "%.0f, element %.0f",
                 of, c->nan_count, c->inf_count, c->first_failing_token, c->first_failing_element);
    else
        snprintf(reason, sizeof reason,
                 "%s%.4f %% of the elements match (%.4g %% needed), %.4f %% of the worst token's "
                 "(%.4g %% needed); first failing: token %.0f, element %.0f",
                 of, 100 * c->matched_ratio, 100 * matched_ratio, 100 * c->token_matched_ratio_min,
                 100 * suite->token_matched_ratio, c->first_failing_token,
                 c->first_failing_element);
    set(record_case, STATUS_WRONG, reason);
    return true;
}

static bool wrong(const struct suite *suite, struct record_case *record_case) {
    const struct record_correctness *c = &record_case->correctness;
    char reason[RECORD_TEXT];
    if (mismatches(suite, c, "", record_case) ||
        mismatches(suite, &record_case->timed_correctness, "timed iterations: ", record_case))
        return true;
    /* Few tokens are sampled, so the bar is the one for a single token. NaN: not in this round. */
    if (c->reference_matched_ratio < suite->token_matched_ratio) {
        snprintf(reason, sizeof reason,
                 "only %.4f %% of the elements of %.0f sampled tokens match the CPU reference",
                 100 * c->reference_matched_ratio, c->reference_tokens_checked);
        set(record_case, STATUS_WRONG, reason);
        return true;
    }
    return false;
}

/* The power cap is no fault of the machine: it is named in the telemetry, and that is all. */
static bool throttled(struct record_case *record_case) {
    const char *reasons = record_case->telemetry.throttle_reasons;
    char reason[RECORD_TEXT];
    if (!strstr(reasons, "thermal") && !strstr(reasons, "hw_slowdown") &&
        !strstr(reasons, "hw_power_brake"))
        return false;
    snprintf(reason, sizeof reason, "throttle reasons while measuring: %.200s", reasons);
    set(record_case, STATUS_THROTTLED, reason);
    return true;
}

static bool drifts(struct record_case *record_case) {
    char reason[RECORD_TEXT];
    struct drift drift = drift_of(record_case->samples_ns, record_case->sample_count);
    if (!drift_found(&drift))
        return false;
    snprintf(reason, sizeof reason,
             "the samples drift by %+.1f %% from the first third to the last (%.0f %% is steady)",
             100 * drift.share, 100 * DRIFT_SHARE);
    set(record_case, STATUS_NOISY, reason);
    return true;
}

static bool noisy(struct record_case *record_case) {
    char reason[RECORD_TEXT];
    const double *samples = record_case->samples_ns;
    struct stats_rounds round = {&samples, &record_case->sample_count, 1};
    struct stats_summary summary = stats_summarize(&round);
    double share = (summary.high - summary.low) / summary.median;
    if (!(share > NOISY_INTERVAL_SHARE)) /* NaN: too few samples in this round to say */
        return false;
    snprintf(reason, sizeof reason, "the interval of the median is %.1f %% wide (%.0f %% is quiet)",
             100 * share, 100 * NOISY_INTERVAL_SHARE);
    set(record_case, STATUS_NOISY, reason);
    return true;
}

void case_status_decide(const struct suite *suite, struct record_case *record_case) {
    if (record_case->status == STATUS_UNSUPPORTED)
        return;
    if (incomplete(record_case) || wrong(suite, record_case) || throttled(record_case) ||
        drifts(record_case) || noisy(record_case))
        return;
    set(record_case, STATUS_OK, "");
}
