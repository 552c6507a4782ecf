/* LZ4 frames, read and written block by block: liblz4's own frame reader accepts what Kafka refuses
 * (dependent blocks, dictionary ids) and refuses what Kafka accepts (a wrong content size or
 * content checksum), so only the block codec is liblz4's. The frame, as Kafka takes it:
 *
 *   04224D18  FLG  BD  [content size, 8]  HC      FLG: version 1, independent blocks, no dictionary
 *   { int32 LE length, bit 31: stored;  bytes;  [xxh32 of the bytes] }*
 *   length 0  [content checksum, not checked]
 *
 * What follows is ignored. An end mark with bit 31 set ends, too. A block goes straight to a reader
 * with room for all it can be. Memory else: one block, at most the 4 MiB that BD can name, and
 * never more than the input can fill. */
#include <lz4.h>
#include <lz4hc.h>

#include "compress_codec.h"

#define LZ4_HEAD_MIN 7
#define LZ4_STORED 0x80000000u
#define LZ4_RATIO_MAX 255
#define LZ4_LEVEL_DEFAULT 9 /* Kafka's name for the fast mode */
#define LZ4_LEVEL_HC_MIN 3

#define FLG_RESERVED 0x03
#define FLG_CONTENT_CHECKSUM 0x04
#define FLG_CONTENT_SIZE 0x08
#define FLG_BLOCK_CHECKSUM 0x10
#define FLG_INDEPENDENT 0x20

static const uint8_t frame_head[LZ4_HEAD_MIN] = {0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82};

struct unlz4 {
    bool started;
    uint8_t flg;
    size_t block_max;
    uint8_t *block; /* uncompressed; charged */
    size_t cap, n, pos;
};

/* Where the reader wants its bytes. */
struct target {
    uint8_t *p;
    size_t room, n;
};

static uint32_t le32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static uint32_t rotl(uint32_t v, int by)
{
    return v << by | v >> (32 - by);
}

/* xxHash, 32 bits, seed 0. */
static uint32_t xxh32(const uint8_t *p, size_t n)
{
    const uint32_t p1 = 2654435761u, p2 = 2246822519u, p3 = 3266489917u, p4 = 668265263u,
                   p5 = 374761393u;
    const uint8_t *end = p + n;
    uint32_t h = p5;
    if (n >= 16) {
        uint32_t v[4] = {p1 + p2, p2, 0, 0 - p1};
        for (; end - p >= 16; p += 16) {
            for (int i = 0; i < 4; i++)
                v[i] = rotl(v[i] + le32(p + 4 * i) * p2, 13) * p1;
        }
        h = rotl(v[0], 1) + rotl(v[1], 7) + rotl(v[2], 12) + rotl(v[3], 18);
    }
    h += (uint32_t)n;
    for (; end - p >= 4; p += 4)
        h = rotl(h + le32(p) * p3, 17) * p4;
    for (; p < end; p++)
        h = rotl(h + *p * p5, 11) * p1;
    h = (h ^ h >> 15) * p2;
    h = (h ^ h >> 13) * p3;
    return h ^ h >> 16;
}

static enum err lz4_open(struct decompressor *d)
{
    struct unlz4 *l = charged_alloc(d->budget, sizeof *l);
    if (l == NULL)
        return ERR_NOMEM;
    *l = (struct unlz4){0};
    d->state = l;
    return ERR_NONE;
}

static void lz4_close(struct decompressor *d)
{
    struct unlz4 *l = d->state;
    if (l == NULL)
        return;
    charged_free(d->budget, l->block);
    charged_free(d->budget, l);
}

static enum err read_head(struct decompressor *d, struct unlz4 *l)
{
    size_t left = (size_t)(d->end - d->pos);
    if (left < LZ4_HEAD_MIN || memcmp(d->pos, frame_head, 4) != 0)
        return ERR_INVALID;
    uint8_t flg = d->pos[4], bd = d->pos[5];
    unsigned size_id = bd >> 4;
    if (flg >> 6 != 1 || (flg & FLG_RESERVED) != 0 || (flg & FLG_INDEPENDENT) == 0)
        return ERR_INVALID;
    if ((bd & 0x0f) != 0 || size_id < 4 || size_id > 7)
        return ERR_INVALID;
    size_t described = (flg & FLG_CONTENT_SIZE) != 0 ? 10 : 2;
    if (left < 4 + described + 1)
        return ERR_INVALID;
    if (d->pos[4 + described] != (uint8_t)(xxh32(d->pos + 4, described) >> 8))
        return ERR_INVALID;
    d->pos += 4 + described + 1;
    l->flg = flg;
    l->block_max = (size_t)1 << (8 + 2 * size_id);
    l->started = true;
    return ERR_NONE;
}

static enum err reserve_block(struct decompressor *d, struct unlz4 *l, size_t n)
{
    if (n <= l->cap)
        return ERR_NONE;
    charged_free(d->budget, l->block);
    l->cap = 0;
    l->block = charged_alloc(d->budget, n);
    if (l->block == NULL)
        return ERR_NOMEM;
    l->cap = n;
    return ERR_NONE;
}

