/* Analysis: the published figures come out, and every number that a report shows can be checked by
 * hand here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../analysis/baseline.h"
#include "../analysis/board_entry.h"
#include "../analysis/leaderboard.h"
#include "../analysis/notes.h"
#include "../analysis/reported.h"
#include "../analysis/roofline.h"
#include "../analysis/score.h"
#include "../analysis/scored.h"
#include "../analysis/summary.h"

static void assert_near(double value, double expected, double tolerance) {
    if (!(fabs(value - expected) <= tolerance))
        fail_msg("%.12g is not within %g of %.12g", value, tolerance, expected);
}

static struct suite *main_suite(void) {
    static struct suite suite;
    struct error err = {0};

    if (suite_read("moe-token-repeat", &suite, &err) != 0)
        fail_msg("%s", err.text);
    return &suite;
}

static double published_ms(const struct suite_case *suite_case) {
    struct bound_inputs inputs = {.shape = suite_case->shape};
    return bounds[BOUND_PUBLISHED].t_sol_ns(&inputs) / 1e6;
}

/* --- published figures ------------------------------------------------------------------------ */

static void published_bounds_come_out(void **state) {
    const struct suite *suite = main_suite();

    (void)state;
    assert_int_equal(suite->case_count, 16);
    for (size_t i = 0; i < suite->case_count; i++)
        assert_near(published_ms(&suite->cases[i]), suite->cases[i].published_t_sol_ms, 1e-6);
}

static void published_means_come_out(void **state) {
    const struct suite *suite = main_suite();
    double sol[16], baseline[16];

    (void)state;
    for (size_t i = 0; i < 16; i++) {
        sol[i] = published_ms(&suite->cases[i]);
        baseline[i] = suite->cases[i].published_t_baseline_ms;
    }
    assert_near(stats_mean(sol, 16), 3.389574, 5e-7);
    assert_near(stats_mean(baseline, 16), 7.565406, 5e-7);
    assert_near(stats_geomean(sol, 16), 3.388969, 5e-7);
    assert_near(stats_geomean(baseline, 16), 7.359900, 5e-7);
}

/* Mean score of a kernel whose latencies are `shape` scaled to the mean `latency_ms`. */
static double score_in_proportion(const double *shape, const double *sol, const double *baseline,
                                  double latency_ms) {
    double scores[16], scale = latency_ms / stats_mean(shape, 16);

    for (size_t i = 0; i < 16; i++)
        scores[i] = sol_score(shape[i] * scale, sol[i], baseline[i]);
    return stats_mean(scores, 16);
}

static void source_table_scores_are_explained(void **state) {
    const struct suite *suite = main_suite();
    struct reported_row *rows;
    struct error err = {0};
    double sol[16], baseline[16];
    char path[1024];
    size_t count;

    (void)state;
    for (size_t i = 0; i < 16; i++) {
        sol[i] = suite->cases[i].published_t_sol_ms;
        baseline[i] = suite->cases[i].published_t_baseline_ms;
    }
    snprintf(path, sizeof path, "%s/reported.csv", suite->directory);
    assert_int_equal(reported_read(path, &rows, &count, &err), 0);
    assert_int_equal(count, 15);
    for (size_t i = 0; i < count; i++) {
        double a = score_in_proportion(sol, sol, baseline, rows[i].latency_ms);
        double b = score_in_proportion(baseline, sol, baseline, rows[i].latency_ms);
        double low = fmin(a, b) - 0.02, high = fmax(a, b) + 0.02;
        if (!(rows[i].score >= low && rows[i].score <= high))
            fail_msg("row %zu: %g outside %g .. %g", i + 1, rows[i].score, low, high);
        /* As plain fractions T_SOL / T the figures would be something else at both ends. */
        if (i == 0 || i == 14)
            assert_true(fabs(sol_fraction(rows[i].latency_ms, 3.389574) - rows[i].score) > 0.02);
    }
    free(rows);
}

/* --- the leaderboard of the source's rows -------------------------------------------------------
 */

/* The CSV as a person would read it, apart from the reader under test. */
static size_t read_raw_rows(const char *path, char rows[][10][128], size_t most) {
    FILE *file = fopen(path, "r");
    char line[1024];
    size_t count = 0;

    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    while (count < most && fgets(line, sizeof line, file)) {
        char *rest = line;
        for (size_t c = 0; c < 10; c++)
            snprintf(rows[count][c], 128, "%s", strsep(&rest, ",\n"));
        count++;
    }
    fclose(file);
    return count;
}

