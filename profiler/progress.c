/* Progress on stderr. */
#include "progress.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "../core/output.h"
#include "../core/text.h"
#include "child.h"

void progress_start(struct progress *progress, size_t steps) {
    memset(progress, 0, sizeof *progress);
    progress->terminal = isatty(STDERR_FILENO);
    progress->colours = output_colours(stderr);
    progress->started_s = child_now_s();
    progress->steps = steps;
    progress->latency_ns = NAN;
}

void progress_kernel(struct progress *progress, const char *name) {
    snprintf(progress->kernel, sizeof progress->kernel, "%s", name);
    progress->latency_ns = NAN;
}

void progress_duration(double seconds, char *text, size_t size) {
    if (!isfinite(seconds))
        snprintf(text, size, "?");
    else if (seconds < 90)
        snprintf(text, size, "%.0f s", seconds);
    else if (seconds < 5400)
        snprintf(text, size, "%.0f min", seconds / 60);
    else
        snprintf(text, size, "%.1f h", seconds / 3600);
}

static void time_left(const struct progress *progress, char *text, size_t size) {
    double passed_s = child_now_s() - progress->started_s;
    double left = (double)(progress->steps - progress->done);
    progress_duration(progress->done ? passed_s / (double)progress->done * left : NAN, text, size);
}

static void round_text(int round, int round_count, char *text, size_t size) {
    if (round < 0)
        snprintf(text, size, "%s", round == STAGE_TIMELINE ? "timeline" : "counters");
    else
        snprintf(text, size, "round %d/%d", round + 1, round_count);
}

static void latency_text(double latency_ns, char *text, size_t size) {
    if (isnan(latency_ns))
        text[0] = '\0';
    else
        snprintf(text, size, ", %.4g ms", latency_ns * 1e-6);
}

/* Cuts the line to the terminal's width: a line that wraps cannot be updated in place. */
static void show(const char *line) {
    struct winsize window = {0};
    int width = 80;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 1)
        width = window.ws_col - 1;
    fprintf(stderr, "\r\033[K%.*s", width, line);
    fflush(stderr);
}

void progress_begin(struct progress *progress, int case_number, double batch_seq_len, int round,
                    int round_count) {
    char line[256], which[32], latency[48], left[32];
    if (!progress->terminal)
        return;
    round_text(round, round_count, which, sizeof which);
    latency_text(progress->latency_ns, latency, sizeof latency);
    time_left(progress, left, sizeof left);
    snprintf(line, sizeof line, "[%zu/%zu] %s case %d (T=%.0f) %s%s%s, %s left", progress->done,
             progress->steps, progress->kernel, case_number, batch_seq_len, which,
             latency[0] ? ", last" : "", latency[0] ? latency + 1 : "", left);
    show(line);
}

/* Noise is shown by the report; what a person should see at once is worse, or counters that could
 * not be had. */
static bool worth_a_line(enum record_status status, int round, const char *reason) {
    return (status != STATUS_OK && status != STATUS_NOISY) || (round < 0 && reason[0]);
}

void progress_end(struct progress *progress, int case_number, double batch_seq_len, int round,
                  int round_count, double latency_ns, enum record_status status,
                  const char *reason) {
    char which[32], latency[48], left[32], shown[RECORD_TEXT];
    bool bad = worth_a_line(status, round, reason);
    progress->done += progress->done < progress->steps;
    if (!isnan(latency_ns))
        progress->latency_ns = latency_ns;
    if (progress->terminal && !bad)
        return;
    progress_clear(progress);
    round_text(round, round_count, which, sizeof which);
    latency_text(latency_ns, latency, sizeof latency);
    time_left(progress, left, sizeof left);
    snprintf(shown, sizeof shown, "%s", reason);
    text_disarm(shown);
    fprintf(stderr, "[%zu/%zu] %s case %d (T=%.0f) %s%s, %s%s%s%s%s, %s left\n", progress->done,
            progress->steps, progress->kernel, case_number, batch_seq_len, which, latency,
            bad && progress->colours ? "\033[31m" : "", record_status_names[status],
            bad && progress->colours ? "\033[0m" : "", bad && reason[0] ? ": " : "",
            bad ? shown : "", left);
}

void progress_note(const struct progress *progress, int case_number, const char *reason) {
    char shown[RECORD_TEXT];
    snprintf(shown, sizeof shown, "%s", reason);
    text_disarm(shown);
    progress_clear(progress);
    fprintf(stderr, "%s case %d again in a fresh process, as one that did other cases ended: %s\n",
            progress->kernel, case_number, shown);
}

void progress_clear(const struct progress *progress) {
    if (!progress->terminal)
        return;
    fputs("\r\033[K", stderr);
    fflush(stderr);
}
