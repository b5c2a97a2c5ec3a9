/* Figures that cannot be, and series that drift: each check on a record made so that it must fire,
 * and on one where it must not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../analysis/notes.h"
#include "../analysis/summary.h"
#include "../core/drift.h"
#include "../profiler/case_status.h"

#define SAMPLES 30

/* --- drift ------------------------------------------------------------------------------------ */

/* The same noise of +-1 % every time. */
static double noise(size_t i) { return 0.01 * (double)((int)(i * 8 % 21) - 10) / 10; }

static void a_steady_series_does_not_drift(void **state) {
    double samples[SAMPLES];
    (void)state;
    for (size_t i = 0; i < SAMPLES; i++)
        samples[i] = 1e6 * (1 + noise(i));
    struct drift drift = drift_of(samples, SAMPLES);
    assert_false(drift_found(&drift));
}

static void a_trend_drifts(void **state) {
    double samples[SAMPLES];
    (void)state;
    for (size_t i = 0; i < SAMPLES; i++)
        samples[i] = 1e6 * (1 + noise(i) - 0.05 * (double)i / SAMPLES);
    struct drift drift = drift_of(samples, SAMPLES);
    assert_true(drift_found(&drift));
    assert_true(drift.share < -0.025 && drift.share > -0.045);
}

/* In order, but by less than anyone cares; and large, but without order. */
static void size_and_order_are_both_needed(void **state) {
    double samples[SAMPLES];
    (void)state;
    for (size_t i = 0; i < SAMPLES; i++)
        samples[i] = 1e6 * (1 + 0.01 * (double)i / SAMPLES);
    struct drift small = drift_of(samples, SAMPLES);
    assert_true(small.trend_sigma > 5);
    assert_false(drift_found(&small));
    for (size_t i = 0; i < SAMPLES; i++)
        samples[i] = 1e6 * (1 + 20 * noise(i));
    struct drift wild = drift_of(samples, SAMPLES);
    assert_false(drift_found(&wild));
    struct drift brief = drift_of(samples, 5);
    assert_true(isnan(brief.share));
    assert_false(drift_found(&brief));
}

/* --- a record of one case --------------------------------------------------------------------- */

#define MADE_METRICS 4

struct made {
    struct record record;
    struct record_case one;
    struct record_phase phases[2];
    struct record_counters counters;
    struct record_phase_counters counted[2];
    struct record_metric metrics[2][MADE_METRICS];
    double samples_ns[SAMPLES], phase_ns[2][SAMPLES];
};

static void set_metric(struct made *made, int phase, int index, const char *name, double value) {
    struct record_metric *metric = &made->metrics[phase][index];
    snprintf(metric->name, sizeof metric->name, "%s", name);
    metric->value = value;
}

/* Case 2 of the main suite on an H200: gather reads 33.6 MB, gate_up 17.2 GB of weights. */
static struct made *make_record(void) {
    static const char *const names[2] = {"gather", "gate_up"};
    static const double read_bytes[2] = {33.6e6, 17.3e9}, phase_ns[2] = {90e3, 6e6};
    struct made *made = calloc(1, sizeof *made);
    assert_non_null(made);
    record_run_init(&made->record.run);
    strcpy(made->record.run.device.kind, "cuda");
    strcpy(made->record.run.device.name, "NVIDIA H200");
    made->record.run.device.l2_bytes = 60 << 20;
    made->record.run.device.power_limit_w = 700;
    made->record.run.suite_case_count = 1;
    record_case_init(&made->one);
    made->one.number = 2;
    made->one.round = 0;
    made->one.batch_seq_len = 2048, made->one.hidden_size = 8192;
    made->one.moe_intermediate_size = 2048, made->one.num_experts = 256;
    made->one.num_experts_per_tok = 8;
    made->one.valid_slots = 16384, made->one.experts_hit = 256;
    made->one.correctness.checked = true;
    made->one.samples_ns = made->samples_ns;
    made->one.sample_count = SAMPLES;
    made->one.phases = made->phases;
    made->one.phase_count = 2;
    made->counters.number = 2;
    made->counters.phases = made->counted;
    made->counters.phase_count = 2;
    for (int p = 0; p < 2; p++) {
        strcpy(made->phases[p].name, names[p]);
        strcpy(made->counted[p].name, names[p]);
        made->phases[p].samples_ns = made->phase_ns[p];
        made->phases[p].sample_count = SAMPLES;
        for (size_t i = 0; i < SAMPLES; i++)
            made->phase_ns[p][i] = phase_ns[p] * (1 + noise(i));
        made->counted[p].metrics = made->metrics[p];
        made->counted[p].metric_count = MADE_METRICS;
        set_metric(made, p, 0, "gpu__time_duration.sum", phase_ns[p]);
        set_metric(made, p, 1, "dram__bytes_read.sum", read_bytes[p]);
        set_metric(made, p, 2, "dram__bytes_write.sum", 1e6);
        set_metric(made, p, 3, "sm__warps_active.avg.pct_of_peak_sustained_active", 80);
    }
    for (size_t i = 0; i < SAMPLES; i++)
        made->samples_ns[i] = 9e6 * (1 + noise(i));
    made->record.cases = &made->one;
    made->record.case_count = 1;
    made->record.counters = &made->counters;
    made->record.counters_count = 1;
    made->record.end.present = true;
    strcpy(made->record.end.status, "complete");
    return made;
}