/* n bytes of input, n > 0, are there and are a block: into memory that all it can be fits in, its
 * own or l's. */
static enum err decode_block(struct decompressor *d, struct unlz4 *l, size_t n, bool stored,
                             struct target *t)
{
    size_t room = n;
    if (!stored)
        room = n < l->block_max / LZ4_RATIO_MAX ? n * LZ4_RATIO_MAX : l->block_max;
    const bool direct = room <= t->room;
    enum err err = direct ? ERR_NONE : reserve_block(d, l, room);
    if (err != ERR_NONE)
        return err;
    uint8_t *to = direct ? t->p : l->block;
    int r = (int)n;
    if (stored)
        memcpy(to, d->pos, n);
    else
        r = LZ4_decompress_safe((const char *)d->pos, (char *)to, (int)n, (int)room);
    l->pos = l->n = 0;
    if (r >= 0)
        *(direct ? &t->n : &l->n) = (size_t)r;
    return r < 0 ? ERR_INVALID : ERR_NONE;
}

static enum err next_block(struct decompressor *d, struct unlz4 *l, struct target *t)
{
    size_t left = (size_t)(d->end - d->pos);
    if (left < 4)
        return ERR_INVALID;
    uint32_t word = le32(d->pos);
    size_t n = word & ~LZ4_STORED;
    d->pos += 4;
    left -= 4;
    if (n == 0) {
        d->ended = true;
        return (l->flg & FLG_CONTENT_CHECKSUM) != 0 && left < 4 ? ERR_INVALID : ERR_NONE;
    }
    size_t sum = (l->flg & FLG_BLOCK_CHECKSUM) != 0 ? 4 : 0;
    if (n > l->block_max || left < n + sum)
        return ERR_INVALID;
    if (sum > 0 && le32(d->pos + n) != xxh32(d->pos, n))
        return ERR_INVALID;
    enum err err = decode_block(d, l, n, (word & LZ4_STORED) != 0, t);
    d->pos += n + sum;
    return err;
}

static enum err lz4_read(struct decompressor *d, uint8_t *p, size_t n, size_t *got)
{
    struct unlz4 *l = d->state;
    enum err err = l->started ? ERR_NONE : read_head(d, l);
    struct target t = {p, n, 0};
    while (err == ERR_NONE && l->pos == l->n && t.n == 0 && !d->ended)
        err = next_block(d, l, &t);
    *got = t.n;
    if (err != ERR_NONE || t.n > 0)
        return err;
    size_t left = l->n - l->pos;
    *got = left < n ? left : n;
    if (*got > 0)
        memcpy(p, l->block + l->pos, *got);
    l->pos += *got;
    return ERR_NONE;
}

static int hc_level(const struct compressor *c)
{
    if (c->level == INT_MIN || c->level == LZ4_LEVEL_DEFAULT)
        return 0;
    return c->level < LZ4_LEVEL_HC_MIN ? LZ4_LEVEL_HC_MIN : c->level;
}

static enum err lz4_begin(struct compressor *c)
{
    int size = hc_level(c) > 0 ? LZ4_sizeofStateHC() : LZ4_sizeofState();
    c->state = charged_alloc(NULL, (size_t)size);
    return c->state == NULL ? ERR_NOMEM : ERR_NONE;
}

static int compress_block(struct compressor *c, const uint8_t *p, int n, uint8_t *to, int room)
{
    int level = hc_level(c);
    const char *from = (const char *)p;
    if (level > 0)
        return LZ4_compress_HC_extStateHC(c->state, from, (char *)to, n, room, level);
    return LZ4_compress_fast_extState(c->state, from, (char *)to, n, room, 1);
}

static enum err lz4_block(struct compressor *c, const uint8_t *p, size_t n, bool last)
{
    enum err err = buf_reserve(c->out, LZ4_HEAD_MIN + 4 + n + 4);
    if (err != ERR_NONE)
        return err;
    uint8_t *to = c->out->p + c->out->n;
    if (!c->begun) {
        memcpy(to, frame_head, LZ4_HEAD_MIN);
        to += LZ4_HEAD_MIN;
    }
    if (n > 0) {
        /* What does not shrink is stored. */
        int packed = n > 1 ? compress_block(c, p, (int)n, to + 4, (int)n - 1) : 0;
        uint32_t word = packed > 0 ? (uint32_t)packed : (uint32_t)n | LZ4_STORED;
        if (packed <= 0)
            memcpy(to + 4, p, n);
        memcpy(to, &word, sizeof word);
        to += 4 + (word & ~LZ4_STORED);
    }
    if (last) {
        memset(to, 0, 4);
        to += 4;
    }
    c->out->n = (size_t)(to - c->out->p);
    return ERR_NONE;
}

static void lz4_end(struct compressor *c)
{
    charged_free(NULL, c->state);
}

const struct codec_ops codec_lz4 = {
    .open = lz4_open,
    .read = lz4_read,
    .close = lz4_close,
    .begin = lz4_begin,
    .block = lz4_block,
    .end = lz4_end,
};
