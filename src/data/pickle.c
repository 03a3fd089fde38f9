#include "data/pickle.h"

#include <string.h>

/* The known instructions, by Python's names. */
enum {
    MARK = '(',
    STOP = '.',
    BININT = 'J',
    BININT1 = 'K',
    BININT2 = 'M',
    BINUNICODE = 'X',
    EMPTY_DICT = '}',
    BINGET = 'h',
    LONG_BINGET = 'j',
    BINPUT = 'q',
    LONG_BINPUT = 'r',
    SETITEM = 's',
    SETITEMS = 'u',
    PROTO = 0x80,
    LONG1 = 0x8a,
    SHORT_BINUNICODE = 0x8c,
    BINUNICODE8 = 0x8d,
    MEMOIZE = 0x94,
    FRAME = 0x95,
};

enum { PROTOCOL_LEAST = 2, PROTOCOL_MOST = 5 };

/* Instructions that import, call or build objects: the refusal has their names. */
static const struct {
    uint8_t code;
    const char *name;
} foreign[] = {
    {'c', "GLOBAL"},      {0x93, "STACK_GLOBAL"}, {'R', "REDUCE"},   {'b', "BUILD"},
    {'i', "INST"},        {'o', "OBJ"},           {0x81, "NEWOBJ"},  {0x92, "NEWOBJ_EX"},
    {'P', "PERSID"},      {'Q', "BINPERSID"},     {0x82, "EXT1"},    {0x83, "EXT2"},
    {0x84, "EXT4"},       {']', "EMPTY_LIST"},    {'a', "APPEND"},   {'e', "APPENDS"},
    {')', "EMPTY_TUPLE"}, {'t', "TUPLE"},         {'G', "BINFLOAT"},
};

struct values {
    struct pickle_value *value;
    int count, capacity;
};

struct machine {
    const char *path;
    const uint8_t *data;
    int64_t bytes, at; /* `at`: the next byte */
    int64_t begin;     /* of this instruction */
    struct values stack, memo;
    int items;
    struct arena *arena;
    bool stopped;
};

static enum status fail_at(const struct machine *m, const char *what)
{
    return fail(ST_FORMAT, "%s: byte %lld: %s", m->path, (long long)m->begin, what);
}

/* The next n <= 8 bytes as a little-endian number. */
static enum status take(struct machine *m, int n, uint64_t *ret)
{
    *ret = 0;
    if (n > m->bytes - m->at) return fail_at(m, "the file ends in the middle of an instruction");
    for (int i = 0; i < n; i++) *ret |= (uint64_t)m->data[m->at + i] << 8 * i;
    m->at += n;
    return ST_OK;
}

static enum status append(const struct machine *m, struct values *to, struct pickle_value v)
{
    if (to->count == PICKLE_ENTRIES_MOST) return fail_at(m, "it has too many values");
    ARENA_GROW(m->arena, to->value, to->count, to->capacity);
    to->value[to->count++] = v;
    return ST_OK;
}

static enum status push(struct machine *m, struct pickle_value v)
{
    return append(m, &m->stack, v);
}

static enum status push_number(struct machine *m, int bytes, bool is_signed)
{
    uint64_t bits;
    TRY(take(m, bytes, &bits));
    int unused = 64 - 8 * bytes;
    int64_t number = (int64_t)bits;
    if (is_signed && bytes) number = (int64_t)(bits << unused) >> unused;
    return push(m, (struct pickle_value){.type = PICKLE_NUMBER, .number = number});
}

/* An integer of as many bytes as the first byte says. */
static enum status push_long(struct machine *m)
{
    uint64_t n;
    TRY(take(m, 1, &n));
    if (n > sizeof(int64_t)) return fail_at(m, "a number has more than 64 bits");
    return push_number(m, (int)n, true);
}

static enum status push_text(struct machine *m, int bytes_of_length)
{
    uint64_t n;
    TRY(take(m, bytes_of_length, &n));
    if (n > (uint64_t)(m->bytes - m->at)) return fail_at(m, "a text is longer than the file");
    const char *text = (const char *)m->data + m->at;
    m->at += (int64_t)n;
    return push(m, (struct pickle_value){.type = PICKLE_TEXT, .number = (int64_t)n, .text = text});
}

static enum status push_dict(struct machine *m)
{
    struct pickle_dict *d = ARENA_NEW(m->arena, struct pickle_dict, 1);
    return push(m, (struct pickle_value){.type = PICKLE_DICT, .dict = d});
}

/* Python's memo is a table; here it is a list, because what pickle writes numbers it from 0 on. */
static enum status remember(struct machine *m, uint64_t index)
{
    const struct values *s = &m->stack;
    if (!s->count || s->value[s->count - 1].type == PICKLE_MARK)
        return fail_at(m, "there is no value to remember");
    if (index > (uint64_t)m->memo.count) return fail_at(m, "remembered values are out of order");
    if (index == (uint64_t)m->memo.count) return append(m, &m->memo, s->value[s->count - 1]);
    m->memo.value[index] = s->value[s->count - 1];
    return ST_OK;
}

static enum status recall(struct machine *m, int bytes)
{
    uint64_t index;
    TRY(take(m, bytes, &index));
    if (index >= (uint64_t)m->memo.count) return fail_at(m, "a value was not remembered before");
    return push(m, m->memo.value[index]);
}

