"""Bars as SVG: for each row a bar per server, for each figure a panel. Bars are relative to the largest of
their row, for rows differ by orders of magnitude; the number stands beside."""
import html

import row as rows_of

COLORS = {'Dohle': '#1f6f8b', 'Kafka': '#b5651d', 'limit': '#9a9a9a'}
LABEL, PANEL, BAR, GAP, HEAD = 250, 300, 11, 8, 52


def text(x, y, s, anchor='start', size=11, weight='normal'):
    return '<text x="%d" y="%d" text-anchor="%s" font-size="%d" font-weight="%s">%s</text>' % (
        x, y, anchor, size, weight, html.escape(s))


def bars(x, y, column, figures, servers):
    """One panel of one row."""
    decimals = rows_of.COLUMNS[column][1]
    top = max(figures[s][column] for s in servers if column in figures[s]) or 1
    out = []
    for i, server in enumerate(servers):
        v = figures[server].get(column)
        if v is None:
            continue
        width = max(v / top * (PANEL - 90), 1)
        out.append('<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>' % (
            x, y + i * BAR, width, BAR - 1, COLORS[server]))
        out.append(text(x + int(width) + 4, y + i * BAR + BAR - 2, format(v, ',.%df' % decimals).replace(',', ' '),
                        size=9))
    return out


def write(path, title, rows):
    """rows: [(Row, {server: figures})]"""
    columns = list(dict.fromkeys(c for r, _ in rows for c in r.columns))
    out, y = [], HEAD
    for i, column in enumerate(columns):
        out.append(text(LABEL + i * PANEL, HEAD - 8, rows_of.COLUMNS[column][0], weight='bold'))
    for r, figures in rows:
        servers = [s for s in COLORS if s in figures]
        out.append(text(LABEL - 8, y + BAR * len(servers) // 2 + 4, r.name, anchor='end'))
        for i, column in enumerate(columns):
            if any(column in figures[s] for s in servers):
                out += bars(LABEL + i * PANEL, y, column, figures, servers)
        y += BAR * len(servers) + GAP
    legend = [text(LABEL, 16, title, size=13, weight='bold')]
    for i, (server, color) in enumerate(COLORS.items()):
        x = LABEL + 130 + i * 70
        legend.append('<rect x="%d" y="7" width="10" height="10" fill="%s"/>' % (x, color))
        legend.append(text(x + 14, 16, server))
    with open(path, 'w', encoding='utf-8') as f:
        f.write('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif">\n'
                '<rect width="100%%" height="100%%" fill="white"/>\n%s\n</svg>\n' %
                (LABEL + PANEL * len(columns), y + 6, '\n'.join(legend + out)))
