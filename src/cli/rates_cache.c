/* rates_cache.c: what the command keeps between runs: the measured rates of this machine. */
#include "cli.h"

#include <stdlib.h>

bool cli_cache_folder(char *folder, size_t size) {
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    const bool own = cache && cache[0] == '/'; /* the rule says: ignore what is not absolute */
    if (!own && !(home && home[0]))
        return false;
    const int n =
        snprintf(folder, size, "%s%s", own ? cache : home, own ? "/snug" : "/.cache/snug");
    return n > 0 && (size_t)n < size;
}

void cli_load_rates(const cli *c) {
    char folder[1024];
    snug_error err;
    int found;
    if (!cli_cache_folder(folder, sizeof folder))
        return;
    if (snug_rates_load(c->engine, folder, &found, &err) != SNUG_OK)
        fprintf(stderr, "warning: %s (`snug doctor --calibrate`); going on with built-in rates\n",
                err.text);
}
