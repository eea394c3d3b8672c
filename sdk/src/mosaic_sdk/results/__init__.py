"""What comes out of an evaluation: statistics, comparisons on equal seeds, ratings, and eval_summary.json.

Standard library only. Import what you use from its module:

    from mosaic_sdk.results.summary import EvalResults
"""
