/* The leaderboard as one self-contained HTML page: no script, no network. */
#include "escape.h"
#include "leaderboard_formats.h"

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";

static const char style[] =
    "<style>\n"
    ":root { color-scheme: light dark; }\n"
    "body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; "
    "padding: 0 1rem; color: #1a1a1a; background: #fff; }\n"
    "h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }\n"
    ".scroll { overflow-x: auto; }\n"
    "table { border-collapse: collapse; font-variant-numeric: tabular-nums; }\n"
    "th, td { padding: .3rem .7rem; text-align: right; border-bottom: 1px solid #ccc; "
    "white-space: nowrap; }\n"
    "th { border-bottom: 2px solid #888; } .l { text-align: left; }\n"
    "@media (prefers-color-scheme: dark) { body { color: #e6e6e6; background: #161616; } "
    "th, td { border-color: #444; } }\n"
    "</style>\n";

static void element(FILE *file, const char *name, const char *text) {
    fprintf(file, "<%s>", name);
    escape_html(file, text);
    fprintf(file, "</%s>\n", name);
}

static int write_board(FILE *file, const struct leaderboard *leaderboard,
                       const struct board *board) {
    struct table table;
    char text[768];

    leaderboard_title(leaderboard, board, text, sizeof text);
    element(file, "h2", text);
    leaderboard_table(board, &table);
    int result = table_write_html(file, &table);
    table_free(&table);
    if (board->note[0]) {
        snprintf(text, sizeof text, "%s: %s", board->device, board->note);
        element(file, "p", text);
    }
    for (size_t i = 0; i < board->entry_count; i++)
        if (leaderboard_refusal(&board->entries[i], text, sizeof text))
            element(file, "p", text);
    return result;
}

static void write_challenges(FILE *file, const struct leaderboard *leaderboard) {
    char command[256];

    if (leaderboard->unmeasured_count == 0)
        return;
    leaderboard_command(leaderboard, command, sizeof command);
    fputs("<h2>Not measured yet</h2>\n<ul>\n", file);
    for (size_t i = 0; i < leaderboard->unmeasured_count; i++) {
        fputs("<li>", file);
        escape_html(file, leaderboard->unmeasured[i]->name);
        fputs(": not measured; <code>", file);
        escape_html(file, command);
        fputs("</code> there measures it</li>\n", file);
    }
    fputs("</ul>\n", file);
}

static int write_html(FILE *file, const struct leaderboard *leaderboard, bool one_device) {
    (void)one_device;
    fputs(head, file);
    fputs("<title>moesol leaderboard: ", file);
    escape_html(file, leaderboard->suite->name);
    fprintf(file, "</title>\n%s</head>\n<body>\n<main>\n<h1>Leaderboard: ", style);
    escape_html(file, leaderboard->suite->title[0] ? leaderboard->suite->title
                                                   : leaderboard->suite->name);
    fputs("</h1>\n", file);
    for (size_t i = 0; i < leaderboard->board_count; i++)
        if (write_board(file, leaderboard, &leaderboard->boards[i]) != 0)
            return -1;
    write_challenges(file, leaderboard);
    fputs("</main>\n</body>\n</html>\n", file);
    return 0;
}

const struct leaderboard_format leaderboard_html = {"html", write_html};