/* Checks the case's status and its reason, and one note; NULL: no such line is asked for. */
static void expect(struct made *made, enum record_status status, const char *reason,
                   const char *note) {
    struct summary summary;
    struct notes notes;
    struct error err = {0};
    bool found = false;
    assert_int_equal(summarize_record(&made->record, &summary, &err), 0);
    assert_int_equal(summary.cases[0].status, status);
    if (!strstr(summary.cases[0].reason, reason))
        fail_msg("'%s' does not say '%s'", summary.cases[0].reason, reason);
    assert_int_equal(notes_collect(&summary, &notes, &err), 0);
    for (size_t i = 0; i < notes.count; i++)
        found = found || (note && strstr(notes.lines[i], note));
    if (note && !found)
        fail_msg("no note says '%s' (of %zu, the last: %s)", note, notes.count,
                 notes.count ? notes.lines[notes.count - 1] : "");
    notes_free(&notes);
    summary_free(&summary);
    free(made);
}

static void a_sound_record_is_verified(void **state) {
    (void)state;
    expect(make_record(), STATUS_OK, "", "the cold start is verified in 1 of 1 cases");
}

/* 25.84 GB in 5 ms are more than 4.8 TB/s. */
static void samples_below_the_datasheet_are_impossible(void **state) {
    struct made *made = make_record();
    (void)state;
    made->samples_ns[3] = 5e6;
    expect(made, STATUS_IMPOSSIBLE, "1 of 30 samples are faster than the datasheet bound", NULL);
    made = make_record();
    made->one.experts_hit = 200; /* as every iteration does: 200/256 of the weights are enough */
    made->one.samples_ns[3] = 5e6;
    expect(made, STATUS_OK, "", NULL);
    made = make_record();
    made->one.experts_hit = 200;
    made->one.samples_ns[3] = 4e6;
    expect(made, STATUS_IMPOSSIBLE, "samples are faster than the datasheet bound, 4.208 ms", NULL);
}

/* gate_up: 17.6 GB and 1.1 TFLOP; with the L2 left out twice still 17.5 GB. */
static void phases_beyond_the_datasheet_are_impossible(void **state) {
    struct made *made = make_record();
    (void)state;
    for (size_t i = 0; i < SAMPLES; i++)
        made->phase_ns[1][i] = 3.5e6;
    expect(made, STATUS_IMPOSSIBLE, "phase gate_up takes 3.5000 ms", "case 2: impossible");
    made = make_record();
    for (size_t i = 0; i < SAMPLES; i++) /* 302 MB in 60 us: all but 176 MB may be the L2's */
        made->phase_ns[0][i] = 60e3;
    expect(made, STATUS_OK, "", NULL);
}

static void drifting_samples_are_marked(void **state) {
    struct made *made = make_record();
    (void)state;
    for (size_t i = 0; i < SAMPLES; i++)
        made->samples_ns[i] = 9e6 * (1 + 0.06 * (double)i / SAMPLES);
    expect(made, STATUS_NOISY, "the samples of round 0 drift by +", "case 2: noisy");
}

