/* A program outside the project: builds a graph of nothing, asks for the version, counts its bytes. */
#include <snug/model.h>
#include <stdio.h>
#include <string.h>

int main(void) {
    snug_engine *engine;
    snug_error err;
    if (snug_engine_create(NULL, &engine, &err) != SNUG_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    snug_feed *feed;
    if (snug_feed_open(engine, "normal:4x2@7", &feed, &err) != SNUG_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    snug_feed_destroy(feed);
    const int clean =
        snug_engine_bytes(engine) == 0 && strcmp(snug_version(), SNUG_VERSION_TEXT) == 0;
    snug_engine_destroy(engine);
    return clean ? 0 : 1;
}
