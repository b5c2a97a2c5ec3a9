/* Copies source files, never more than an entry may hold, and never a link or a binary. */
#include "bundle.h"

#include <errno.h>
#include <fts.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../core/build_info.h"
#include "../core/file.h"
#include "../core/output.h"
#include "../core/sha256.h"

static const size_t source_bytes_most = 1 << 20;

/* --- files ----------------------------------------------------------------------------------- */

static bool is_bundled(const struct entry *entry, const char *path) {
    for (size_t i = 0; i < entry->file_count; i++)
        if (strcmp(entry->files[i].path, path) == 0)
            return true;
    return false;
}

static int make_parent(const char *path, struct error *err) {
    char parent[1400];

    snprintf(parent, sizeof parent, "%s", path);
    char *slash = strrchr(parent, '/');
    if (!slash)
        return 0;
    *slash = '\0';
    return output_make_directory(parent, err);
}

static int add_text(const char *folder, const char *to, const char *text, size_t size,
                    struct entry *entry, struct error *err) {
    char path[1400];
    struct entry_file *files =
        realloc(entry->files, (entry->file_count + 1) * sizeof *entry->files);

    if (!files)
        return error_set(err, EXIT_FAILED, "out of memory for the files of an entry");
    entry->files = files;
    if (entry->file_count == ENTRY_FILES_MOST)
        return error_set(err, EXIT_FAILED, "more than %d source files; give fewer",
                         ENTRY_FILES_MOST);
    struct entry_file *file = &files[entry->file_count];
    if (snprintf(file->path, sizeof file->path, "%s", to) >= (int)sizeof file->path ||
        snprintf(path, sizeof path, "%s/%s", folder, to) >= (int)sizeof path)
        return error_set(err, EXIT_FAILED, "%.300s: the path is too long", to);
    if (make_parent(path, err) != 0 || file_write(path, text, size, err) != 0)
        return -1;
    sha256_hex(text, size, file->sha256);
    entry->file_count++;
    return 0;
}

int bundle_file(const char *from, const char *folder, const char *to, struct entry *entry,
                struct error *err) {
    char *text;
    size_t size;

    if (file_read(from, source_bytes_most, &text, &size, err) != 0)
        return -1;
    int result = add_text(folder, to, text, size, entry, err);
    free(text);
    return result;
}

void bundle_remove(const char *folder) {
    char *const roots[] = {(char *)folder, NULL};
    FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);

    for (FTSENT *file; tree && (file = fts_read(tree));)
        if (file->fts_info != FTS_D)
            remove(file->fts_accpath);
    if (tree)
        fts_close(tree);
}

/* --- a built-in kernel ----------------------------------------------------------------------- */

/* "kernels/cuda/../kernel.h" -> "kernels/kernel.h", in place. */
static void normalise(char *path) {
    for (char *up; (up = strstr(path, "/../"));) {
        char *begin = up;
        while (begin > path && begin[-1] != '/')
            begin--;
        memmove(begin, up + 4, strlen(up + 4) + 1);
    }
}

static int add_tree_file(const char *path, const char *folder, struct entry *entry,
                         struct error *err);

/* Follows each #include "..." that stays in kernels/ or cases/. */
static int add_includes(const char *path, char *text, const char *folder, struct entry *entry,
                        struct error *err) {
    static const char directive[] = "#include \"";
    char *rest = text;

    for (char *line; (line = strsep(&rest, "\n"));) {
        char included[512];
        if (strncmp(line, directive, sizeof directive - 1) != 0)
            continue;
        char *name = line + sizeof directive - 1, *quote = strchr(name, '"');
        const char *slash = strrchr(path, '/');
        if (!quote)
            continue;
        *quote = '\0';
        snprintf(included, sizeof included, "%.*s/%s", (int)(slash - path), path, name);
        normalise(included);
        bool ours = strncmp(included, "kernels/", 8) == 0 || strncmp(included, "cases/", 6) == 0;
        if (ours && add_tree_file(included, folder, entry, err) != 0)
            return -1;
    }
    return 0;
}

/* The file in kernels/ that has the functions of a header, if there is one. */
static int add_body(const char *header, const char *folder, struct entry *entry,
                    struct error *err) {
    bool cuda = strstr(header, ".cuh") != NULL;
    const char *dot = strrchr(header, '.');
    char body[512], path[1100];

    if (strncmp(header, "kernels/", 8) != 0 || strcmp(dot, cuda ? ".cuh" : ".h") != 0)
        return 0;
    snprintf(body, sizeof body, "%.*s%s", (int)(dot - header), header, cuda ? ".cu" : ".c");
    snprintf(path, sizeof path, "%s/%s", build_source_dir, body);
    return access(path, F_OK) == 0 ? add_tree_file(body, folder, entry, err) : 0;
}

/* A file of the source tree, by its path from the top, with what it includes and what that needs.
 */
