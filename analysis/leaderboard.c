/* Collects a suite's reported rows and records into boards and ranks them. */
#include "leaderboard.h"

#include <errno.h>
#include <fts.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../cases/devices.h"
#include "../core/file.h"
#include "baseline.h"
#include "board_entry.h"
#include "reported.h"
#include "score.h"
#include "summary.h"

/* The boards with the baselines that their entries are scored by, and what was found so far. */
struct collected {
    struct leaderboard *leaderboard;
    const struct leaderboard_options *options;
    struct baseline *baselines; /* one a board */
    char (*published)[65];      /* hashes of the entries' records */
    size_t published_count;
    char **paths; /* records that belong to no entry: read last */
    size_t path_count;
};

static void *grow(void *array, size_t count, size_t size, struct error *err) {
    void *grown = realloc(array, (count + 1) * size);

    if (!grown)
        error_set(err, EXIT_FAILED, "out of memory for the leaderboard");
    return grown;
}

/* Index of the board of a device and bound, made on first use; -1 with *err. */
static long find_board(struct collected *all, const char *device, enum bound_kind bound,
                       struct error *err) {
    struct leaderboard *leaderboard = all->leaderboard;
    size_t count = leaderboard->board_count;

    for (size_t i = 0; i < count; i++)
        if (strcmp(leaderboard->boards[i].device, device) == 0 &&
            leaderboard->boards[i].bound == bound)
            return (long)i;
    struct board *boards = grow(leaderboard->boards, count, sizeof *boards, err);
    if (!boards)
        return -1;
    leaderboard->boards = boards;
    struct baseline *baselines = grow(all->baselines, count, sizeof *baselines, err);
    if (!baselines)
        return -1;
    all->baselines = baselines;
    if (baseline_read(leaderboard->suite, device, &baselines[count], err) != 0)
        return -1;
    struct board *board = &boards[count];
    memset(board, 0, sizeof *board);
    snprintf(board->device, sizeof board->device, "%s", device);
    snprintf(board->baseline, sizeof board->baseline, "%s", baselines[count].label);
    board->bound = bound;
    board->case_count = leaderboard->suite->case_count;
    leaderboard->board_count++;
    return (long)count;
}

static struct board_entry *new_entry(struct board *board, struct error *err) {
    struct board_entry *entries = grow(board->entries, board->entry_count, sizeof *entries, err);

    if (!entries)
        return NULL;
    board->entries = entries;
    return &entries[board->entry_count];
}

static bool wanted(const struct collected *all, const char *device) {
    return !all->options->device || strcmp(all->options->device, device) == 0;
}

static int add_reported(struct collected *all, struct error *err) {
    const struct suite *suite = all->leaderboard->suite;
    struct reported_row *rows;
    size_t count;
    char path[1024];
    int result = 0;

    snprintf(path, sizeof path, "%s/reported.csv", suite->directory);
    if (reported_read(path, &rows, &count, err) != 0)
        return -1;
    for (size_t i = 0; i < count && result == 0; i++) {
        if (!wanted(all, rows[i].device))
            continue;
        long index = find_board(all, rows[i].device, BOUND_PUBLISHED, err);
        struct board *board = index < 0 ? NULL : &all->leaderboard->boards[index];
        struct board_entry *entry = board ? new_entry(board, err) : NULL;
        if (!entry ||
            board_entry_from_reported(suite, &all->baselines[index], &rows[i], entry, err) != 0) {
            result = -1;
            break;
        }
        board->entry_count++;
        snprintf(board->note, sizeof board->note, "reported by their source, not reproduced%s",
                 rows[i].device_inferred ? "; the device is inferred from the scores" : "");
    }
    free(rows);
    return result;
}

static int skip_record(struct collected *all, const char *text, struct error *err) {
    struct leaderboard *leaderboard = all->leaderboard;
    char(*skipped)[512] =
        grow(leaderboard->skipped, leaderboard->skipped_count, sizeof *skipped, err);

    if (!skipped)
        return -1;
    leaderboard->skipped = skipped;
    snprintf(skipped[leaderboard->skipped_count++], sizeof *skipped, "%s", text);
    return 0;
}

/* Told where an entry is about to be added. */
static void note_devices(struct board *board, const struct board_entry *entry) {
    if (board->entry_count > 0 && !board->note[0] &&
        strcmp(board->entries[0].device_name, entry->device_name) != 0)
        snprintf(board->note, sizeof board->note, "the entries come from different devices");
}

static int add_summary(struct collected *all, const struct summary *summary, struct error *err) {
    if (!wanted(all, summary->device_short))
        return 0;
    long index = find_board(all, summary->device_short, BOUND_DATASHEET, err);
    if (index < 0)
        return -1;
    struct board *board = &all->leaderboard->boards[index];
    struct board_entry *entry = new_entry(board, err);
    if (!entry || board_entry_from_summary(all->leaderboard->suite, &all->baselines[index],
                                           board->bound, summary, entry, err) != 0)
        return -1;
    snprintf(entry->record_path, sizeof entry->record_path, "%s", summary->record->path);
    note_devices(board, entry);
    board->entry_count++;
    return 0;
}

