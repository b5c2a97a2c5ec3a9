/* Feeds a fuzz target the files of its corpus folder, without libFuzzer: each as it is, cut at
 * every length, and with single bytes changed. Usage: PROGRAM [FOLDER]; without one, the folder of
 * the corpus that has the target's name (fuzz_record: tests/fuzz/corpus/record). */
#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "fuzz.h"

/* An exact allocation, so that a read past the end is seen. */
static void feed(const uint8_t *data, size_t size) {
    uint8_t *copy = malloc(size ? size : 1);
    memcpy(copy, data, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

/* At most 200 of each kind a file, spread over it. */
static void feed_variants(uint8_t *data, size_t size) {
    static const uint8_t bytes[] = {0, 0xff, '"', '-', '9', '}'};
    size_t step = size / 200 + 1;
    feed(data, size);
    for (size_t i = 0; i < size; i += step) {
        uint8_t kept = data[i];
        feed(data, i);
        data[i] = bytes[i / step % sizeof bytes];
        feed(data, size);
        data[i] = kept;
    }
}

static int replay_file(const char *path) {
    static uint8_t data[1 << 20];
    FILE *file = fopen(path, "rb");
    if (!file) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return -1;
    }
    size_t size = fread(data, 1, sizeof data, file);
    fclose(file);
    fprintf(stderr, "%s\n", path);
    feed_variants(data, size);
    return 0;
}

int main(int argc, char **argv) {
    char folder[512], path[1024];
    const char *name = strstr(argv[0], "fuzz_");
    size_t replayed = 0, failed = 0;
    struct dirent *entry;
    snprintf(folder, sizeof folder, "tests/fuzz/corpus/%s", name ? name + strlen("fuzz_") : "");
    DIR *directory = opendir(argc > 1 ? argv[1] : folder);
    while (directory && (entry = readdir(directory))) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", argc > 1 ? argv[1] : folder, entry->d_name);
        if (replay_file(path))
            failed++;
        else
            replayed++;
    }
    if (directory)
        closedir(directory);
    else
        fprintf(stderr, "no corpus: %s: %s\n", argc > 1 ? argv[1] : folder, strerror(errno));
    printf("%zu passed, %zu failed\n", replayed, failed);
    return replayed == 0 || failed > 0;
}