static int add_tree_file(const char *path, const char *folder, struct entry *entry,
                         struct error *err) {
    char from[1024], to[600], *text;
    size_t size;
    int result = 0;

    snprintf(to, sizeof to, "%s/%s", BUNDLE_FOLDER, path);
    if (is_bundled(entry, to))
        return 0;
    snprintf(from, sizeof from, "%s/%s", build_source_dir, path);
    if (file_read(from, source_bytes_most, &text, &size, err) != 0)
        return -1;
    result = add_text(folder, to, text, size, entry, err);
    if (result == 0)
        result = add_includes(path, text, folder, entry, err);
    free(text);
    return result == 0 ? add_body(path, folder, entry, err) : -1;
}

static const struct build_source *find_source(const char *path) {
    for (const struct build_source *source = build_sources; source->path; source++)
        if (strcmp(source->path, path) == 0)
            return source;
    return NULL;
}

/* Why the tree's file is not what was measured; false where it is. */
static bool tree_differs(const struct record_kernel *kernel, char *why, size_t size) {
    const struct build_source *source = find_source(kernel->source);
    char path[1024], hash[65];
    struct error ignored = {0};

    snprintf(path, sizeof path, "%s/%s", build_source_dir, kernel->source);
    if (!build_source_dir[0])
        snprintf(why, size, "no source: this is an installed command, without the source tree");
    else if (!source)
        snprintf(why, size, "no source: this tree has no %.80s", kernel->source);
    else if (file_sha256(path, hash, &ignored) != 0)
        snprintf(why, size, "no source: %.120s", ignored.text);
    else if (strcmp(hash, kernel->source_hash) != 0)
        snprintf(why, size,
                 "no source: %.80s was measured with hash %.12s..., this tree's has %.12s...",
                 kernel->source, kernel->source_hash, hash);
    else
        return false;
    return true;
}

/* --- a file or folder that is given ---------------------------------------------------------- */

static bool is_binary(const char *name) {
    static const char *const suffixes[] = {".so", ".o", ".a", ".d", ".cubin", ".fatbin"};
    const char *dot = strrchr(name, '.');

    for (size_t i = 0; dot && i < sizeof suffixes / sizeof *suffixes; i++)
        if (strcmp(dot, suffixes[i]) == 0)
            return true;
    return false;
}

static int by_path(const FTSENT **a, const FTSENT **b) {
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

static int add_given(const char *source, const char *folder, struct entry *entry,
                     struct error *err) {
    char *const roots[] = {(char *)source, NULL};
    char to[1024];
    int result = 0;

    FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, by_path);
    if (!tree)
        return error_set(err, EXIT_FAILED, "%s: %s", source, strerror(errno));
    for (FTSENT *file; result == 0 && (file = fts_read(tree));) {
        const char *below = file->fts_level == 0 ? file->fts_name : file->fts_path + strlen(source);
        below += strspn(below, "/");
        bool hidden = file->fts_level > 0 && file->fts_name[0] == '.';
        if (file->fts_info == FTS_D && hidden)
            fts_set(tree, file, FTS_SKIP);
        if (file->fts_info != FTS_F || hidden || is_binary(file->fts_name))
            continue;
        const char *base = strrchr(below, '/');
        if (file->fts_level == 0 && base)
            below = base + 1;
        snprintf(to, sizeof to, "%s/%s", BUNDLE_FOLDER, below);
        result = bundle_file(file->fts_path, folder, to, entry, err);
    }
    fts_close(tree);
    if (result == 0 && entry->file_count == 0)
        return error_set(err, EXIT_FAILED, "--source %.300s: no source file in it", source);
    return result;
}

/* --- all of it ------------------------------------------------------------------------------- */

static bool has_measured_file(const struct entry *entry) {
    for (size_t i = 0; i < entry->file_count; i++)
        if (strcmp(entry->files[i].sha256, entry->kernel.source_hash) == 0)
            return true;
    return false;
}

/* After what stands there already. */
static void note(struct entry *entry, const char *text) {
    size_t used = strlen(entry->note);
    snprintf(entry->note + used, sizeof entry->note - used, "%s%s", used ? "; " : "", text);
}

int bundle_source(const char *source, const char *folder, struct entry *entry, struct error *err) {
    const struct record_kernel *kernel = &entry->kernel;
    char why[200];

    if (source && add_given(source, folder, entry, err) != 0)
        return -1;
    if (source && !kernel->plugin && !has_measured_file(entry))
        return error_set(err, EXIT_FAILED,
                         "--source %.300s: no file in it has the record's kernel source hash "
                         "%.12s...",
                         source, kernel->source_hash);
    if (source)
        return 0;
    if (kernel->plugin) {
        note(entry, "no source: a plug-in's has to be given");
        return 0;
    }
    if (tree_differs(kernel, why, sizeof why)) {
        note(entry, why);
        return 0;
    }
    return add_tree_file(kernel->source, folder, entry, err);
}