static const struct board *find_board(const struct leaderboard *leaderboard, const char *device,
                                      enum bound_kind bound) {
    for (size_t i = 0; i < leaderboard->board_count; i++)
        if (strcmp(leaderboard->boards[i].device, device) == 0 &&
            leaderboard->boards[i].bound == bound)
            return &leaderboard->boards[i];
    return NULL;
}

static void reported_rows_come_out_as_they_went_in(void **state) {
    const struct suite *suite = main_suite();
    const struct leaderboard_options options = {.device = "B200"};
    struct leaderboard leaderboard;
    struct error err = {0};
    static char raw[20][10][128];
    char path[1024], text[32];

    (void)state;
    snprintf(path, sizeof path, "%s/reported.csv", suite->directory);
    size_t count = read_raw_rows(path, raw, 20);
    assert_int_equal(count, 15);
    if (leaderboard_build(suite, &options, &leaderboard, &err) != 0)
        fail_msg("%s", err.text);
    const struct board *board = find_board(&leaderboard, "B200", BOUND_PUBLISHED);
    assert_non_null(board);
    assert_int_equal(board->entry_count, 15);
    assert_non_null(strstr(board->note, "inferred"));
    for (size_t i = 0; i < count; i++) {
        const struct board_entry *entry = &board->entries[i];
        snprintf(text, sizeof text, "%d", entry->rank);
        assert_string_equal(text, raw[i][0]);
        assert_string_equal(entry->latency_text, raw[i][1]);
        assert_string_equal(entry->score_text, raw[i][2]);
        assert_string_equal(entry->ratio_text, raw[i][3]);
        /* The source divided figures that it had not rounded. */
        assert_near(entry->ratio_to_best, entry->mean_latency_ms / 4.47, 0.0101);
        assert_string_equal(entry->date, raw[i][4]);
        assert_string_equal(entry->status, raw[i][5]);
        assert_true(isnan(entry->sol_fraction));
        assert_near(entry->cases[0].t_sol_ms, 3.37081492, 1e-6);
    }
    leaderboard_free(&leaderboard);
}

static void devices_without_entries_are_named(void **state) {
    const struct suite *suite = main_suite();
    const struct leaderboard_options options = {.device = "H100"};
    struct leaderboard leaderboard;
    struct error err = {0};
    char text[512];

    (void)state;
    assert_int_equal(leaderboard_build(suite, &options, &leaderboard, &err), 0);
    if (leaderboard.board_count == 0) {
        assert_int_equal(leaderboard.unmeasured_count, 1);
        assert_string_equal(leaderboard.unmeasured[0]->name, "H100 SXM");
        leaderboard_command(&leaderboard, text, sizeof text);
        assert_string_equal(text, "moesol run moe-token-repeat --device cuda -o records");
    } else {
        assert_int_equal(leaderboard.unmeasured_count, 0);
    }
    leaderboard_free(&leaderboard);
}

/* --- scores and bounds by hand ------------------------------------------------------------------
 */

static void scores_by_hand(void **state) {
    (void)state;
    assert_near(sol_fraction(4, 3), 0.75, 1e-15);
    assert_near(sol_score(3, 3, 5), 1, 1e-15);       /* at the bound */
    assert_near(sol_score(5, 3, 5), 0.5, 1e-15);     /* at the baseline */
    assert_near(sol_score(7, 3, 5), 1.0 / 3, 1e-15); /* as far again */
    assert_near(latency_ratio(5, 4), 1.25, 1e-15);
    assert_true(isnan(sol_score(4, 3, NAN)));
    assert_true(isnan(sol_score(4, NAN, 5)));
    assert_true(isnan(sol_score(4, 3, 3)));
    assert_true(isnan(sol_score(1, 9, 10)));
    assert_true(isnan(sol_fraction(0, 3)));
    assert_true(isnan(sol_fraction(NAN, 3)));
    assert_true(isnan(latency_ratio(5, NAN)));
}

