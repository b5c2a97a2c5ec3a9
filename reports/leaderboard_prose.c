/* The leaderboard as plain text, and as Markdown. */
#include "leaderboard_formats.h"
#include "prose.h"

static int write_board(FILE *file, const struct prose *prose, const struct leaderboard *leaderboard,
                       const struct board *board) {
    struct table table;
    char text[768];

    leaderboard_title(leaderboard, board, text, sizeof text);
    prose_line(file, prose, prose->markdown ? "### " : "", text);
    fputs(prose->markdown ? "\n" : "", file);
    leaderboard_table(board, &table);
    int result = prose->write_table(file, &table);
    table_free(&table);
    fputs(prose->markdown ? "\n" : "", file);
    if (board->note[0]) {
        snprintf(text, sizeof text, "%s: %s", board->device, board->note);
        prose_item(file, prose, text);
    }
    for (size_t i = 0; i < board->entry_count; i++)
        if (leaderboard_remark(&board->entries[i], text, sizeof text))
            prose_item(file, prose, text);
    return result;
}

/* The command stands in backquotes, which Markdown must see. */
static void write_challenge(FILE *file, const struct prose *prose,
                            const struct leaderboard *leaderboard,
                            const struct device_row *device) {
    char command[256];

    leaderboard_command(leaderboard, command, sizeof command);
    fputs(prose->markdown ? "- " : "", file);
    prose->escape(file, device->name);
    fprintf(file, ": not measured; `%s` there measures it\n", command);
}

static int write_all(FILE *file, const struct prose *prose, const struct leaderboard *leaderboard) {
    for (size_t i = 0; i < leaderboard->board_count; i++) {
        fputs(i > 0 ? "\n" : "", file);
        if (write_board(file, prose, leaderboard, &leaderboard->boards[i]) != 0)
            return -1;
    }
    if (!prose->markdown && leaderboard->unmeasured_count > 0 && leaderboard->board_count > 0)
        fputc('\n', file);
    for (size_t i = 0; i < leaderboard->unmeasured_count; i++)
        write_challenge(file, prose, leaderboard, leaderboard->unmeasured[i]);
    return 0;
}

static int write_text(FILE *file, const struct leaderboard *leaderboard, bool one_device) {
    (void)one_device;
    return write_all(file, &prose_text, leaderboard);
}

static int write_markdown(FILE *file, const struct leaderboard *leaderboard, bool one_device) {
    (void)one_device;
    return write_all(file, &prose_markdown, leaderboard);
}

const struct leaderboard_format leaderboard_text = {.name = "text", .write = write_text};
const struct leaderboard_format leaderboard_markdown = {.name = "markdown",
                                                        .write = write_markdown};
