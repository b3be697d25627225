"""Measures what crew costs, as ratios within one run; no test depends on these figures."""