static void bounds_by_hand(void **state) {
    const struct bound_phase phases[] = {{"gather", {0, 4e9}}, {"gate_up", {2e12, 1e9}}};
    struct bound_inputs inputs = {.work = {3e12, 2e9},
                                  .datasheet = {2e12, 1e15},
                                  .measured = {1e12, 1e15},
                                  .phases = phases,
                                  .phase_count = 2};
    char text[1024];

    (void)state;
    assert_near(bounds[BOUND_DATASHEET].t_sol_ns(&inputs), 3e6, 1e-6); /* 3 ms of FLOP > 1 ms */
    inputs.work.flop = 1e12;
    assert_near(bounds[BOUND_MEASURED].t_sol_ns(&inputs), 2e6, 1e-6); /* 2 ms of bytes > 1 ms */
    assert_near(bounds[BOUND_PHASED].t_sol_ns(&inputs), 4e6 + 2e6, 1e-6);
    bound_explain(BOUND_MEASURED, &inputs, text, sizeof text);
    assert_non_null(strstr(text, "max(2 GB / 1 TB/s, 1 TFLOP / 1000 TFLOP/s)"));
    assert_non_null(strstr(text, "memory-bound"));
    assert_non_null(strstr(text, "T_SOL = 2.000000 ms"));
    inputs.measured.bytes_per_s = NAN;
    assert_true(isnan(bounds[BOUND_MEASURED].t_sol_ns(&inputs)));
    assert_true(isnan(bounds[BOUND_PHASED].t_sol_ns(&inputs)));
    bound_explain(BOUND_MEASURED, &inputs, text, sizeof text);
    assert_non_null(strstr(text, "not known here"));
    inputs.phase_count = 0;
    inputs.measured.bytes_per_s = 1e12;
    assert_true(isnan(bounds[BOUND_PHASED].t_sol_ns(&inputs)));
}

/* --- a record made in memory --------------------------------------------------------------------
 */

#define MADE_CASES 4
#define MADE_SAMPLES 6

/* Two cases in two rounds, out of order. Shape of the main suite's cases 2 and 13. */
struct made {
    struct record record;
    struct record_case cases[MADE_CASES];
    double samples[MADE_CASES][MADE_SAMPLES];
    struct record_phase phases[MADE_CASES][3];
    double phase_samples[MADE_CASES][3][MADE_SAMPLES];
    struct record_ceiling ceilings[3];
};

static void make_case(struct made *made, size_t i, int number, int round, double tokens,
                      double first_ns) {
    static const char *const names[] = {"route", "gather", "gate_up"};
    static const double shares[] = {0.05, 0.10, 0.80};
    struct record_case *c = &made->cases[i];

    record_case_init(c);
    c->number = number;
    c->round = round;
    c->batch_seq_len = tokens;
    c->hidden_size = 8192;
    c->moe_intermediate_size = 2048;
    c->num_experts = 256;
    c->num_experts_per_tok = 8;
    c->valid_slots = 8 * tokens;
    c->experts_hit = 256;
    c->launch_count = 4;
    c->correctness.checked = true;
    c->correctness.matched_ratio = 1 - 0.001 * round;
    c->correctness.token_matched_ratio_min = 0.99;
    c->samples_ns = made->samples[i];
    c->sample_count = MADE_SAMPLES;
    c->phases = made->phases[i];
    c->phase_count = 3;
    for (size_t s = 0; s < MADE_SAMPLES; s++)
        made->samples[i][s] = first_ns + 1000 * (double)s;
    for (size_t p = 0; p < 3; p++) {
        struct record_phase *phase = &made->phases[i][p];
        snprintf(phase->name, sizeof phase->name, "%s", names[p]);
        phase->samples_ns = made->phase_samples[i][p];
        phase->sample_count = MADE_SAMPLES;
        phase->gap_ns = NAN;
        for (size_t s = 0; s < MADE_SAMPLES; s++)
            made->phase_samples[i][p][s] = shares[p] * made->samples[i][s];
    }
}

static struct made *make_record(const char *suite_hash) {
    struct made *made = calloc(1, sizeof *made);

    assert_non_null(made);
    struct record_run *run = &made->record.run;
    record_run_init(run);
    snprintf(run->suite_name, sizeof run->suite_name, "moe-token-repeat");
    snprintf(run->suite_hash, sizeof run->suite_hash, "%s", suite_hash);
    run->suite_case_count = 2;
    snprintf(run->device.kind, sizeof run->device.kind, "cuda");
    snprintf(run->device.name, sizeof run->device.name, "NVIDIA H200");
    snprintf(run->kernel.name, sizeof run->kernel.name, "made");
    snprintf(run->started_at, sizeof run->started_at, "2026-12-01T10:00:00Z");
    run->kernel.ranked = true;
    made->ceilings[0] = (struct record_ceiling){"dram_read", "plain", 4.4e12};
    made->ceilings[1] = (struct record_ceiling){"dram_read", "tma", 4.6e12};
    made->ceilings[2] = (struct record_ceiling){"fp16_dense", "cublas", 7.5e14};
    run->ceilings = made->ceilings;
    run->ceiling_count = 3;
    make_case(made, 0, 13, 0, 8192, 20e6);
    make_case(made, 1, 2, 0, 2048, 8e6);
    make_case(made, 2, 2, 1, 2048, 8.01e6);
    make_case(made, 3, 13, 1, 8192, 20e6);
    made->record.cases = made->cases;
    made->record.case_count = MADE_CASES;
    made->record.end.present = true;
    snprintf(made->record.end.status, sizeof made->record.end.status, "complete");
    return made;
}

