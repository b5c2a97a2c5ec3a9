/* A small CSV reader: quotes, doubled quotes, no line breaks inside a field. */
#include "reported.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_COLUMNS 32

struct column {
    const char *name;
    size_t offset, size;
};

#define COLUMN(member)                                                                             \
    { #member, offsetof(struct reported_row, member), sizeof((struct reported_row *)0)->member }

static const struct column columns[] = {
    COLUMN(rank),        COLUMN(mean_latency_ms),
    COLUMN(sol_percent), COLUMN(ratio_to_best),
    COLUMN(date),        COLUMN(status),
    COLUMN(license),     COLUMN(source),
    COLUMN(device),      COLUMN(note),
};
static const size_t column_count = sizeof columns / sizeof *columns;

/* Splits a line in place; returns the number of fields, or -1 for a quote that does not close. */
static int split_line(char *line, char **fields, int most) {
    char *in = line, *out = line;
    int count = 0;

    line[strcspn(line, "\r\n")] = '\0';
    for (;;) {
        bool quoted = *in == '"';
        if (count == most)
            return count;
        fields[count++] = out;
        in += quoted;
        while (*in && (quoted || *in != ',')) {
            if (quoted && *in == '"' && *++in != '"') {
                quoted = false;
                continue;
            }
            *out++ = *in++;
        }
        if (quoted)
            return -1;
        bool more = *in == ',';
        in += more;
        *out++ = '\0';
        if (!more)
            return count;
    }
}

/* Which column of the table each field is; NULL for one that is not used. */
static int read_header(const char *path, char **fields, int count, const struct column **map,
                       struct error *err) {
    for (size_t c = 0; c < column_count; c++) {
        bool found = false;
        for (int i = 0; i < count; i++)
            if (strcmp(fields[i], columns[c].name) == 0) {
                map[i] = &columns[c];
                found = true;
            }
        if (!found)
            return error_set(err, EXIT_FAILED, "%s:1: column missing: %s", path, columns[c].name);
    }
    return 0;
}

static bool read_number(const char *text, double *value) {
    char *end;

    *value = NAN;
    if (*text == '\0')
        return true;
    *value = strtod(text, &end);
    return *end == '\0' && isfinite(*value) && *value > 0;
}

static int finish_row(const char *path, size_t line, struct reported_row *row, struct error *err) {
    double percent;

    if (!read_number(row->mean_latency_ms, &row->latency_ms) || isnan(row->latency_ms))
        return error_set(err, EXIT_FAILED, "%s:%zu: mean_latency_ms: not a positive number: %s",
                         path, line, row->mean_latency_ms);
    if (!read_number(row->sol_percent, &percent))
        return error_set(err, EXIT_FAILED, "%s:%zu: sol_percent: not a positive number: %s", path,
                         line, row->sol_percent);
    row->score = percent / 100;
    if (!read_number(row->ratio_to_best, &row->ratio))
        return error_set(err, EXIT_FAILED, "%s:%zu: ratio_to_best: not a positive number: %s", path,
                         line, row->ratio_to_best);
    char *bracket = strstr(row->device, "(inferred)");
    row->device_inferred = bracket != NULL;
    if (bracket)
        *bracket = '\0';
    for (size_t n = strlen(row->device); n > 0 && isspace((unsigned char)row->device[n - 1]);)
        row->device[--n] = '\0';
    if (row->device[0] == '\0')
        return error_set(err, EXIT_FAILED, "%s:%zu: device: empty", path, line);
    return 0;
}

static int read_row(const char *path, size_t line, char **fields, int count,
                    const struct column *const *map, struct reported_row *row, struct error *err) {
    memset(row, 0, sizeof *row);
    for (int i = 0; i < count; i++) {
        if (!map[i])
            continue;
        if (strlen(fields[i]) >= map[i]->size)
            return error_set(err, EXIT_FAILED, "%s:%zu: %s: longer than %zu bytes", path, line,
                             map[i]->name, map[i]->size - 1);
        strcpy((char *)row + map[i]->offset, fields[i]);
    }
    return finish_row(path, line, row, err);
}

static int read_lines(FILE *file, const char *path, struct reported_row **rows, size_t *count,
                      struct error *err) {
    const struct column *map[MAX_COLUMNS] = {0};
    char *fields[MAX_COLUMNS], text[4096];
    int header_count = 0;

    for (size_t line = 1; fgets(text, sizeof text, file); line++) {
        int field_count = split_line(text, fields, MAX_COLUMNS);
        if (field_count < 0)
            return error_set(err, EXIT_FAILED, "%s:%zu: a quote does not close", path, line);
        if (line == 1) {
            header_count = field_count;
            if (read_header(path, fields, field_count, map, err) != 0)
                return -1;
            continue;
        }
        if (field_count != header_count)
            return error_set(err, EXIT_FAILED, "%s:%zu: %d fields; the first line has %d", path,
                             line, field_count, header_count);
        struct reported_row *grown = realloc(*rows, (*count + 1) * sizeof **rows);
        if (!grown)
            return error_set(err, EXIT_FAILED, "%s: out of memory", path);
        *rows = grown;
        if (read_row(path, line, fields, field_count, map, &grown[*count], err) != 0)
            return -1;
        ++*count;
    }
    return 0;
}

int reported_read(const char *path, struct reported_row **rows, size_t *count, struct error *err) {
    *rows = NULL;
    *count = 0;
    FILE *file = fopen(path, "r");
    if (!file)
        return errno == ENOENT ? 0 : error_set(err, EXIT_FAILED, "%s: %s", path, strerror(errno));
    int result = read_lines(file, path, rows, count, err);
    fclose(file);
    if (result != 0) {
        free(*rows);
        *rows = NULL;
        *count = 0;
    }
    return result;
}