static enum status add_item(struct machine *m, struct pickle_dict *d, const struct pickle_value *v)
{
    if (v[0].type == PICKLE_DICT) return fail_at(m, "a key is a dictionary");
    if (m->items++ == PICKLE_ENTRIES_MOST) return fail_at(m, "it has too many entries");
    ARENA_GROW(m->arena, d->item, d->count, d->capacity);
    d->item[d->count++] = (struct pickle_item){v[0], v[1]};
    return ST_OK;
}

/* Moves the values from `first` on, in pairs, into the dictionary at `dict`. */
static enum status set_items(struct machine *m, int dict, int first)
{
    struct values *s = &m->stack;
    if (dict < 0 || s->value[dict].type != PICKLE_DICT || (s->count - first) % 2)
        return fail_at(m, "entries do not belong to a dictionary");
    for (int i = first; i < s->count; i++)
        if (s->value[i].type == PICKLE_MARK) return fail_at(m, "a mark is no value");
    for (int i = first; i < s->count; i += 2) TRY(add_item(m, s->value[dict].dict, &s->value[i]));
    s->count = dict + 1;
    return ST_OK;
}

static enum status set_marked(struct machine *m)
{
    int mark = m->stack.count - 1;
    while (mark >= 0 && m->stack.value[mark].type != PICKLE_MARK) mark--;
    return mark < 0 ? fail_at(m, "there is no mark") : set_items(m, mark - 1, mark + 1);
}

static enum status check_protocol(struct machine *m)
{
    uint64_t version;
    TRY(take(m, 1, &version));
    if (version >= PROTOCOL_LEAST && version <= PROTOCOL_MOST) return ST_OK;
    return fail(ST_FORMAT, "%s: a pickle of protocol %d; only 2 to 5 are read", m->path,
                (int)version);
}

static enum status stop(struct machine *m)
{
    if (m->stack.count != 1 || m->stack.value[0].type == PICKLE_MARK)
        return fail_at(m, "the pickle ends without a single value");
    if (m->at != m->bytes) return fail_at(m, "the file goes on after the end of the pickle");
    m->stopped = true;
    return ST_OK;
}

static enum status refuse(const struct machine *m, uint8_t code)
{
    const char *name = "";
    for (int i = 0; i < COUNT_OF(foreign); i++)
        if (foreign[i].code == code) name = foreign[i].name;
    return fail(ST_FORMAT,
                "%s: byte %lld is the instruction 0x%02x%s%s, which no dictionary of texts and "
                "numbers needs: Strobe runs no code that a file contains",
                m->path, (long long)m->begin, code, *name ? " " : "", name);
}

static enum status run_one(struct machine *m, uint8_t code)
{
    uint64_t n;
    switch (code) {
    case PROTO:
        return check_protocol(m);
    case FRAME:
        return take(m, 8, &n); /* a hint for readers that read in pieces */
    case MARK:
        return push(m, (struct pickle_value){.type = PICKLE_MARK});
    case EMPTY_DICT:
        return push_dict(m);
    case SHORT_BINUNICODE:
        return push_text(m, 1);
    case BINUNICODE:
        return push_text(m, 4);
    case BINUNICODE8:
        return push_text(m, 8);
    case BININT:
        return push_number(m, 4, true);
    case BININT1:
        return push_number(m, 1, false);
    case BININT2:
        return push_number(m, 2, false);
    case LONG1:
        return push_long(m);
    case MEMOIZE:
        return remember(m, (uint64_t)m->memo.count);
    case BINPUT:
        TRY(take(m, 1, &n));
        return remember(m, n);
    case LONG_BINPUT:
        TRY(take(m, 4, &n));
        return remember(m, n);
    case BINGET:
        return recall(m, 1);
    case LONG_BINGET:
        return recall(m, 4);
    case SETITEM:
        return set_items(m, m->stack.count - 3, m->stack.count - 2);
    case SETITEMS:
        return set_marked(m);
    case STOP:
        return stop(m);
    default:
        return refuse(m, code);
    }
}

enum status pickle_read(const char *path, const char *data, int64_t bytes, struct arena *a,
                        struct pickle_value *ret)
{
    struct machine m = {.path = path, .data = (const uint8_t *)data, .bytes = bytes, .arena = a};
    if (bytes > PICKLE_BYTES_MOST)
        return fail(ST_FORMAT, "%s has %lld bytes, more than %d", path, (long long)bytes,
                    PICKLE_BYTES_MOST);
    if (bytes < 2 || m.data[0] != PROTO)
        return fail(ST_FORMAT, "%s is not a pickle of protocol 2 to 5", path);
    while (!m.stopped) {
        uint64_t code;
        m.begin = m.at;
        if (m.at == bytes) return fail_at(&m, "the file ends before the pickle does");
        TRY(take(&m, 1, &code));
        TRY(run_one(&m, (uint8_t)code));
    }
    *ret = m.stack.value[0];
    return ST_OK;
}

const struct pickle_value *pickle_find(const struct pickle_value *d, const char *key)
{
    if (d->type != PICKLE_DICT) return NULL;
    int64_t bytes = (int64_t)strlen(key);
    for (int i = d->dict->count - 1; i >= 0; i--) {
        const struct pickle_item *item = &d->dict->item[i];
        if (item->key.type == PICKLE_TEXT && item->key.number == bytes &&
            !memcmp(item->key.text, key, (size_t)bytes))
            return &item->value;
    }
    return NULL;
}