static struct summary summarize(const struct made *made) {
    struct summary summary;
    struct error err = {0};

    if (summarize_record(&made->record, &summary, &err) != 0)
        fail_msg("%s", err.text);
    return summary;
}

static void rounds_are_joined(void **state) {
    struct made *made = make_record("");
    struct summary summary = summarize(made);
    const struct case_summary *c = &summary.cases[0];

    (void)state;
    assert_string_equal(summary.device_short, "H200");
    assert_int_equal(summary.case_count, 2);
    assert_true(summary.complete);
    assert_int_equal(c->number, 2);
    assert_int_equal(summary.cases[1].number, 13);
    assert_int_equal(c->round_count, 2);
    assert_int_equal(c->latency_ns.count, 12);
    assert_near(c->latency_ns.median, 8.0075e6, 1); /* between 8.005 and 8.010 ms */
    assert_true(c->latency_ns.low <= 8.002e6 && c->latency_ns.high >= 8.012e6);
    assert_int_equal(c->status, STATUS_OK);
    assert_near(c->correctness.matched_ratio, 0.999, 1e-12); /* the worse round */
    assert_near(summary.measured.bytes_per_s, 4.6e12, 1);    /* the best variant */
    /* (25,769,803,776 + 2048 * 32,768) B / 4.6e12 B/s and / 4.8e12 */
    assert_near(c->bound_ns[BOUND_MEASURED], 25836912640.0 / 4.6e3, 1e-3);
    assert_near(c->bound_ns[BOUND_DATASHEET], 25836912640.0 / 4.8e3, 1e-3);
    assert_near(c->fraction[BOUND_MEASURED], c->bound_ns[BOUND_MEASURED] / 8.0075e6, 1e-6);
    struct suite_means means = summary_means(&summary);
    assert_near(means.mean_ns, (c->latency_ns.median + summary.cases[1].latency_ns.median) / 2, 1);
    summary_free(&summary);
    free(made);
}

/* Noise is that of all samples together; lines of one round, or of another shape, do not join. */
static void rounds_that_do_not_join(void **state) {
    struct made *made = make_record("");
    struct summary summary;
    struct error err = {0};

    (void)state;
    made->cases[1].status = STATUS_NOISY;
    summary = summarize(made);
    assert_int_equal(summary.cases[0].status, STATUS_OK);
    summary_free(&summary);
    made->cases[1].sample_count = 0;
    made->cases[2].sample_count = 5;
    summary = summarize(made);
    assert_int_equal(summary.cases[0].status, STATUS_NOISY);
    assert_non_null(strstr(summary.cases[0].reason, "5 samples are too few"));
    assert_true(isnan(interval_width(&summary.cases[0].latency_ns)));
    summary_free(&summary);
    made->cases[2].hidden_size = 4096;
    assert_int_equal(summarize_record(&made->record, &summary, &err), -1);
    assert_non_null(strstr(err.text, "case 2 has another shape in round 1 than in round 0"));
    made->cases[2].hidden_size = 8192;
    made->cases[2].round = 0;
    err = (struct error){0};
    assert_int_equal(summarize_record(&made->record, &summary, &err), -1);
    assert_non_null(strstr(err.text, "case 2 stands twice in round 0"));
    free(made);
}

static void phases_are_joined(void **state) {
    struct made *made = make_record("");
    struct summary summary = summarize(made);
    const struct case_summary *c = &summary.cases[0];

    (void)state;
    assert_int_equal(c->phase_count, 3);
    assert_string_equal(c->phases[0].name, "route");
    assert_false(c->phases[0].modelled);
    assert_true(isnan(c->phases[0].bytes_per_s));
    const struct phase_summary *gather = &c->phases[1], *gate_up = &c->phases[2];
    assert_near(gather->share, 0.10, 1e-9);
    /* 2TH + 2RH with R = 8T */
    double gather_bytes = 2.0 * 2048 * 8192 * 9;
    assert_near(gather->work.bytes, gather_bytes, 0.5);
    assert_near(gather->bytes_per_s, gather_bytes / (gather->latency_ns.median / 1e9), 1e3);
    assert_true(isnan(gather->flop_per_s));
    assert_near(gather->bound_ns, gather_bytes / 4.6e3, 1e-3);
    assert_near(gate_up->flop_per_s, 4.0 * 16384 * 8192 * 2048 / (gate_up->latency_ns.median / 1e9),
                1e6);
    assert_near(c->bound_ns[BOUND_PHASED], gather->bound_ns + gate_up->bound_ns, 1e-6);
    summary_free(&summary);
    free(made);
}

