/* Builds an entry's source. */
#include "entry_build.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../core/build_info.h"
#include "../core/file.h"
#include "../core/output.h"
#include "bundle.h"
#include "program.h"

static const size_t source_bytes_most = 1 << 20;

static int find_builtin(const struct entry *entry, char *kernel, size_t size, struct error *err) {
    for (const struct build_source *source = build_sources; source->path; source++) {
        if (strcmp(source->path, entry->kernel.source) != 0)
            continue;
        if (strcmp(source->sha256, entry->kernel.source_hash) != 0)
            return error_set(err, EXIT_FAILED,
                             "verify: %.100s of this build has hash %.12s..., the entry's has "
                             "%.12s...; check out revision %.40s and build it",
                             source->path, source->sha256, entry->kernel.source_hash,
                             entry->source_revision);
        snprintf(kernel, size, "%s", entry->kernel.name);
        return 0;
    }
    return error_set(err, EXIT_FAILED, "verify: this build has no %.150s; check out revision %.40s",
                     entry->kernel.source, entry->source_revision);
}

/* Copies the bundled files without the folder that they lie in. */
static int unpack(const char *folder, const struct entry *entry, const char *scratch,
                  struct error *err) {
    static const char prefix[] = BUNDLE_FOLDER "/";

    for (size_t i = 0; i < entry->file_count; i++) {
        const char *path = entry->files[i].path;
        char from[1400], to[1400], parent[1400], *text;
        size_t size;
        if (strncmp(path, prefix, sizeof prefix - 1) == 0)
            path += sizeof prefix - 1;
        snprintf(from, sizeof from, "%s/%s", folder, entry->files[i].path);
        snprintf(to, sizeof to, "%s/%s", scratch, path);
        snprintf(parent, sizeof parent, "%s", to);
        *strrchr(parent, '/') = '\0';
        if (output_make_directory(parent, err) != 0 ||
            file_read(from, source_bytes_most, &text, &size, err) != 0)
            return -1;
        int result = file_write(to, text, size, err);
        free(text);
        if (result != 0)
            return -1;
    }
    return 0;
}

int entry_build_find_one(const char *folder, const char *suffix, const char *what, char *path,
                         size_t size, struct error *err) {
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, NULL, alphasort), found = 0;

    for (int i = 0; i < count; i++) {
        const char *dot = strrchr(entries[i]->d_name, '.');
        if (dot && strcmp(dot, suffix) == 0 && found++ == 0)
            snprintf(path, size, "%s/%s", folder, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    if (found == 1)
        return 0;
    return error_set(err, EXIT_FAILED, "verify: %s: %d %s files in %.200s, one is needed", what,
                     found, suffix, folder);
}

static int compile(const char *scratch, const char *headers, struct error *err) {
    char source[1400], output[1400], include[1200];
    struct error no_c = {0}, ignored = {0};

    snprintf(output, sizeof output, "%s/libentry.so", scratch);
    snprintf(include, sizeof include, "-I%s", headers);
    if (entry_build_find_one(scratch, ".c", "the source", source, sizeof source, &no_c) == 0) {
        char *const arguments[] = {"cc",    "-std=c11", "-O3",  "-march=native", "-fPIC", "-shared",
                                   include, "-o",       output, source,          "-lm",   NULL};
        return program_run(arguments, err);
    }
    if (entry_build_find_one(scratch, ".cu", "the source", source, sizeof source, &ignored) == 0) {
        char *const arguments[] = {"nvcc",       "-std=c++17", "-O3",     "-arch=native",
                                   "-Xcompiler", "-fPIC",      "-shared", include,
                                   "-o",         output,       source,    NULL};
        return program_run(arguments, err);
    }
    return error_set(err, EXIT_FAILED, "%s (nor one .cu file, nor a Makefile)", no_c.text);
}

static int build_plugin(const char *folder, const struct entry *entry, const char *scratch,
                        char *kernel, size_t size, struct error *err) {
    char makefile[1400], library[1400], variable[1200], headers[1100];

    if (entry->file_count == 0)
        return error_set(err, EXIT_FAILED, "verify: the entry has no source: %.200s",
                         entry->note[0] ? entry->note : "none was given");
    if (unpack(folder, entry, scratch, err) != 0)
        return -1;
    snprintf(headers, sizeof headers, "%s%s", build_source_dir[0] ? build_source_dir : build_prefix,
             build_source_dir[0] ? "" : "/include/moesol");
    snprintf(makefile, sizeof makefile, "%s/Makefile", scratch);
    snprintf(variable, sizeof variable, "MOESOL=%s", headers);
    char *const arguments[] = {"make", "-C", (char *)scratch, variable, NULL};
    if (access(makefile, F_OK) == 0 ? program_run(arguments, err) : compile(scratch, headers, err))
        return -1;
    if (entry_build_find_one(scratch, ".so", "its Makefile", library, sizeof library, err) != 0)
        return -1;
    snprintf(kernel, size, "%s:%s", library, entry->kernel.name);
    return 0;
}

int entry_build(const char *folder, const struct entry *entry, const char *scratch, char *kernel,
                size_t size, struct error *err) {
    return entry->kernel.plugin ? build_plugin(folder, entry, scratch, kernel, size, err)
                                : find_builtin(entry, kernel, size, err);
}
