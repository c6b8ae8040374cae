"""Writes min, mean and max by key as the challenge has them, from exact tenths."""

import sys


def one_decimal(tenths):
    return f"{'-' if tenths < 0 else ''}{abs(tenths) // 10}.{abs(tenths) % 10}"


def write(rows):
    """Rows are (key, min, max, sum, count). The mean is rounded half up."""
    entries = []
    for key, low, high, total, count in sorted(rows, key=lambda row: row[0].encode()):
        tenths = round(total * 10)
        mean = (2 * tenths + count) // (2 * count)
        shown = map(one_decimal, (round(low * 10), mean, round(high * 10)))
        entries.append(f"{key}={'/'.join(shown)}")
    answer = "{" + ", ".join(entries) + "}\n"
    sys.stdout.buffer.write(answer.encode())