static void experts_that_are_not_hit_cost_nothing(void **state) {
    struct made *made = make_record("");

    (void)state;
    made->cases[1].experts_hit = made->cases[2].experts_hit = 128;
    struct summary summary = summarize(made);
    assert_near(summary.cases[0].work.bytes, 25769803776.0 / 2 + 2048 * 32768.0, 0.5);
    summary_free(&summary);
    made->cases[1].experts_hit = NAN;
    summary = summarize(made);
    assert_true(isnan(summary.cases[0].bound_ns[BOUND_DATASHEET]));
    assert_true(isnan(summary.cases[0].fraction[BOUND_MEASURED]));
    summary_free(&summary);
    free(made);
}

static enum record_status status_of_case_2(struct made *made) {
    struct summary summary = summarize(made);
    enum record_status status = summary.cases[0].status;

    summary_free(&summary);
    return status;
}

static void set_samples(struct made *made, size_t i, double first_ns, double step_ns) {
    for (size_t s = 0; s < MADE_SAMPLES; s++)
        made->samples[i][s] = first_ns + step_ns * (double)s;
}

static void statuses_combine(void **state) {
    struct made *made = make_record("");

    (void)state;
    assert_int_equal(status_of_case_2(made), STATUS_OK);
    /* Each round is quiet, but the rounds differ by 3 %. */
    set_samples(made, 2, 8.24e6, 1000);
    assert_int_equal(status_of_case_2(made), STATUS_NOISY);
    made->cases[2].status = STATUS_THROTTLED;
    assert_int_equal(status_of_case_2(made), STATUS_THROTTLED);
    made->cases[1].status = STATUS_WRONG;
    assert_int_equal(status_of_case_2(made), STATUS_WRONG);
    made->cases[1].status = made->cases[2].status = STATUS_OK;
    /* datasheet bound 5.3827 ms, measured 5.6167 ms */
    set_samples(made, 1, 5.5e6, 100);
    set_samples(made, 2, 5.5e6, 100);
    assert_int_equal(status_of_case_2(made), STATUS_ABOVE_ROOF);
    set_samples(made, 1, 5.3e6, 100);
    set_samples(made, 2, 5.3e6, 100);
    assert_int_equal(status_of_case_2(made), STATUS_IMPOSSIBLE);
    struct summary summary = summarize(made);
    assert_false(case_has_latency(&summary.cases[0]));
    assert_int_equal(summary_means(&summary).case_count, 1);
    assert_false(summary.complete);
    summary_free(&summary);
    free(made);
}

static void a_case_without_samples_is_unknown_not_zero(void **state) {
    struct made *made = make_record("");

    (void)state;
    made->cases[1].sample_count = made->cases[2].sample_count = 0;
    made->cases[1].phase_count = made->cases[2].phase_count = 0;
    made->cases[1].status = made->cases[2].status = STATUS_CRASHED;
    struct summary summary = summarize(made);
    assert_int_equal(summary.cases[0].status, STATUS_CRASHED);
    assert_true(isnan(summary.cases[0].latency_ns.median));
    assert_true(isnan(summary.cases[0].fraction[BOUND_DATASHEET]));
    assert_true(isnan(summary.cases[0].bound_ns[BOUND_PHASED]));
    summary_free(&summary);
    free(made);
}

static void an_empty_record_is_summarised(void **state) {
    struct made *made = make_record("");

    (void)state;
    made->record.case_count = 0;
    struct summary summary = summarize(made);
    assert_int_equal(summary.case_count, 0);
    assert_false(summary.complete);
    assert_true(isnan(summary_means(&summary).mean_ns));
    summary_free(&summary);
    free(made);
}

