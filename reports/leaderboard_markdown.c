/* The leaderboard as Markdown. */
#include "escape.h"
#include "leaderboard_formats.h"

static void item(FILE *file, const char *text) {
    fputs("- ", file);
    escape_markdown(file, text);
    fputc('\n', file);
}

static int write_board(FILE *file, const struct leaderboard *leaderboard,
                       const struct board *board) {
    struct table table;
    char text[768];

    leaderboard_title(leaderboard, board, text, sizeof text);
    fputs("### ", file);
    escape_markdown(file, text);
    fputs("\n\n", file);
    leaderboard_table(board, &table);
    int result = table_write_markdown(file, &table);
    table_free(&table);
    fputc('\n', file);
    if (board->note[0]) {
        snprintf(text, sizeof text, "%s: %s", board->device, board->note);
        item(file, text);
    }
    for (size_t i = 0; i < board->entry_count; i++)
        if (leaderboard_remark(&board->entries[i], text, sizeof text))
            item(file, text);
    return result;
}

static int write_markdown(FILE *file, const struct leaderboard *leaderboard, bool one_device) {
    char command[256];

    (void)one_device;
    for (size_t i = 0; i < leaderboard->board_count; i++) {
        fputs(i > 0 ? "\n" : "", file);
        if (write_board(file, leaderboard, &leaderboard->boards[i]) != 0)
            return -1;
    }
    leaderboard_command(leaderboard, command, sizeof command);
    for (size_t i = 0; i < leaderboard->unmeasured_count; i++) {
        fputs("- ", file);
        escape_markdown(file, leaderboard->unmeasured[i]->name);
        fprintf(file, ": not measured; `%s` there measures it\n", command);
    }
    return 0;
}

const struct leaderboard_format leaderboard_markdown = {.name = "markdown",
                                                        .write = write_markdown};
