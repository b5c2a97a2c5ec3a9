/* The leaderboard as plain text. */
#include "escape.h"
#include "leaderboard_formats.h"

static void line(FILE *file, const char *text) {
    escape_text(file, text);
    fputc('\n', file);
}

static int write_board(FILE *file, const struct leaderboard *leaderboard,
                       const struct board *board) {
    struct table table;
    char text[768];

    leaderboard_title(leaderboard, board, text, sizeof text);
    line(file, text);
    leaderboard_table(board, &table);
    int result = table_write_text(file, &table);
    table_free(&table);
    if (board->note[0]) {
        snprintf(text, sizeof text, "%s: %s", board->device, board->note);
        line(file, text);
    }
    for (size_t i = 0; i < board->entry_count; i++)
        if (leaderboard_remark(&board->entries[i], text, sizeof text))
            line(file, text);
    return result;
}

static int write_text(FILE *file, const struct leaderboard *leaderboard, bool one_device) {
    char text[768];

    (void)one_device;
    for (size_t i = 0; i < leaderboard->board_count; i++) {
        fputs(i > 0 ? "\n" : "", file);
        if (write_board(file, leaderboard, &leaderboard->boards[i]) != 0)
            return -1;
    }
    if (leaderboard->unmeasured_count > 0 && leaderboard->board_count > 0)
        fputc('\n', file);
    for (size_t i = 0; i < leaderboard->unmeasured_count; i++) {
        leaderboard_challenge(leaderboard, leaderboard->unmeasured[i], text, sizeof text);
        line(file, text);
    }
    return 0;
}

const struct leaderboard_format leaderboard_text = {.name = "text", .write = write_text};