static void notes_say_what_is_the_matter(void **state) {
    struct made *made = make_record("");
    struct notes notes;
    struct error err = {0};

    (void)state;
    struct summary summary = summarize(made);
    assert_int_equal(notes_collect(&summary, &notes, &err), 0);
    assert_int_equal(notes.count, 0);
    notes_free(&notes);
    summary_free(&summary);
    made->record.end.present = false;
    made->record.run.suite_case_count = 16;
    made->cases[1].event_ns = made->cases[2].event_ns = 8.1e6;
    made->cases[1].collected_event_ns = made->cases[2].collected_event_ns = 8.3e6;
    snprintf(made->cases[1].telemetry.throttle_reasons, RECORD_TEXT, "sw_power_cap");
    summary = summarize(made);
    assert_int_equal(notes_collect(&summary, &notes, &err), 0);
    assert_int_equal(notes.count, 6);
    assert_non_null(strstr(notes.lines[0], "no end"));
    assert_non_null(strstr(notes.lines[1], "2 of the suite's 16 cases"));
    assert_non_null(strstr(notes.lines[2], "more than 0.018 ms apart"));
    assert_non_null(strstr(notes.lines[3], "cost 2.5 %"));
    assert_non_null(strstr(notes.lines[4], "power cap was active in 1 of 2 cases"));
    assert_non_null(strstr(notes.lines[5], "at most +2.47 % (case 2)"));
    notes_free(&notes);
    summary_free(&summary);
    free(made);
}

/* Rounds far apart: events agree with the span of their own round, not with the median of all. What
 * recording seems to cost is not told as such where the spread can make it. */
static void events_are_held_to_their_own_round(void **state) {
    struct made *made = make_record("");
    struct notes notes;
    struct error err = {0};

    (void)state;
    for (size_t s = 0; s < MADE_SAMPLES; s++)
        made->samples[2][s] += 2e6;
    for (size_t i = 1; i <= 2; i++) {
        made->cases[i].collected_event_ns =
            stats_quantile(made->samples[i], MADE_SAMPLES, 0.5) + 5e3;
        made->cases[i].event_ns = 8.5e6;
    }
    struct summary summary = summarize(made);
    assert_near(recording_cost(&summary.cases[0]), 0.061, 0.002);
    assert_int_equal(notes_collect(&summary, &notes, &err), 0);
    for (size_t i = 0; i < notes.count; i++)
        if (strstr(notes.lines[i], "apart") || strstr(notes.lines[i], "records cost"))
            fail_msg("%s", notes.lines[i]);
    notes_free(&notes);
    summary_free(&summary);
    made->cases[2].collected_event_ns += 100e3;
    summary = summarize(made);
    assert_int_equal(notes_collect(&summary, &notes, &err), 0);
    bool told = false;
    for (size_t i = 0; i < notes.count; i++)
        told |= strstr(notes.lines[i], "case 2, round 1: CUDA events say 10.11") != NULL;
    assert_true(told);
    notes_free(&notes);
    summary_free(&summary);
    free(made);
}

/* --- roofline -----------------------------------------------------------------------------------
 */

static void roofline_points_by_hand(void **state) {
    struct made *made = make_record("");
    struct summary summary = summarize(made);
    struct roofline roofline;
    struct error err = {0};

    (void)state;
    assert_int_equal(roofline_build(&summary, 1, ROOFLINE_BY_CASE, &roofline, &err), 0);
    assert_int_equal(roofline.point_count, 2);
    assert_int_equal(roofline.device_count, 1);
    const struct roofline_point *point = &roofline.points[0];
    assert_near(point->intensity, 805306368.0 * 2048 / 25836912640.0, 1e-9);
    assert_near(point->flop_per_s, 805306368.0 * 2048 / 8.0075e-3, 1e8);
    roofline_free(&roofline);
    assert_int_equal(roofline_build(&summary, 1, ROOFLINE_BY_PHASE, &roofline, &err), 0);
    assert_int_equal(roofline.point_count, 2); /* route has no model */
    assert_string_equal(roofline.points[0].name, "gather");
    assert_near(roofline.points[0].intensity, 0, 0);
    assert_near(roofline.points[0].work.bytes, 2.0 * (2048 + 8192) * 8192 * 9, 0.5);
    assert_int_equal(roofline.points[1].case_count, 2);
    assert_near(roofline.points[1].latency_ns,
                summary.cases[0].phases[2].latency_ns.median +
                    summary.cases[1].phases[2].latency_ns.median,
                1e-3);
    roofline_free(&roofline);
    summary_free(&summary);
    free(made);
}

/* --- who may be ranked --------------------------------------------------------------------------
 */

/* The main suite cut to the two cases of the made record. */
static struct suite *two_case_suite(void) {
    static struct suite suite;

    suite = *main_suite();
    suite.cases[0] = suite.cases[1];
    suite.cases[1] = suite.cases[12];
    suite.case_count = 2;
    return &suite;
}

static struct board_entry entry_of(const struct made *made) {
    struct suite *suite = two_case_suite();
    struct baseline baseline = {.label = "v1, by hand"};
    struct summary summary = summarize(made);
    struct board_entry entry;
    struct error err = {0};

