/* Writes, reads back and continues record files. */
#include "run_record.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MISSING = 0, PRESENT = 1, TIMED_OUT = 2 };

void run_record_now(char *text, size_t size) {
    time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(text, size, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

/* --- what a file holds ----------------------------------------------------------------------- */

static unsigned char *flag(const struct run_record *out, int number, int round) {
    return &out->cases[number * out->round_count + round];
}

static bool valid_number(double number) {
    return number >= 1 && number <= SUITE_MAX_CASES && number == (int)number;
}

static void note_case(struct run_record *out, const struct record_case *record_case) {
    double round = record_case->round;
    if (valid_number(record_case->number) && round >= 0 && round < out->round_count)
        *flag(out, (int)record_case->number, (int)round) =
            record_case->status == STATUS_TIMEOUT ? TIMED_OUT : PRESENT;
}

bool run_record_has_case(const struct run_record *out, int number, int round) {
    if (*flag(out, number, round) != MISSING)
        return true;
    for (int earlier = 0; earlier < round; earlier++)
        if (*flag(out, number, earlier) == TIMED_OUT)
            return true;
    return false;
}

bool run_record_has_counters(const struct run_record *out, int number) {
    return out->counters[number];
}

bool run_record_has_timeline(const struct run_record *out, int number) {
    return out->timelines[number];
}

static void note_timeline(struct run_record *out, const struct record_timeline *timeline) {
    bool sampling = strcmp(timeline->source, "sampling") == 0;
    if (valid_number(timeline->number))
        (sampling ? out->timelines : out->activities)[(int)timeline->number] = true;
}

static bool nothing_missing(const struct run_record *out, const struct run_wanted *wanted) {
    for (size_t i = 0; i < wanted->case_count; i++) {
        for (int round = 0; round < wanted->round_count; round++)
            if (!run_record_has_case(out, wanted->cases[i], round))
                return false;
        if (wanted->counters && !run_record_has_counters(out, wanted->cases[i]))
            return false;
        if (wanted->timeline && !run_record_has_timeline(out, wanted->cases[i]))
            return false;
    }
    return true;
}

static int differs(const struct run_record *out, const char *what, const char *then,
                   const char *now, struct error *err) {
    return error_set(err, EXIT_USAGE,
                     "cannot resume %.300s: its %s is %.70s, now it is %.70s; start a new run with "
                     "-o",
                     out->path, what, then[0] ? then : "not known", now[0] ? now : "not known");
}

static bool same_number(double then, double now) {
    return then == now || (isnan(then) && isnan(now));
}

static void number_text(double number, const char *if_none, char *text, size_t size) {
    if (isnan(number))
        snprintf(text, size, "%s", if_none);
    else
        snprintf(text, size, "%.10g", number);
}

static int check_same_texts(const struct run_record *out, const struct record_run *then,
                            const struct record_run *now, struct error *err) {
    const struct {
        const char *what, *then, *now;
    } texts[] = {
        {"suite hash", then->suite_hash, now->suite_hash},
        {"kernel", then->kernel.name, now->kernel.name},
        {"kernel source hash", then->kernel.source_hash, now->kernel.source_hash},
        {"device", then->device.name, now->device.name},
        {"device UUID hash", then->device.uuid_hash, now->device.uuid_hash},
        {"input table hash", then->table_hash, now->table_hash},
        {"driver version", then->device.driver_version, now->device.driver_version},
        {"CUDA version", then->device.cuda_version, now->device.cuda_version},
        {"CUPTI version", then->device.cupti_version, now->device.cupti_version},
        {"ECC mode", then->device.ecc, now->device.ecc},
        {"MIG mode", then->device.mig, now->device.mig},
        {"moesol version", then->tool_version, now->tool_version},
        {"source revision", then->source_revision, now->source_revision},
        {"--counters level", then->counters_level, now->counters_level},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strcmp(texts[i].then, texts[i].now))
            return differs(out, texts[i].what, texts[i].then, texts[i].now, err);
    return 0;
}

/* A record continues only where every line in it would mean the same. */
static int check_same(const struct run_record *out, const struct record_run *then,
                      const struct record_run *now, struct error *err) {
    char then_text[32], now_text[32];
    const struct {
        const char *what, *if_none;
        double then, now;
    } numbers[] = {
        {"number of rounds", "not known", then->round_count, now->round_count},
        {"--samples", "the default", then->samples_asked, now->samples_asked},
        {"--time-limit", "the default", then->time_limit_asked_s, now->time_limit_asked_s},
        {"number of cores or SMs", "not known", then->device.sm_count, now->device.sm_count},
        {"power limit in W", "not known", then->device.power_limit_w, now->device.power_limit_w},
    };
    if (check_same_texts(out, then, now, err))
        return -1;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (same_number(numbers[i].then, numbers[i].now))
            continue;
        number_text(numbers[i].then, numbers[i].if_none, then_text, sizeof then_text);
        number_text(numbers[i].now, numbers[i].if_none, now_text, sizeof now_text);
        return differs(out, numbers[i].what, then_text, now_text, err);
    }
    if (then->back_to_back != now->back_to_back)
        return differs(out, "--back-to-back", then->back_to_back ? "on" : "off",
                       now->back_to_back ? "on" : "off", err);
    return 0;
}

/* --- continuing ------------------------------------------------------------------------------ */

static int system_failed(const struct run_record *out, const char *what, struct error *err) {
    return error_set(err, EXIT_FAILED, "cannot %s: %.300s: %s", what, out->path, strerror(errno));
}

/* Offset just after the last newline before `end`; 0 if there is none, -1 for a read error. */
static off_t after_last_newline(int fd, off_t end) {
    char block[4096];
    while (end > 0) {
        off_t begin = end > (off_t)sizeof block ? end - (off_t)sizeof block : 0;
        ssize_t got = pread(fd, block, (size_t)(end - begin), begin);
        if (got != (ssize_t)(end - begin))
            return -1;
        char *newline = memrchr(block, '\n', (size_t)got);
        if (newline)
            return begin + (newline - block) + 1;
        end = begin;
    }
    return 0;
}

/* Brings the file into the state in which a line can be appended: ends with a newline, has neither
 * a cut line nor an `end` line. */
static int trim(const struct run_record *out, int fd, const struct record *record,
                struct error *err) {
    off_t size = lseek(fd, 0, SEEK_END);
    off_t whole = size < 0 ? -1 : after_last_newline(fd, size);
    if (whole < 0)
        return system_failed(out, "read", err);
    if (record->cut || record->end.present) {
        /* The line to go begins after the newline before its own. */
        off_t begin = whole == size ? after_last_newline(fd, size - 1) : whole;
        return begin < 0 || ftruncate(fd, begin) ? system_failed(out, "shorten", err) : 0;
    }
    if (whole != size && pwrite(fd, "\n", 1, size) != 1)
        return system_failed(out, "write", err);
    return 0;
}

/* Reads the record behind fd and notes what it holds. Returns 1 where it holds not even a whole
 * first line, so that it is to be begun anew. */
static int read_back(struct run_record *out, int fd, const struct record_run *run,
                     const struct run_wanted *wanted, struct error *err) {
    struct record record;
    off_t size = lseek(fd, 0, SEEK_END);
    if (size >= 0 && after_last_newline(fd, size) == 0)
        return ftruncate(fd, 0) ? system_failed(out, "shorten", err) : 1;
    if (record_read(out->path, &record, err))
        return -1;
    int result = check_same(out, &record.run, run, err);
    for (size_t i = 0; !result && i < record.case_count; i++)
        note_case(out, &record.cases[i]);
    for (size_t i = 0; !result && i < record.counters_count; i++)
        if (valid_number(record.counters[i].number))
            out->counters[(int)record.counters[i].number] = true;
    for (size_t i = 0; !result && i < record.timeline_count; i++)
        note_timeline(out, &record.timelines[i]);
    out->complete =
        strcmp(record.end.status, "complete") == 0 && !record.cut && nothing_missing(out, wanted);
    if (!result && !out->complete)
        result = trim(out, fd, &record, err);
    record_free(&record);
    return result;
}

static int open_file(const struct run_record *out, bool resume, bool *there, struct error *err) {
    int fd = open(out->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    *there = fd < 0 && errno == EEXIST;
    if (*there && !resume)
        return error_set(err, EXIT_USAGE,
                         "record is there already: %.300s; name another folder with -o, or "
                         "continue it with --resume",
                         out->path);
    if (*there)
        fd = open(out->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return system_failed(out, "open", err);
    if (flock(fd, LOCK_EX | LOCK_NB)) {
        close(fd);
        return error_set(err, EXIT_FAILED, "another run writes this record: %.300s", out->path);
    }
    return fd;
}

/* core/record.h names no file in its errors. */
static int written(struct run_record *out, int result, const struct error *problem,
                   struct error *err) {
    if (!result)
        return 0;
    out->torn = true;
    return error_set(err, EXIT_FAILED, "cannot write: %.300s: %.180s", out->path, problem->text);
}

int run_record_open(struct run_record *out, const char *path, const struct record_run *run,
                    const struct run_wanted *wanted, bool resume, struct error *err) {
    bool there;
    memset(out, 0, sizeof *out);
    if (snprintf(out->path, sizeof out->path, "%s", path) >= (int)sizeof out->path)
        return error_set(err, EXIT_USAGE, "path too long: %.80s...", path);
    out->round_count = wanted->round_count;
    out->cases = calloc((size_t)(SUITE_MAX_CASES + 1) * (size_t)out->round_count, 1);
    if (!out->cases)
        return error_set(err, EXIT_FAILED, "out of memory: a record");
    int fd = open_file(out, resume, &there, err);
    bool made = fd >= 0 && !there;
    if (fd < 0)
        goto fail;
    int held = there ? read_back(out, fd, run, wanted, err) : 1;
    if (held < 0)
        goto fail;
    lseek(fd, 0, SEEK_END);
    out->fresh = held == 1;
    out->file = fdopen(fd, "r+");
    if (!out->file) {
        system_failed(out, "open", err);
        goto fail;
    }
    fd = -1;
    fseek(out->file, 0, SEEK_END);
    struct error problem = {0};
    if (held == 1 && written(out, record_write_run(out->file, run, &problem), &problem, err))
        goto fail;
    return 0;
fail:
    if (made) /* not even its first line: it would only be in the way */
        unlink(out->path);
    if (fd >= 0)
        close(fd);
    run_record_close(out, NULL);
    return -1;
}

/* --- appending ------------------------------------------------------------------------------- */

int run_record_add_case(struct run_record *out, const struct record_case *record_case,
                        struct error *err) {
    struct error problem = {0};
    int result = record_write_case(out->file, record_case, &problem);
    if (!result)
        note_case(out, record_case);
    out->fresh = false;
    return written(out, result, &problem, err);
}

int run_record_add_counters(struct run_record *out, const struct record_counters *counters,
                            struct error *err) {
    struct error problem = {0};
    int result = record_write_counters(out->file, counters, &problem);
    if (!result && valid_number(counters->number))
        out->counters[(int)counters->number] = true;
    return written(out, result, &problem, err);
}

int run_record_add_timeline(struct run_record *out, const struct record_timeline *timeline,
                            struct error *err) {
    struct error problem = {0};
    /* The launches come before their case's own line: a run that was cut between has them. */
    if (valid_number(timeline->number) && strcmp(timeline->source, "activity") == 0 &&
        out->activities[(int)timeline->number])
        return 0;
    int result = record_write_timeline(out->file, timeline, &problem);
    if (!result)
        note_timeline(out, timeline);
    return written(out, result, &problem, err);
}

int run_record_end(struct run_record *out, const char *status, struct error *err) {
    struct error problem = {0};
    struct record_end end = {.present = true};
    if (out->torn)
        return error_set(err, EXIT_FAILED, "cannot write: %.300s: an earlier line was cut",
                         out->path);
    snprintf(end.status, sizeof end.status, "%s", status);
    run_record_now(end.finished_at, sizeof end.finished_at);
    return written(out, record_write_end(out->file, &end, &problem), &problem, err);
}

bool run_record_discard(const struct run_record *out) {
    return out->fresh && unlink(out->path) == 0;
}

int run_record_close(struct run_record *out, struct error *err) {
    int result = 0;
    if (out->file && fclose(out->file))
        result = system_failed(out, "write", err);
    out->file = NULL;
    free(out->cases);
    out->cases = NULL;
    return result;
}
