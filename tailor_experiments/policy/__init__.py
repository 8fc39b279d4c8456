"""The learned family's weights: how they are trained on pools whose labels are known, and judged on
pools that they never saw.
"""