    baseline.t_ms[0] = 12;
    baseline.t_ms[1] = 30;
    assert_int_equal(
        board_entry_from_summary(suite, &baseline, BOUND_DATASHEET, &summary, &entry, &err), 0);
    summary_free(&summary);
    return entry;
}

static void expect_refusal(const struct made *made, const char *why) {
    struct board_entry entry = entry_of(made);

    if (!strstr(entry.why, why))
        fail_msg("'%s' does not say '%s'", entry.why, why);
    free(entry.cases);
}

static void entries_are_scored(void **state) {
    struct made *made = make_record(main_suite()->hash);
    struct board_entry entry = entry_of(made);
    double t_sol_ms = 25836912640.0 / 4.8e9;

    (void)state;
    assert_string_equal(entry.why, "");
    assert_string_equal(entry.status, "measured");
    assert_string_equal(entry.date, "2026-12-01");
    assert_near(entry.mean_latency_ms, (8.0075 + 20.0025) / 2, 1e-9);
    assert_near(entry.cases[0].t_sol_ms, t_sol_ms, 1e-9);
    assert_near(entry.cases[0].sol_score, 1 / (1 + (8.0075 - t_sol_ms) / (12 - t_sol_ms)), 1e-9);
    assert_near(entry.sol_score, (entry.cases[0].sol_score + entry.cases[1].sol_score) / 2, 1e-12);
    free(entry.cases);
    free(made);
}

static void only_sound_entries_are_ranked(void **state) {
    struct made *made = make_record(main_suite()->hash);

    (void)state;
    made->record.run.kernel.ranked = false;
    expect_refusal(made, "not ranked");
    made->record.run.kernel.ranked = true;
    made->record.run.back_to_back = true;
    expect_refusal(made, "back to back");
    made->record.run.back_to_back = false;
    made->record.run.suite_hash[0] ^= 1;
    expect_refusal(made, "another version");
    made->record.run.suite_hash[0] ^= 1;
    made->cases[1].status = STATUS_WRONG;
    expect_refusal(made, "case 2: wrong");
    made->cases[1].status = STATUS_OK;
    made->cases[2].correctness.matched_ratio = 0.98;
    expect_refusal(made, "case 2: output outside the tolerance");
    made->cases[2].correctness.matched_ratio = 1;
    made->cases[1].correctness.checked = made->cases[2].correctness.checked = false;
    expect_refusal(made, "case 2: output not checked");
    made->cases[1].correctness.checked = made->cases[2].correctness.checked = true;
    made->cases[1].hidden_size = made->cases[2].hidden_size = 4096;
    expect_refusal(made, "case 2 has not the suite's shape");
    made->cases[1].hidden_size = made->cases[2].hidden_size = 8192;
    set_samples(made, 1, 1e6, 0);
    set_samples(made, 2, 1e6, 0);
    expect_refusal(made, "case 2: impossible");
    made->record.cases = &made->cases[3];
    made->record.case_count = 1;
    expect_refusal(made, "1 of 2 cases missing");
    struct board_entry entry = entry_of(made);
    assert_string_equal(entry.status, "incomplete");
    assert_true(isnan(entry.mean_latency_ms));
    free(entry.cases);
    free(made);
}

/* --- files --------------------------------------------------------------------------------------
 */

static char folder[64];

static int make_folder(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/moesol-test-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
    char path[128];

    (void)state;
    snprintf(path, sizeof path, "%s/baselines.json", folder);
    unlink(path);
    snprintf(path, sizeof path, "%s/reported.csv", folder);
    unlink(path);
    return rmdir(folder);
}

