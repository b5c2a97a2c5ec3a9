/* Files in, a suite folder out; what the files mean is in cases/definition.c. */
#include "run_definition.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../cases/definition.h"
#include "../core/file.h"
#include "../core/output.h"

static int read_file(const char *option, const char *path, char **data, struct problem_file *file,
                     struct error *err) {
    struct error problem = {0};
    if (file_read(path, PROBLEM_BYTES_MOST, data, &file->length, &problem))
        return error_set(err, EXIT_USAGE, "run: %s: %s", option, problem.text);
    file->path = path;
    file->text = *data;
    return 0;
}

static int make_suite(const char *suite_text, const char *folder, struct suite *suite,
                      struct error *err) {
    char path[sizeof suite->directory];
    /* By its name, which only the suite's reader knows. */
    if (suite_parse(suite_text, strlen(suite_text), folder, suite, err))
        return -1;
    if (snprintf(path, sizeof path, "%s/%s", folder, suite->name) >= (int)sizeof path)
        return error_set(err, EXIT_USAGE, "run: folder name too long: %.80s...", folder);
    memcpy(suite->directory, path, sizeof path);
    return 0;
}

int run_definition_read(const char *definition, const char *workload, const char *folder,
                        struct suite *suite, char **text, struct error *err) {
    struct problem_file of_definition, of_workload;
    char *definition_text = NULL, *workload_text = NULL;
    struct problem_notes *notes = malloc(sizeof *notes);
    int result = -1;

    *text = NULL;
    if (!notes) {
        error_set(err, EXIT_FAILED, "out of memory: a definition");
        goto done;
    }
    if (read_file("--definition", definition, &definition_text, &of_definition, err) ||
        read_file("--workload", workload, &workload_text, &of_workload, err) ||
        definition_to_suite(&of_definition, &of_workload, text, notes, err))
        goto done;
    result = make_suite(*text, folder, suite, err);
    for (size_t i = 0; !result && i < notes->count; i++)
        fprintf(stderr, "note: %s\n", notes->texts[i]);
done:
    if (result) {
        free(*text);
        *text = NULL;
    }
    free(definition_text);
    free(workload_text);
    free(notes);
    return result;
}

int run_definition_write(const struct suite *suite, const char *text, struct error *err) {
    char path[sizeof suite->directory + sizeof "/suite.json"], *there;
    size_t size;

    snprintf(path, sizeof path, "%s/suite.json", suite->directory);
    if (access(path, F_OK) != 0)
        return output_make_directory(suite->directory, err) ||
                       file_write(path, text, strlen(text), err)
                   ? -1
                   : 0;
    if (file_read(path, PROBLEM_BYTES_MOST, &there, &size, err))
        return -1;
    bool same = size == strlen(text) && memcmp(there, text, size) == 0;
    free(there);
    if (same)
        return 0;
    return error_set(err, EXIT_USAGE,
                     "run: another suite is there already: %.300s; name another folder with -o",
                     path);
}