static int add_published(struct collected *all, const char *folder, const struct entry *published,
                         struct error *err) {
    if (!wanted(all, published->device_short))
        return 0;
    long index = find_board(all, published->device_short, BOUND_DATASHEET, err);
    if (index < 0)
        return -1;
    struct board *board = &all->leaderboard->boards[index];
    struct board_entry *entry = new_entry(board, err);
    if (!entry || board_entry_from_published(all->leaderboard->suite, &all->baselines[index],
                                             published, entry, err) != 0)
        return -1;
    if (snprintf(entry->record_path, sizeof entry->record_path, "%s/%s", folder,
                 published->record.path) >= (int)sizeof entry->record_path)
        entry->record_path[0] = '\0';
    note_devices(board, entry);
    board->entry_count++;
    char(*hashes)[65] = grow(all->published, all->published_count, sizeof *hashes, err);
    if (!hashes)
        return -1;
    all->published = hashes;
    memcpy(hashes[all->published_count++], published->record.sha256, sizeof *hashes);
    return 0;
}

/* A folder with an entry.json. */
static int add_entry(struct collected *all, const char *folder, struct error *err) {
    struct error read_error = {0};
    struct entry published;

    if (entry_read(folder, &published, &read_error) != 0)
        return skip_record(all, read_error.text, err);
    int result = 0;
    if (strcmp(published.suite_name, all->leaderboard->suite->name) == 0)
        result = add_published(all, folder, &published, err);
    entry_free(&published);
    return result;
}

static int add_record(struct collected *all, const char *path, struct error *err) {
    struct error read_error = {0};
    struct record record;
    struct summary summary;

    if (record_read(path, &record, &read_error) != 0)
        return skip_record(all, read_error.text, err);
    int result = 0;
    if (strcmp(record.run.suite_name, all->leaderboard->suite->name) == 0) {
        result = summarize_record(&record, &summary, err);
        if (result == 0) {
            result = add_summary(all, &summary, err);
            summary_free(&summary);
        }
    }
    record_free(&record);
    return result;
}

/* The record of an entry counts as the entry says, withdrawn or not, wherever a copy lies. */
static bool is_published(const struct collected *all, const char *path) {
    struct error err = {0};
    char hash[65];

    if (all->published_count == 0 || file_sha256(path, hash, &err) != 0)
        return false;
    for (size_t i = 0; i < all->published_count; i++)
        if (strcmp(all->published[i], hash) == 0)
            return true;
    return false;
}

static int read_later(struct collected *all, const char *path, struct error *err) {
    char **paths = grow(all->paths, all->path_count, sizeof *paths, err);

    if (!paths)
        return -1;
    all->paths = paths;
    paths[all->path_count] = strdup(path);
    if (!paths[all->path_count])
        return error_set(err, EXIT_FAILED, "out of memory for the leaderboard");
    all->path_count++;
    return 0;
}