static void write_file(const char *name, const char *text) {
    char path[128];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void expect_baseline_error(const char *json, const char *message) {
    struct suite *suite = two_case_suite();
    struct baseline baseline;
    struct error err = {0};

    snprintf(suite->directory, sizeof suite->directory, "%s", folder);
    write_file("baselines.json", json);
    assert_int_equal(baseline_read(suite, "H200", &baseline, &err), -1);
    if (!strstr(err.text, message))
        fail_msg("'%s' does not say '%s'", err.text, message);
}

static void bad_baselines_are_errors(void **state) {
    struct suite *suite = two_case_suite();
    struct baseline baseline;
    struct error err = {0};

    (void)state;
    expect_baseline_error("{", "not JSON");
    expect_baseline_error("{\"H200\": {\"source\": \"published\"}}", "version");
    expect_baseline_error("{\"H200\": {\"version\": 1, \"kernel\": \"k\", \"source\": "
                          "\"../../etc/passwd\"}}",
                          "under the suite's folder");
    expect_baseline_error(
        "{\"H200\": {\"version\": 1, \"kernel\": \"k\", \"source\": \"a/../../b\"}}",
        "under the suite's folder");
    expect_baseline_error("{\"H200\": {\"version\": 1, \"source\": \"a.jsonl\"}}",
                          "no kernel is named");
    expect_baseline_error(
        "{\"H200\": {\"version\": 1, \"kernel\": \"k\", \"source\": \"a.jsonl\"}}", "a.jsonl");
    snprintf(suite->directory, sizeof suite->directory, "%s", folder);
    write_file("baselines.json", "{\"B200\": {\"version\": 3, \"source\": \"published\"}}");
    assert_int_equal(baseline_read(suite, "B200", &baseline, &err), 0);
    assert_non_null(strstr(baseline.label, "v3"));
    assert_near(baseline_case_ms(suite, &baseline, 13), 14.1678, 1e-12);
    assert_true(isnan(baseline_case_ms(suite, &baseline, 99)));
    assert_int_equal(baseline_read(suite, "H200", &baseline, &err), 0);
    assert_string_equal(baseline.label, "");
}

static void expect_reported_error(const char *csv, const char *message) {
    struct reported_row *rows;
    struct error err = {0};
    char path[128];
    size_t count;

    write_file("reported.csv", csv);
    snprintf(path, sizeof path, "%s/reported.csv", folder);
    assert_int_equal(reported_read(path, &rows, &count, &err), -1);
    if (!strstr(err.text, message))
        fail_msg("'%s' does not say '%s'", err.text, message);
}

#define CSV_HEADER                                                                                 \
    "rank,mean_latency_ms,sol_percent,ratio_to_best,date,status,license,source,device,note\n"

static void reported_rows_are_checked(void **state) {
    struct reported_row *rows;
    struct error err = {0};
    char path[128];
    size_t count;

    (void)state;
    expect_reported_error("rank,date\n1,2026\n", "column missing: mean_latency_ms");
    expect_reported_error(CSV_HEADER "1,fast,79,1.00,d,reported,u,n,B200,x\n",
                          "reported.csv:2: mean_latency_ms");
    expect_reported_error(CSV_HEADER "1,-4,79,1.00,d,reported,u,n,B200,x\n", "mean_latency_ms");
    expect_reported_error(CSV_HEADER "1,4,79\n", "reported.csv:2: 3 fields");
    expect_reported_error(CSV_HEADER "1,4,79,1.00,d,reported,u,n,B200,\"x\n", "quote");
    write_file("reported.csv", CSV_HEADER
               "1,4.40,,1.00,2026-01-01,reported,u,n,B200 (inferred),\"a, \"\"b\"\"\"\r\n");
    snprintf(path, sizeof path, "%s/reported.csv", folder);
    assert_int_equal(reported_read(path, &rows, &count, &err), 0);
    assert_int_equal(count, 1);
    assert_string_equal(rows[0].mean_latency_ms, "4.40");
    assert_string_equal(rows[0].device, "B200");
    assert_true(rows[0].device_inferred);
    assert_true(isnan(rows[0].score));
    assert_string_equal(rows[0].note, "a, \"b\"");
    free(rows);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_bounds_come_out),
        cmocka_unit_test(published_means_come_out),
        cmocka_unit_test(source_table_scores_are_explained),
        cmocka_unit_test(reported_rows_come_out_as_they_went_in),
        cmocka_unit_test(devices_without_entries_are_named),
        cmocka_unit_test(scores_by_hand),
        cmocka_unit_test(bounds_by_hand),
        cmocka_unit_test(rounds_are_joined),
        cmocka_unit_test(rounds_that_do_not_join),
        cmocka_unit_test(phases_are_joined),
        cmocka_unit_test(experts_that_are_not_hit_cost_nothing),
        cmocka_unit_test(statuses_combine),
        cmocka_unit_test(a_case_without_samples_is_unknown_not_zero),
        cmocka_unit_test(an_empty_record_is_summarised),
        cmocka_unit_test(notes_say_what_is_the_matter),
        cmocka_unit_test(events_are_held_to_their_own_round),
        cmocka_unit_test(roofline_points_by_hand),
        cmocka_unit_test(entries_are_scored),
        cmocka_unit_test(only_sound_entries_are_ranked),
        cmocka_unit_test_setup_teardown(bad_baselines_are_errors, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(reported_rows_are_checked, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