/* What the run itself says of a round, before there is a summary. */
static void a_round_that_drifts_is_noisy(void **state) {
    static const struct suite suite = {.matched_ratio = 0.99, .token_matched_ratio = 0.9};
    struct made *made = make_record();
    struct record_case *c = &made->one;
    (void)state;
    c->correctness.matched_ratio = c->correctness.token_matched_ratio_min = 1;
    c->timed_correctness = c->correctness;
    case_status_decide(&suite, c);
    assert_int_equal(c->status, STATUS_OK);
    for (size_t i = 0; i < SAMPLES; i++)
        made->samples_ns[i] = 9e6 * (1 + 0.06 * (double)i / SAMPLES);
    case_status_decide(&suite, c);
    assert_int_equal(c->status, STATUS_NOISY);
    assert_non_null(strstr(c->reason, "the samples drift by +4."));
    strcpy(c->telemetry.throttle_reasons, "sw_thermal");
    case_status_decide(&suite, c);
    assert_int_equal(c->status, STATUS_THROTTLED);
    free(made);
}

static void counters_that_cannot_be_are_named(void **state) {
    struct made *made = make_record();
    (void)state;
    made->metrics[1][3].value = 104;
    expect(made, STATUS_OK, "", "phase gate_up: counter sm__warps_active");
    made = make_record();
    made->metrics[1][0].value = 3e6; /* 17.3 GB in 3 ms */
    expect(made, STATUS_OK, "", "5.767 TB/s of DRAM traffic, 120 % of the datasheet");
}

static void a_warm_start_is_seen(void **state) {
    struct made *made = make_record();
    (void)state;
    made->metrics[0][1].value = 1e6;
    expect(made, STATUS_OK, "",
           "phase gather: not cold: it read 1.000 MB from DRAM, and a cold start must read 33.554");
    made = make_record();
    made->counters.phase_count = 0;
    strcpy(made->counters.reason, "another profiler holds them");
    expect(made, STATUS_OK, "", "case 2: no counters: another profiler");
}

static void throttling_is_told_from_the_power_cap(void **state) {
    struct made *made = make_record();
    (void)state;
    strcpy(made->one.telemetry.throttle_reasons, "sw_power_cap,hw_thermal");
    expect(made, STATUS_OK, "", "clocks were held down in 1 of 1 cases: hw_thermal");
    made = make_record();
    strcpy(made->one.telemetry.throttle_reasons, "sw_power_cap");
    made->one.telemetry.sm_clock_mhz_min = 1400;
    expect(made, STATUS_OK, "",
           "the power cap of 700 W was active in 1 of 1 cases, down to an SM clock of 1400 MHz");
}

/* --- what a cold start must read -------------------------------------------------------------- */

static void cold_bytes_by_hand(void **state) {
    const struct moe_shape shape = {10, 64, 32, 4, 2};
    const struct moe_routing routing = {.valid_slots = 20, .experts_hit = 3};
    const double hidden = 2 * 10 * 64, expert = 2 * 32 * 64;
    const struct {
        const char *name;
        bool first;
        double bytes;
    } rows[] = {
        {"route", true, 8 * 10 * 2},
        {"gather", true, hidden},
        {"gate_up", false, 2 * 3 * expert},
        {"gate_up", true, 2 * 3 * expert + hidden},
        {"gather+gate_up+swiglu", true, 2 * 3 * expert + hidden},
        {"swiglu", false, 0},
        {"down+combine", false, 3 * expert},
        {"down", true, 3 * expert}, /* whoever begins so has read the hidden states elsewhere */
        {"combine", false, 0},
        {"unheard", true, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double bytes = moe_phase_cold_bytes(rows[i].name, rows[i].first, &shape, &routing);
        if (bytes != rows[i].bytes)
            fail_msg("%s: %g, not %g", rows[i].name, bytes, rows[i].bytes);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_steady_series_does_not_drift),
        cmocka_unit_test(a_trend_drifts),
        cmocka_unit_test(size_and_order_are_both_needed),
        cmocka_unit_test(a_sound_record_is_verified),
        cmocka_unit_test(samples_below_the_datasheet_are_impossible),
        cmocka_unit_test(phases_beyond_the_datasheet_are_impossible),
        cmocka_unit_test(drifting_samples_are_marked),
        cmocka_unit_test(a_round_that_drifts_is_noisy),
        cmocka_unit_test(counters_that_cannot_be_are_named),
        cmocka_unit_test(a_warm_start_is_seen),
        cmocka_unit_test(throttling_is_told_from_the_power_cap),
        cmocka_unit_test(cold_bytes_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