static int by_path(const FTSENT **a, const FTSENT **b) {
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

static bool is_entry(const char *folder) {
    char path[4096];
    return snprintf(path, sizeof path, "%s/%s", folder, ENTRY_FILE) < (int)sizeof path &&
           access(path, F_OK) == 0;
}

/* A file of an entry's folder that was named by itself stands for the entry. */
static bool entry_of_file(const char *path, char *folder, size_t size) {
    const char *slash = strrchr(path, '/');

    snprintf(folder, size, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
    return is_entry(folder);
}

/* Every entry and every other *.jsonl under a folder, or the one file; links are not followed. */
static int add_tree(struct collected *all, const char *path, struct error *err) {
    char *const roots[] = {(char *)path, NULL};
    char folder[4096];
    int result = 0;

    FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, by_path);
    if (!tree)
        return error_set(err, EXIT_FAILED, "%s: %s", path, strerror(errno));
    for (FTSENT *file; result == 0 && (file = fts_read(tree));) {
        if (file->fts_info == FTS_ERR || file->fts_info == FTS_DNR || file->fts_info == FTS_NS) {
            result =
                error_set(err, EXIT_FAILED, "%s: %s", file->fts_path, strerror(file->fts_errno));
            break;
        }
        if (file->fts_info == FTS_D && is_entry(file->fts_path)) {
            fts_set(tree, file, FTS_SKIP);
            result = add_entry(all, file->fts_path, err);
            continue;
        }
        if (file->fts_info == FTS_F && file->fts_level == 0 &&
            entry_of_file(path, folder, sizeof folder)) {
            result = add_entry(all, folder, err);
            continue;
        }
        const char *suffix = strrchr(file->fts_name, '.');
        if (file->fts_info == FTS_F &&
            (file->fts_level == 0 || (suffix && strcmp(suffix, ".jsonl") == 0)))
            result = read_later(all, file->fts_path, err);
    }
    fts_close(tree);
    return result;
}

static int add_records(struct collected *all, struct error *err) {
    char path[1024];

    snprintf(path, sizeof path, "%s/records", all->leaderboard->suite->directory);
    if (access(path, F_OK) == 0 && add_tree(all, path, err) != 0)
        return -1;
    for (size_t i = 0; i < all->options->record_path_count; i++)
        if (add_tree(all, all->options->record_paths[i], err) != 0)
            return -1;
    for (size_t i = 0; i < all->path_count; i++)
        if (!is_published(all, all->paths[i]) && add_record(all, all->paths[i], err) != 0)
            return -1;
    return 0;
}

/* Ranked ones first, then by latency; entries that are equal keep their order (merge by hand, since
 * qsort is not stable). */
static bool comes_before(const struct board_entry *a, const struct board_entry *b) {
    bool a_refused = a->why[0] != '\0', b_refused = b->why[0] != '\0';

    if (a_refused != b_refused)
        return b_refused;
    if (isnan(a->mean_latency_ms) || isnan(b->mean_latency_ms))
        return !isnan(a->mean_latency_ms) && isnan(b->mean_latency_ms);
    return a->mean_latency_ms < b->mean_latency_ms;
}

static void merge(struct board_entry *entries, struct board_entry *spare, size_t low, size_t middle,
                  size_t high) {
    size_t left = low, right = middle;

    for (size_t i = low; i < high; i++) {
        bool take_right =
            left == middle || (right < high && comes_before(&entries[right], &entries[left]));
        spare[i] = entries[take_right ? right++ : left++];
    }
    memcpy(entries + low, spare + low, (high - low) * sizeof *entries);
}

static int rank_board(struct board *board, struct error *err) {
    size_t count = board->entry_count;
    struct board_entry *spare = malloc((count + 1) * sizeof *spare);
    double best_ms = NAN;

    if (!spare)
        return error_set(err, EXIT_FAILED, "out of memory for the leaderboard");
    for (size_t width = 1; width < count; width *= 2)
        for (size_t low = 0; low + width < count; low += 2 * width)
            merge(board->entries, spare, low, low + width,
                  low + 2 * width < count ? low + 2 * width : count);
    free(spare);
    for (size_t i = 0; i < count; i++) {
        struct board_entry *entry = &board->entries[i];
        if (entry->why[0])
            continue;
        if (i == 0)
            best_ms = entry->mean_latency_ms;
        entry->rank = (int)i + 1;
        if (isnan(entry->ratio_to_best))
            entry->ratio_to_best = latency_ratio(entry->mean_latency_ms, best_ms);
    }
    return 0;
}

static bool has_board(const struct leaderboard *leaderboard, const char *device) {
    for (size_t i = 0; i < leaderboard->board_count; i++)
        if (strcmp(leaderboard->boards[i].device, device) == 0)
            return true;
    return false;
}

static int list_unmeasured(struct collected *all, struct error *err) {
    struct leaderboard *leaderboard = all->leaderboard;
    size_t count;
    const struct device_row *rows = device_rows(&count);

    leaderboard->unmeasured = calloc(count + 1, sizeof *leaderboard->unmeasured);
    if (!leaderboard->unmeasured)
        return error_set(err, EXIT_FAILED, "out of memory for the leaderboard");
    for (size_t i = 0; i < count; i++)
        if (wanted(all, rows[i].short_name) && !has_board(leaderboard, rows[i].short_name))
            leaderboard->unmeasured[leaderboard->unmeasured_count++] = &rows[i];
    return 0;
}

int leaderboard_build(const struct suite *suite, const struct leaderboard_options *options,
                      struct leaderboard *leaderboard, struct error *err) {
    struct collected all = {.leaderboard = leaderboard, .options = options};
    int result = -1;

    memset(leaderboard, 0, sizeof *leaderboard);
    leaderboard->suite = suite;
    if (devices_read(err) != 0 || add_reported(&all, err) != 0 || add_records(&all, err) != 0)
        goto done;
    for (size_t i = 0; i < leaderboard->board_count; i++)
        if (rank_board(&leaderboard->boards[i], err) != 0)
            goto done;
    result = list_unmeasured(&all, err);
done:
    free(all.baselines);
    free(all.published);
    for (size_t i = 0; i < all.path_count; i++)
        free(all.paths[i]);
    free(all.paths);
    if (result != 0)
        leaderboard_free(leaderboard);
    return result;
}

void leaderboard_free(struct leaderboard *leaderboard) {
    for (size_t b = 0; b < leaderboard->board_count; b++) {
        for (size_t e = 0; e < leaderboard->boards[b].entry_count; e++)
            free(leaderboard->boards[b].entries[e].cases);
        free(leaderboard->boards[b].entries);
    }
    free(leaderboard->boards);
    free(leaderboard->unmeasured);
    free(leaderboard->skipped);
    memset(leaderboard, 0, sizeof *leaderboard);
}

void leaderboard_command(const struct leaderboard *leaderboard, char *text, size_t size) {
    snprintf(text, size, "moesol run %s --device cuda -o records", leaderboard->suite->name);
}
