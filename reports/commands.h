/* Commands that read records; rows of moesol.c's command table. */
#ifndef MOESOL_REPORTS_COMMANDS_H
#define MOESOL_REPORTS_COMMANDS_H

int cmd_report(int argc, char **argv);
int cmd_roofline(int argc, char **argv);
int cmd_leaderboard(int argc, char **argv);
int cmd_diagnose(int argc, char **argv);
int cmd_compare(int argc, char **argv);
int cmd_publish(int argc, char **argv);
int cmd_verify(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_timeline(int argc, char **argv);

#endif
