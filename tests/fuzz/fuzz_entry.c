/* Fuzz target: a leaderboard entry's entry.json, which a pull request brings, and the suite's
 * baselines.json. The paths that an entry takes stay inside its folder. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../analysis/baseline.h"
#include "../../analysis/entry.h"
#include "fuzz.h"

static char folder[64];
static struct suite suite;

static void remove_folder(void) {
    char path[128];
    static const char *const names[] = {"entry.json", "baselines.json"};
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

static void make_folder(void) {
    struct error err = {0};
    strcpy(folder, "/tmp/moesol-fuzz-XXXXXX");
    fuzz_check(mkdtemp(folder) != NULL, "no folder", folder);
    atexit(remove_folder);
    fuzz_check(suite_read("tiny", &suite, &err) == 0, "no suite", err.text);
    snprintf(suite.directory, sizeof suite.directory, "%s", folder);
}

static void write_file(const char *name, const uint8_t *data, size_t size) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    fuzz_check(file && fwrite(data, 1, size, file) == size && fclose(file) == 0, "no file", path);
}

static void check_paths(const struct entry *entry) {
    fuzz_check(entry_path_is_inside(entry->record.path), "outside", entry->record.path);
    for (size_t i = 0; i < entry->file_count; i++)
        fuzz_check(entry_path_is_inside(entry->files[i].path), "outside", entry->files[i].path);
    for (size_t i = 0; i < entry->reproduction_count; i++)
        fuzz_check(entry_path_is_inside(entry->reproductions[i].record.path), "outside",
                   entry->reproductions[i].record.path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct entry entry;
    struct baseline baseline;
    struct error of_entry = {0}, of_baseline = {0};
    if (!folder[0])
        make_folder();
    write_file("entry.json", data, size);
    write_file("baselines.json", data, size);
    if (entry_read(folder, &entry, &of_entry)) {
        fuzz_check_refused(&of_entry);
    } else {
        check_paths(&entry);
        entry_free(&entry);
    }
    if (baseline_read(&suite, "H200", &baseline, &of_baseline))
        fuzz_check_refused(&of_baseline);
    return 0;
}
