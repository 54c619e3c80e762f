"""The `core` trainer: the smallest training loop over ``megatron.core``'s public API.

It runs where neither Bridge nor ``pretrain_gpt.py`` does, and sets what no command line reaches: loss masks, a fully
masked microbatch. Whatever a setting asks for is looked up in the commit's own signatures, since these change from
year to year; a commit that lacks it fails with `MissingFeatureError` and never trains something else instead.
"""
