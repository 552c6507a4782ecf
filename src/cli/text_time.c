/* Times by hand: strptime and mktime depend on locale and time zone. Days are counted from
 * 0000-03-01, so that the leap day is a year's last (the proleptic Gregorian calendar). */
#include <stdio.h>

#include "cli/text.h"

enum { MS_PER_DAY = 86400000, DAYS_TO_1970 = 719468 };

static int64_t days_of(int64_t year, int month, int day)
{
    const int64_t y = month > 2 ? year : year - 1;
    const int64_t era = (y >= 0 ? y : y - 399) / 400, of_era = y - era * 400;
    const int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - DAYS_TO_1970;
}

static void date_of(int64_t days, int64_t *year, int *month, int *day)
{
    const int64_t z = days + DAYS_TO_1970;
    const int64_t era = (z >= 0 ? z : z - 146096) / 146097, of_era = z - era * 146097;
    const int64_t y = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    const int64_t of_year = of_era - (365 * y + y / 4 - y / 100);
    const int64_t m = (5 * of_year + 2) / 153;
    *day = (int)(of_year - (153 * m + 2) / 5 + 1);
    *month = (int)(m < 10 ? m + 3 : m - 9);
    *year = y + era * 400 + (*month <= 2);
}

static bool leap(int64_t year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static int days_in(int64_t year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return month == 2 && leap(year) ? 29 : days[month - 1];
}

/* ------------------------------------------------------------------ reading */

static bool digits(struct str *s, int n, int *out)
{
    *out = 0;
    if (s->n < n)
        return false;
    for (int i = 0; i < n; i++) {
        if (s->p[i] < '0' || s->p[i] > '9')
            return false;
        *out = *out * 10 + s->p[i] - '0';
    }
    s->p += n;
    s->n -= n;
    return true;
}

static bool one_of(struct str *s, const char *chars)
{
    if (s->n < 1 || s->p[0] == '\0' || strchr(chars, s->p[0]) == NULL)
        return false;
    s->p++;
    s->n--;
    return true;
}

/* Digits behind the point; those beyond milliseconds are dropped. */
static bool fraction(struct str *s, int *ms)
{
    int digit, scale = 100;
    if (!digits(s, 1, &digit))
        return false;
    do {
        *ms += digit * scale;
        scale /= 10;
    } while (digits(s, 1, &digit));
    return true;
}

static bool clock_time(struct str *s, int64_t *ms)
{
    int hour, minute, second = 0, part = 0;
    if (!digits(s, 2, &hour) || !one_of(s, ":") || !digits(s, 2, &minute))
        return false;
    if (one_of(s, ":")) {
        if (!digits(s, 2, &second) || (one_of(s, ".,") && !fraction(s, &part)))
            return false;
    }
    *ms = ((hour * 60 + minute) * 60 + second) * (int64_t)1000 + part;
    return hour < 24 && minute < 60 && second < 60;
}

/* "Z", "+02:00", "-0230", "+02" or nothing. */
static bool utc_offset(struct str *s, int64_t *ms)
{
    int hour, minute = 0;
    *ms = 0;
    if (s->n == 0 || one_of(s, "Zz"))
        return true;
    const bool west = s->p[0] == '-';
    if (!one_of(s, "+-") || !digits(s, 2, &hour))
        return false;
    (void)one_of(s, ":");
    if (s->n > 0 && !digits(s, 2, &minute))
        return false;
    *ms = (hour * 60 + minute) * (int64_t)60000 * (west ? -1 : 1);
    return hour < 24 && minute < 60;
}

static bool iso_time(struct str s, int64_t *out_ms)
{
    int year, month, day;
    int64_t ms = 0, offset_ms = 0;
    if (!digits(&s, 4, &year) || !one_of(&s, "-") || !digits(&s, 2, &month) || !one_of(&s, "-") ||
        !digits(&s, 2, &day) || month < 1 || month > 12 || day < 1 || day > days_in(year, month))
        return false;
    if (s.n > 0 && (!one_of(&s, "Tt ") || !clock_time(&s, &ms) || !utc_offset(&s, &offset_ms)))
        return false;
    *out_ms = days_of(year, month, day) * MS_PER_DAY + ms - offset_ms;
    return s.n == 0;
}

static bool count(struct str s, int64_t *out)
{
    char text[24];
    if (s.n < 1 || (size_t)s.n >= sizeof text)
        return false;
    snprintf(text, sizeof text, "%.*s", s.n, s.p);
    return strlen(text) == (size_t)s.n && text_int(text, 0, INT64_MAX, out);
}

bool text_time(struct str text, int64_t *out_ms)
{
    return count(text, out_ms) || iso_time(text, out_ms);
}

bool text_duration(struct str text, int64_t *out_ms)
{
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", MS_PER_DAY}};
    int32_t n = 0;
    int64_t value;
    while (n < text.n && text.p[n] >= '0' && text.p[n] <= '9')
        n++;
    const struct str unit = {text.p + n, text.n - n};
    for (size_t i = 0; i < ARRAY_N(units); i++)
        if (str_eq(unit, str_of(units[i].name)) && count((struct str){text.p, n}, &value) &&
            value <= INT64_MAX / units[i].ms) {
            *out_ms = value * units[i].ms;
            return true;
        }
    return false;
}

void text_print_time(int64_t ms, char out[TEXT_TIME_BYTES])
{
    const int64_t days = (ms >= 0 ? ms : ms - (MS_PER_DAY - 1)) / MS_PER_DAY;
    const int of_day = (int)(ms - days * MS_PER_DAY);
    int64_t year = 10000;
    int month = 0, day = 0;
    if (days > -DAYS_TO_1970 - 60 && days < 3000000)
        date_of(days, &year, &month, &day);
    if (year < 0 || year > 9999)
        snprintf(out, TEXT_TIME_BYTES, "%lld", (long long)ms);
    else
        snprintf(out, TEXT_TIME_BYTES, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", (int)year, month, day,
                 of_day / 3600000, of_day / 60000 % 60, of_day / 1000 % 60, of_day % 1000);
}
