/* ops_audio.c: sound of WAV files: 16 bits a sample, as tf.audio takes and writes it.
 *
 *     "RIFF" size "WAVE", then chunks: name[4], size[4], bytes
 *     "fmt "   format[2] = 1 or 0xfffe, channels[2], rate[4], ..[6], bits[2] = 16
 *     "data"   samples, channel by channel
 *
 * A sample v is v / 32768. */
#include "base/size.h"
#include "codec/data_ops.h"

#include <math.h>
#include <string.h>

typedef struct {
    uint32_t channels, rate;
    const unsigned char *samples;
    size_t n; /* of each channel */
} sound;

static uint32_t read_16(const unsigned char *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static uint32_t read_32(const unsigned char *p) {
    return read_16(p) | read_16(p + 2) << 16;
}

static snug_status bad(const snug_datum *d, size_t at, const char *why, snug_error *err) {
    char name[SN_ORIGIN_TEXT];
    return sn_fail_by(err, SNUG_E_FORMAT, SNUG_CAUSE_MEDIA,
                      "cannot decode %s as WAV at byte %zu: %s",
                      sn_origin_print(d, sn_texts_of(d), name, sizeof name), at, why);
}

/* What is behind the first "data" is not looked at. */
static snug_status find_sound(const snug_datum *d, sound *out, snug_error *err) {
    const unsigned char *p = (const unsigned char *)sn_texts_of(d)->data;
    const size_t n = sn_texts_of(d)->bytes;
    *out = (sound){0};
    if (n < 12 || memcmp(p, "RIFF", 4) != 0 || memcmp(p + 8, "WAVE", 4) != 0)
        return bad(d, 0, "it does not start with RIFF and WAVE", err);
    for (size_t at = 12; at + 8 <= n;) {
        const size_t bytes = read_32(p + at + 4), left = n - at - 8;
        const unsigned char *chunk = p + at + 8;
        if (memcmp(p + at, "data", 4) == 0 && out->channels > 0) {
            const size_t there = bytes < left ? bytes : left;
            if (bytes > left && bytes != UINT32_MAX)
                return bad(d, at, "the file is truncated: get a whole copy", err);
            out->samples = chunk;
            out->n = there / 2 / out->channels;
            return SNUG_OK;
        }
        if (bytes > left)
            return bad(d, at, "a part is longer than the file", err);
        if (memcmp(p + at, "fmt ", 4) == 0) {
            if (bytes < 16 || (read_16(chunk) != 1 && read_16(chunk) != 0xfffe) ||
                read_16(chunk + 14) != 16 || read_16(chunk + 2) == 0)
                return bad(d, at, "only samples of 16 bits (PCM) are decoded", err);
            out->channels = read_16(chunk + 2);
            out->rate = read_32(chunk + 4);
        }
        at += 8 + bytes + bytes % 2;
    }
    return bad(d, n, "it has no samples", err);
}

/* Channels that are missing are as the last one, samples that are missing 0. */
static void copy_samples(const sound *s, int64_t samples, int64_t channels, float *to) {
    for (int64_t i = 0; i < samples; i++)
        for (int64_t k = 0; k < channels; k++) {
            const int64_t from = k < s->channels ? k : (int64_t)s->channels - 1;
            const size_t at = 2 * ((size_t)i * s->channels + (size_t)from);
            *to++ = i < (int64_t)s->n ? (float)(int16_t)read_16(s->samples + at) / 32768.0f : 0;
        }
}

snug_status sn_data_decode_wav(sn_data_call *c, snug_error *err) {
    sound s;
    SNUG_TRY(sn_data_want_text(c, 0, err));
    if (sn_datum_count(&c->in[0]) != 1 || c->max < 2)
        return sn_fail(err, SNUG_E_SHAPE, "tf.audio.decode_wav takes one text and gives two parts");
    SNUG_TRY(find_sound(&c->in[0], &s, err));
    const int64_t samples = sn_data_int(c->op, "desired_samples"),
                  channels = sn_data_int(c->op, "desired_channels");
    const snug_type type = {SNUG_F32,
                            2,
                            {samples < 0 ? (int64_t)s.n : samples,
                             channels < 0 ? s.channels : channels}},
                    scalar = {.dtype = SNUG_I32};
    SNUG_TRY(snug_datum_create(c->engine, &type, &c->out[0], err));
    const snug_status status = snug_datum_create(c->engine, &scalar, &c->out[1], err);
    if (status != SNUG_OK) {
        snug_datum_drop(&c->out[0]);
        return status;
    }
    copy_samples(&s, type.dims[0], type.dims[1], c->out[0].data);
    memcpy(c->out[1].data, &s.rate, sizeof s.rate);
    c->n_out = 2;
    return SNUG_OK;
}

snug_status sn_spec_wav(const snug_data_op *op, const snug_spec *in, snug_spec *out,
                        snug_error *err) {
    (void)in;
    (void)err;
    out->n = 2;
    out->type[0] = (snug_type){
        SNUG_F32, 2, {sn_data_int(op, "desired_samples"), sn_data_int(op, "desired_channels")}};
    out->type[1] = (snug_type){.dtype = SNUG_I32};
    out->is_text[0] = out->is_text[1] = 0;
    return SNUG_OK;
}

/* --- written ---------------------------------------------------------------------------------- */
static char *put(char *at, uint32_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        *at++ = (char)(value >> 8 * i & 0xff);
    return at;
}

static char *put_head(char *at, uint32_t data, uint32_t channels, uint32_t rate) {
    memcpy(at, "RIFF", 4);
    at = put(at + 4, 36 + data, 4);
    memcpy(at, "WAVEfmt ", 8);
    at = put(at + 8, 16, 4);
    at = put(at, 1, 2);
    at = put(at, channels, 2);
    at = put(at, rate, 4);
    at = put(at, rate * channels * 2, 4);
    at = put(at, channels * 2, 2);
    at = put(at, 16, 2);
    memcpy(at, "data", 4);
    return put(at + 4, data, 4);
}

snug_status sn_data_encode_wav(sn_data_call *c, snug_error *err) {
    enum { HEAD = 44 };
    const snug_type *t = &c->in[0].type, scalar = {.dtype = SNUG_OPAQUE};
    char *room;
    if (c->in[0].is_text || t->dtype != SNUG_F32 || t->rank != 2 || t->dims[1] < 1 ||
        t->dims[1] > UINT16_MAX || c->in[1].is_text || sn_datum_count(&c->in[1]) != 1 ||
        c->in[1].type.dtype != SNUG_I32)
        return sn_fail(err, SNUG_E_SHAPE,
                       "tf.audio.encode_wav takes f32[samples,channels] and i32[]");
    const int64_t n = sn_datum_count(&c->in[0]);
    int32_t rate;
    memcpy(&rate, c->in[1].data, sizeof rate);
    if (n > (UINT32_MAX - HEAD) / 2 || rate < 1)
        return sn_fail(err, SNUG_E_INVALID, "%lld samples at %d a second fit no WAV file",
                       (long long)n, rate);
    SNUG_TRY(sn_texts_create(c->engine, &scalar, (size_t)n * 2 + HEAD, &c->out[0], &room, err));
    *(snug_text *)c->out[0].data = (snug_text){room, (size_t)n * 2 + HEAD};
    char *at = put_head(room, (uint32_t)n * 2, (uint32_t)t->dims[1], (uint32_t)rate);
    for (int64_t i = 0; i < n; i++) {
        const float v = roundf(((const float *)c->in[0].data)[i] * 32768.0f);
        at = put(at, (uint32_t)(int32_t)fminf(fmaxf(v, -32768), 32767), 2);
    }
    c->n_out = 1;
    return SNUG_OK;
}
