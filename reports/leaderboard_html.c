/* The leaderboard as one page, or as a folder in which each row opens the report of its entry. */
#include <stdlib.h>
#include <string.h>

#include "../core/output.h"
#include "escape.h"
#include "html.h"
#include "leaderboard_formats.h"
#include "report_html.h"

/* Where the row of an entry leads. */
struct link {
    char target[192]; /* empty: there is no report */
    char why[512];    /* why not, where there should be one */
};

/* --- the page -----------------------------------------------------------------------------------
 */

static size_t column_called(const struct table *table, const char *title) {
    for (size_t c = 0; c < table->column_count; c++)
        if (strcmp(table->columns[c].title, title) == 0)
            return c;
    return 0;
}

static int write_table(FILE *page, const struct board *board, const struct link *links,
                       size_t first) {
    const char **targets = calloc(board->entry_count + 1, sizeof *targets);
    struct table table;

    if (!targets)
        return -1;
    for (size_t i = 0; links && i < board->entry_count; i++)
        targets[i] = links[first + i].target[0] ? links[first + i].target : NULL;
    leaderboard_table(board, &table);
    const struct html_table how = {.caption = "Ranked by mean latency",
                                   .links = targets,
                                   .name_column = column_called(&table, "kernel")};
    int result = html_write_table(page, &table, &how);
    free(targets);
    return result;
}

static int write_board(FILE *page, const struct leaderboard *leaderboard, const struct board *board,
                       const struct link *links, size_t first) {
    char text[768], id[32];

    snprintf(id, sizeof id, "board-%zu", (size_t)(board - leaderboard->boards) + 1);
    leaderboard_title(leaderboard, board, text, sizeof text);
    html_section_begin(page, id, 2, text);
    if (board->note[0])
        html_element(page, "p", NULL, "%s: %s", board->device, board->note);
    if (write_table(page, board, links, first) != 0)
        return -1;
    for (size_t i = 0; i < board->entry_count; i++) {
        if (leaderboard_remark(&board->entries[i], text, sizeof text))
            html_element(page, "p", "note", "%s", text);
        if (links && links[first + i].why[0])
            html_element(page, "p", "note", "%s: no report: %s",
                         known_text(board->entries[i].kernel), links[first + i].why);
    }
    html_section_end(page);
    return 0;
}

static void write_challenges(FILE *page, const struct leaderboard *leaderboard) {
    char command[256];

    if (leaderboard->unmeasured_count == 0)
        return;
    leaderboard_command(leaderboard, command, sizeof command);
    html_section_begin(page, "unmeasured", 2, "Not measured yet");
    fputs("<ul>\n", page);
    for (size_t i = 0; i < leaderboard->unmeasured_count; i++) {
        fputs("<li>", page);
        escape_html(page, leaderboard->unmeasured[i]->name);
        fputs(": not measured; <code>", page);
        escape_html(page, command);
        fputs("</code> there measures it</li>\n", page);
    }
    fputs("</ul>\n", page);
    html_section_end(page);
}

static int write_page(FILE *page, const struct leaderboard *leaderboard, const struct link *links) {
    const struct suite *suite = leaderboard->suite;
    char title[256];
    size_t first = 0;

    snprintf(title, sizeof title, "moesol leaderboard: %s", suite->name);
    html_begin(page, title);
    html_element(page, "h1", NULL, "Leaderboard: %s", suite->title[0] ? suite->title : suite->name);
    html_element(page, "p", NULL,
                 "Rank is by mean latency over the suite's cases. %% SOL is the SOL score, "
                 "1 / (1 + (T − T_SOL) / (T_b − T_SOL)) with the board's bound and baseline; SOL "
                 "fraction is T_SOL / T; ratio is to the best mean latency of the board.");
    if (links)
        html_element(page, "p", "note", "The kernel of a measured entry opens its report.");
    for (size_t i = 0; i < leaderboard->board_count; i++) {
        if (write_board(page, leaderboard, &leaderboard->boards[i], links, first) != 0)
            return -1;
        first += leaderboard->boards[i].entry_count;
    }
    write_challenges(page, leaderboard);
    html_end(page);
    return 0;
}

