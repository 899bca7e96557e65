/* ops_picture_write.c: tf.io.encode_jpeg and encode_png, and bytes that grow. */
#include "codec/picture_write.h"

#include "base/size.h"

#include <string.h>

snug_status sn_growing_begin(snug_engine *e, size_t bytes, sn_growing *g, snug_error *err) {
    *g = (sn_growing){.engine = e};
    return sn_scratch(e, bytes, &g->block, err);
}

bool sn_growing_room(sn_growing *g, size_t more) {
    size_t need, twice;
    if (!sn_size_add(g->n, more, &need))
        return false;
    if (need <= g->block.bytes)
        return true;
    twice = g->block.bytes <= SIZE_MAX / 2 ? 2 * g->block.bytes : SIZE_MAX;
    snug_datum larger;
    if (sn_scratch(g->engine, need > twice ? need : twice, &larger, NULL) != SNUG_OK)
        return false;
    memcpy(larger.data, g->block.data, g->n);
    snug_datum_drop(&g->block);
    g->block = larger;
    return true;
}

void sn_growing_end(sn_growing *g) {
    snug_datum_drop(&g->block);
}

/* The picture as one text, by `write`. */
typedef snug_status (*write_fn)(const sn_data_call *c, sn_growing *to, snug_error *err);

static snug_status encode_with(sn_data_call *c, int64_t max_channels, write_fn write,
                               snug_error *err) {
    SNUG_TRY(sn_data_want_number(c, 0, err));
    const snug_type *t = &c->in[0].type;
    char me[64], type[192];
    if (t->rank != 3 || t->dtype != SNUG_U8 || t->dims[0] < 1 || t->dims[1] < 1 ||
        t->dims[0] > 65500 || t->dims[1] > 65500 || t->dims[2] < 1 || t->dims[2] > max_channels ||
        (max_channels == 3 && t->dims[2] == 2))
        return sn_fail(err, SNUG_E_SHAPE,
                       "%s takes one picture u8[H, W, C] of at most %lld "
                       "channels, not %s",
                       sn_data_name(c->op, me, sizeof me), (long long)max_channels,
                       snug_type_print(t, type, sizeof type));
    sn_growing bytes;
    SNUG_TRY(sn_growing_begin(c->engine, 4096 + c->in[0].bytes / 4, &bytes, err));
    snug_status status = write(c, &bytes, err);
    if (status == SNUG_OK) {
        const snug_type scalar = {.dtype = SNUG_OPAQUE, .rank = 0};
        const snug_text text = {bytes.block.data, bytes.n};
        status = snug_datum_texts(c->engine, &scalar, &text, &c->out[0], err);
    }
    sn_growing_end(&bytes);
    c->n_out = status == SNUG_OK;
    return status;
}

static snug_status write_jpeg(const sn_data_call *c, sn_growing *to, snug_error *err) {
    const int64_t quality = sn_data_int(c->op, "quality");
    if (quality < 0 || quality > 100)
        return sn_fail(err, SNUG_E_INVALID, "tf.io.encode_jpeg: quality=%lld; 0 to 100 exist",
                       (long long)quality);
    return sn_jpeg_write(&c->in[0],
                         &(sn_jpeg_options){
                             .quality = (int)quality,
                             .progressive = sn_data_bool(c->op, "progressive"),
                             .optimize = sn_data_bool(c->op, "optimize_size"),
                             .downsample = sn_data_bool(c->op, "chroma_downsampling"),
                         },
                         to, err);
}

/* format says how many channels there are, 0 where it says nothing; what a file could say besides
 * its pixels is not written. */
static snug_status check_format(const sn_data_call *c, snug_error *err) {
    static const struct {
        const char *name;
        int64_t channels;
    } known[] = {{"", 0}, {"grayscale", 1}, {"rgb", 3}};
    const snug_text format = sn_data_text(c->op, "format"),
                    unit = sn_data_text(c->op, "density_unit");
    const snug_type *t = &c->in[0].type;
    size_t k = 0;
    while (k < 3 && (strlen(known[k].name) != format.bytes ||
                     memcmp(known[k].name, format.data, format.bytes) != 0))
        k++;
    if (k == 3)
        return sn_fail(err, SNUG_E_INVALID,
                       "tf.io.encode_jpeg: format '%.*s'; there are '%s', "
                       "'%s' and '%s'",
                       (int)format.bytes, format.data, known[0].name, known[1].name, known[2].name);
    if (k && t->rank > 0 && t->dims[t->rank - 1] != known[k].channels)
        return sn_fail(err, SNUG_E_INVALID,
                       "tf.io.encode_jpeg: format %s but channels %lld; it has %lld", known[k].name,
                       (long long)t->dims[t->rank - 1], (long long)known[k].channels);
    if (unit.bytes != 2 || memcmp(unit.data, "in", 2) != 0 ||
        sn_data_int(c->op, "x_density") != 300 || sn_data_int(c->op, "y_density") != 300 ||
        sn_data_text(c->op, "xmp_metadata").bytes)
        return sn_fail(err, SNUG_E_UNSUPPORTED,
                       "tf.io.encode_jpeg: other densities than 300 an inch, and metadata, are not "
                       "in Snug");
    return SNUG_OK;
}

snug_status sn_data_encode_jpeg(sn_data_call *c, snug_error *err) {
    SNUG_TRY(check_format(c, err));
    return encode_with(c, 3, write_jpeg, err);
}

static snug_status write_png(const sn_data_call *c, sn_growing *to, snug_error *err) {
    const int64_t level = sn_data_int(c->op, "compression");
    if (level < -1 || level > 9)
        return sn_fail(err, SNUG_E_INVALID, "tf.io.encode_png: compression=%lld; -1 to 9 exist",
                       (long long)level);
    return sn_png_write(&c->in[0], (int)level, to, err);
}

snug_status sn_data_encode_png(sn_data_call *c, snug_error *err) {
    return encode_with(c, 4, write_png, err);
}
