"""Statistics over runs: averages with bootstrap intervals, comparisons of groups, bands of curves. Only numpy, no I/O.

`mosaic_sdk.results` does the same for episodes of an evaluation, with the standard library only. The two agree: the
same interquartile mean, percentile intervals, Holm's adjustment, and the same rule for when a difference is clear.
"""