static int write_html(FILE *file, const struct leaderboard *leaderboard, bool one_device) {
    (void)one_device;
    return write_page(file, leaderboard, NULL);
}

/* --- the folder ---------------------------------------------------------------------------------
 */

/* A name as a part of a path and a link: letters, digits, '.', '_' and '-' stay. */
static void slug(const char *name, char *text, size_t size) {
    size_t used = 0;

    for (; *name && used + 1 < size; name++) {
        char c = *name;
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     c == '_' || c == '-' || (c == '.' && used > 0);
        text[used++] = plain ? c : '-';
    }
    text[used] = '\0';
}

/* The report of one entry into FOLDER/DEVICE-KERNEL-NUMBER. A record that cannot be read leaves its
 * row without a link, and says why. */
static int write_entry_report(const char *folder, const struct board *board, size_t index,
                              struct link *link, struct error *err) {
    const char *path = board->entries[index].record_path;
    struct error unread = {0};
    struct report report;
    char device[48], kernel[64], target[4096];
    int result;

    if (report_read(&path, 1, &report, &unread) != 0) {
        snprintf(link->why, sizeof link->why, "%s", unread.text);
        return 0;
    }
    slug(board->device, device, sizeof device);
    slug(board->entries[index].kernel, kernel, sizeof kernel);
    if (snprintf(target, sizeof target, "%s/%s-%s-%zu", folder, device, kernel, index + 1) >=
        (int)sizeof target)
        result =
            error_set(err, EXIT_FAILED, "cannot write: %.80s...: the name is too long", folder);
    else
        result = report_html_write(target, &report, err);
    snprintf(link->target, sizeof link->target, "%s-%s-%zu/index.html", device, kernel, index + 1);
    report_free(&report);
    return result;
}

static int write_reports(const char *folder, const struct leaderboard *leaderboard,
                         struct link *links, struct error *err) {
    size_t row = 0;

    for (size_t b = 0; b < leaderboard->board_count; b++) {
        const struct board *board = &leaderboard->boards[b];
        for (size_t i = 0; i < board->entry_count; i++, row++)
            if (board->entries[i].record_path[0] &&
                write_entry_report(folder, board, i, &links[row], err) != 0)
                return -1;
    }
    return 0;
}

static int write_index(const char *folder, const struct leaderboard *leaderboard,
                       const struct link *links, struct error *err) {
    char path[4096];

    if (snprintf(path, sizeof path, "%s/index.html", folder) >= (int)sizeof path)
        return error_set(err, EXIT_FAILED, "cannot write: %.80s...: the name is too long", folder);
    FILE *page = output_open(path, err);
    if (!page)
        return -1;
    int result = write_page(page, leaderboard, links);
    if (result != 0)
        error_set(err, EXIT_FAILED, "out of memory for the leaderboard");
    return output_close(page, path, err) != 0 ? -1 : result;
}

static int write_folder(const char *folder, const struct leaderboard *leaderboard,
                        struct error *err) {
    size_t count = 0;
    int result = -1;

    for (size_t b = 0; b < leaderboard->board_count; b++)
        count += leaderboard->boards[b].entry_count;
    struct link *links = calloc(count + 1, sizeof *links);
    if (!links)
        return error_set(err, EXIT_FAILED, "out of memory for the leaderboard");
    if (output_make_directory(folder, err) == 0 &&
        write_reports(folder, leaderboard, links, err) == 0)
        result = write_index(folder, leaderboard, links, err);
    free(links);
    return result;
}

const struct leaderboard_format leaderboard_html = {
    .name = "html", .write = write_html, .write_folder = write_folder};
